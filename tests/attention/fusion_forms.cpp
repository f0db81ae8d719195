// SPDX-License-Identifier: Apache-2.0
// What the tables of streaming programs share.
#include "fusion_forms.h"

#include <doctest/doctest.h>

#include <cmath>

#include "../../ops/ops.h"

namespace einkern::test {

using I = std::int64_t;

Expr Operands::scores() const { return einsum("bhqd,bhkd->bhqk", q, k) * 0.5; }
Expr Operands::sum(const Expr& weights) const { return einsum("bhqk,bhke->bhqe", weights, v); }

Extras::Extras(const PairSizes& n)
    : slope(short_noise({n.heads}, 11)),
      bias(short_noise({n.heads, n.queries, n.keys}, 12)),
      key_bias(short_noise({n.keys}, 13)),
      gate(short_noise({n.queries, n.keys}, 14)),
      mask({n.queries, n.keys}),
      additive({n.queries, n.keys}),
      lengths({n.batch}),
      sinks(short_noise({n.heads}, 15)),
      width(short_noise({n.inner}, 16)) {
  for_each_index({n.queries, n.keys}, [&](const Sizes& i) {
    mask.at(i) = (i[0] * 5 + i[1] * 3) % 4 != 0 ? 1 : 0;
    additive.at(i) = i[1] <= i[0] ? 0 : -INFINITY;
  });
  for (I b = 0; b < n.batch; ++b) lengths.at({b}) = static_cast<double>(n.keys - 3 * b);
}

PairFormula scored(std::function<double(double, const ScoreAt&)> score) {
  PairFormula formula;
  formula.score = std::move(score);
  return formula;
}

PairFormula half(const Extras&) {
  return scored([](double s, const ScoreAt&) { return s * 0.5; });
}
PairFormula half_by_hand(const Extras& x) {
  PairFormula formula = half(x);
  formula.nan_when_empty = true;
  return formula;
}
PairFormula causal_half(const Extras&) {
  return scored([](double s, const ScoreAt& i) { return i.k <= i.q ? s * 0.5 : -INFINITY; });
}
PairFormula late(const Extras&) {
  return scored([](double s, const ScoreAt& i) { return i.k <= i.q - 2 ? s * 0.5 : -INFINITY; });
}
PairFormula late_by_hand(const Extras& x) {
  PairFormula formula = late(x);
  formula.nan_when_empty = true;
  return formula;
}
Expr late_scores(const Operands& x) {
  return where(index("k") <= index("q") - 2, x.scores(), -inf);
}
Expr grouped(const Operands& x, const Expr& q) {
  return einsum("bgrqd,bgkd->bgrqk", split(q, 1, {"g", "r"}, {x.n.groups, -1}), x.k);
}

void check_form(const Form& form) {
  CAPTURE(form.name);
  const PairArrays arrays(form.sizes);
  const Extras extras(form.sizes);
  const PairSizes& n = form.sizes;
  const Array want = pair_oracle(arrays, form.formula(extras));
  struct DTypes {
    DType computed, stored;  // of everything, and of keys and values
  };
  for (const DTypes dtypes : {DTypes{f32, f32}, DTypes{f64, f64}, DTypes{f32, f16}}) {
    const DType dtype = dtypes.computed, stored = dtypes.stored;
    CAPTURE(std::string(name_of(stored)));
    const auto tensor = [&](const Array& array) { return to_tensor(array, dtype); };
    const Operands operands{n,
                            tensor(arrays.q),
                            to_tensor(arrays.k, stored),
                            to_tensor(arrays.v, stored),
                            {{"slope", tensor(extras.slope)},
                             {"bias", tensor(extras.bias)},
                             {"key_bias", tensor(extras.key_bias)},
                             {"gate", tensor(extras.gate)},
                             {"mask", tensor(extras.mask)},
                             {"additive", tensor(extras.additive)},
                             {"sinks", tensor(extras.sinks)},
                             {"lengths", tensor(extras.lengths)},
                             {"ones", ones({n.inner}, dtype)}}};
    const Expr output = form.build(operands);
    const I scores = n.batch * n.heads * n.queries * n.keys * (dtype == f32 ? 4 : 8);
    const std::string fault = streaming_fault({output}, scores);
    CHECK_MESSAGE(fault.empty(), fault, "\n", explain({output}));
    const double bound = dtype == f32 ? 2e-6 : 1e-14;
    CHECK(worst_error(Tensor(output), want) <= bound);
    CHECK(worst_error(eval(output, {.fuse = false}), want) <= bound);
  }
}

}  // namespace einkern::test
