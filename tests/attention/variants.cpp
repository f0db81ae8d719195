// SPDX-License-Identifier: Apache-2.0
// The check of one variant of attention.
#include "variants.h"

#include <doctest/doctest.h>

namespace einkern::test {

VariantArrays::VariantArrays(const VariantSizes& sizes, unsigned seed)
    : n(sizes),
      q(short_noise({n.batch, n.heads, n.queries, n.width}, 7 * seed)),
      k(short_noise({n.batch, n.groups, n.keys, n.width}, 7 * seed + 1)),
      v(short_noise({n.batch, n.groups, n.keys, n.values}, 7 * seed + 2)) {}

void check_variant(const char* name, const VariantArrays& arrays, const Variant& variant,
                   const OracleResult& want) {
  CAPTURE(name);
  const VariantSizes& n = arrays.n;
  for (const DType dtype : {f32, f64}) {
    CAPTURE(std::string(name_of(dtype)));
    const AttentionResult got = variant({dtype, to_tensor(arrays.q, dtype),
                                         to_tensor(arrays.k, dtype), to_tensor(arrays.v, dtype)});
    const auto scores =
        n.batch * n.heads * n.queries * n.keys * static_cast<std::int64_t>(size_of(dtype));
    for (const auto& exprs : {std::vector<Expr>{got.output}, {got.output, got.logsumexp}}) {
      const std::string fault = streaming_fault(exprs, scores);
      CHECK_MESSAGE(fault.empty(), fault, "\n", explain(exprs));
    }
    const double bound = dtype == f32 ? 4e-6 : 1e-13;
    for (const bool fuse : {true, false}) {
      CHECK(worst_error(eval(got.output, {.fuse = fuse}), want.output) <= bound);
      const auto both = eval({got.output, got.logsumexp}, {.fuse = fuse});
      CHECK(worst_error(both[0], want.output) <= bound);
      CHECK(worst_error(both[1], want.logsumexp) <= bound);
    }
    CHECK(worst_error(Tensor(got.weights), want.weights) <= bound);
  }
}

Array dense(const VariantSizes& n, const std::function<double(const ScoreAt&)>& f) {
  Array result({n.batch, n.heads, n.queries, n.keys});
  for_each_index(result.shape, [&](const Sizes& i) { result.at(i) = f({i[0], i[1], i[2], i[3]}); });
  return result;
}

}  // namespace einkern::test
