// SPDX-License-Identifier: Apache-2.0
// Weights of streamed passes: softmax by hand, factors after it, and no softmax at all.
#include <doctest/doctest.h>

#include <cmath>

#include "../../ops/ops.h"
#include "fusion_forms.h"

using namespace einkern;
using namespace einkern::test;

namespace {

// All scores of PairSizes in f64.
constexpr std::int64_t kScoreBytes = std::int64_t{2} * 4 * 8 * 12 * 8;

PairFormula plain_product(std::function<double(double, const ScoreAt&)> score) {
  PairFormula formula = scored(std::move(score));
  formula.normalise = false;
  return formula;
}

std::vector<Form> by_hand() {
  return {
      {"by hand",
       [](const Operands& x) {
         const Expr s = x.scores(), e = exp(s - max(s, "k")["bhq"]);
         return x.sum(e / sum(e, "k")["bhq"]);
       },
       half_by_hand},
      {"by hand, axes kept",
       [](const Operands& x) {
         const Expr s = unnamed(x.scores());
         const Expr e = exp(s - max(s, -1, {.keep = true}));
         return x.sum(e / sum(e, -1, {.keep = true}));
       },
       half_by_hand},
      {"by hand, rows without a key",
       [](const Operands& x) {
         const Expr s = late_scores(x), e = exp(s - max(s, "k")["bhq"]);
         return x.sum(e / sum(e, "k")["bhq"]);
       },
       late_by_hand},
      {"by hand, adding the negative maximum, the sum by an einsum",
       [](const Operands& x) {
         const Expr s = x.scores(), e = exp(s + -max(s, "k")["bhq"]);
         return x.sum(e / einsum("bhqk->bhq", e)["bhq"]);
       },
       half_by_hand},
      {"by hand, times the reciprocal",
       [](const Operands& x) {
         const Expr s = x.scores(), e = exp(s - max(s, "k")["bhq"]);
         return x.sum(e * (1 / sum(e, "k"))["bhq"]);
       },
       half_by_hand},
      {"by hand, the reciprocal by an einsum",
       [](const Operands& x) {
         const Expr s = x.scores(), e = exp(s - max(s, "k")["bhq"]);
         return x.sum(einsum("bhqk,bhq->bhqk", e, 1 / sum(e, "k")));
       },
       half_by_hand},
      {"by hand, divided after the sum",
       [](const Operands& x) {
         const Expr s = late_scores(x), e = exp(s - max(s, "k")["bhq"]);
         return x.sum(e) / sum(e, "k")["bhq"];
       },
       late_by_hand},
      {"by hand, times the reciprocal after the sum",
       [](const Operands& x) {
         const Expr s = x.scores(), e = exp(s - max(s, "k")["bhq"]);
         return (1 / sum(e, "k"))["bhq"] * x.sum(e);
       },
       half_by_hand},
      {"by hand, divided after the sum and a view",
       [](const Operands& x) {
         const Expr s = x.scores(), e = exp(s - max(s, "k")["bhq"]);
         const Expr o = permute(x.sum(e), "bhqe->bqhe");
         return permute(o / sum(e, "k")["bhq"], "bqhe->bhqe");
       },
       half_by_hand},
      {"by hand, grouped heads divided after the sum",
       [](const Operands& x) {
         const Expr s = merge(grouped(x, x.q), {1, 2}, "h") * 0.5;
         const Expr e = exp(s - max(s, "k")["bhq"]);
         const Expr parts = split(e, "h", {"g", "r"}, {x.n.groups, -1});
         const Expr o = merge(einsum("bgrqk,bgke->bgrqe", parts, x.v), {1, 2}, "h");
         return o / sum(e, "k")["bhq"];
       },
       half_by_hand, kGrouped},
      {"by hand, the maximum never below a number",
       [](const Operands& x) {
         const Expr s = late_scores(x), e = exp(s - maximum(max(s, "k"), -1e30)["bhq"]);
         return x.sum(e / sum(e, "k")["bhq"]);
       },
       late_by_hand},
      {"by hand, a maximum of -inf replaced, the sum guarded",
       [](const Operands& x) {
         const Expr s = late_scores(x), m = max(s, "k");
         const Expr e = exp(s - where(m == -inf, 0, m)["bhq"]);
         return x.sum(e / maximum(sum(e, "k"), 1e-20)["bhq"]);
       },
       late},
      {"by hand, a sum of 0 replaced",
       [](const Operands& x) {
         const Expr s = late_scores(x), m = max(s, "k");
         const Expr e = exp(s - where(m > -inf, m, 0.0)["bhq"]), z = sum(e, "k");
         return x.sum(e) / where(z == 0, 1, z)["bhq"];
       },
       late},
      {"exp of log_softmax",
       [](const Operands& x) { return x.sum(exp(log_softmax(late_scores(x), "k"))); }, late},
      {"exp(s - logsumexp(s))",
       [](const Operands& x) {
         const Expr s = late_scores(x);
         return x.sum(exp(s - logsumexp(s, "k")["bhq"]));
       },
       late_by_hand},
      {"exp(s - (m + log(sum(exp(s - m)))))",
       [](const Operands& x) {
         const Expr s = late_scores(x), m = max(s, "k");
         const Expr log_sum = m + log(sum(exp(s - m["bhq"]), "k"));
         return x.sum(exp(s - log_sum["bhq"]));
       },
       late_by_hand},
      {"exp(s - m - log(sum(exp(s - m))))",
       [](const Operands& x) {
         const Expr s = x.scores(), t = s - max(s, "k")["bhq"];
         return x.sum(exp(t - log(sum(exp(t), "k"))["bhq"]));
       },
       half_by_hand},
      {"by hand over several labels",
       [](const Operands& x) {
         const Expr k = split(x.k, 2, {"u", "w"}, {3, 4}), v = split(x.v, 2, {"u", "w"}, {3, 4});
         const Expr s = einsum("bhqd,bhuwd->bhquw", x.q, k) * 0.5;
         const Expr e = exp(s - max(s, {"u", "w"})["bhq"]);
         return einsum("bhquw,bhuwe->bhqe", e / sum(e, {"u", "w"})["bhq"], v);
       },
       half_by_hand},
  };
}

/// One more logit per head in the denominator.
std::vector<Form> sinks() {
  const auto formula = [](const Extras& x) {
    PairFormula formula = late(x);
    formula.sink = [x](const ScoreAt& i) { return x.sinks.at({i.h}); };
    return formula;
  };
  return {
      {"a sink by the word",
       [](const Operands& x) {
         return x.sum(softmax(late_scores(x), "k", {.sink = x["sinks"]["h"]}));
       },
       formula},
      {"a sink as one more column",
       [](const Operands& x) {
         const Expr wide =
             expand(expand(expand(x["sinks"], "q", x.n.queries), "b", x.n.batch), "c", 1);
         const Expr column = unnamed(permute(wide, {1, 3, 2, 0}));
         const Expr all = concat({unnamed(late_scores(x)), column}, -1);
         return x.sum(slice(softmax(all, -1), -1, 0, -1));
       },
       formula},
      {"a sink by hand",
       [](const Operands& x) {
         const Expr s = late_scores(x), sink = x["sinks"]["h"];
         const Expr m = maximum(max(s, "k"), sink), e = exp(s - m["bhq"]);
         return x.sum(e / (sum(e, "k") + exp(sink - m["bhq"]))["bhq"]);
       },
       formula},
      {"a sink by hand, divided after the sum",
       [](const Operands& x) {
         const Expr s = late_scores(x), sink = x["sinks"]["h"];
         const Expr m = maximum(sink, max(s, "k")), e = exp(s - m["bhq"]);
         return x.sum(e) / (exp(sink - m["bhq"]) + sum(e, "k"))["bhq"];
       },
       formula},
  };
}

std::vector<Form> factors() {
  const auto gated = [](PairFormula (*base)(const Extras&)) {
    return [base](const Extras& x) {
      PairFormula formula = base(x);
      formula.factor = [x](const ScoreAt& i) { return x.gate.at({i.q, i.k}); };
      return formula;
    };
  };
  const auto masked = [](const Extras& x) {
    PairFormula formula = half(x);
    formula.factor = [x](const ScoreAt& i) { return x.mask.at({i.q, i.k}); };
    return formula;
  };
  return {
      {"a factor after the softmax",
       [](const Operands& x) { return x.sum(softmax(x.scores(), "k") * x["gate"]); }, gated(half)},
      {"a factor after a causal softmax",
       [](const Operands& x) {
         return x.sum(x["gate"] * softmax(mask(x.scores(), causal("q", "k")), "k"));
       },
       gated(causal_half)},
      {"a factor as an operand of the einsum",
       [](const Operands& x) {
         return einsum("bhqk,qk,bhke->bhqe", softmax(x.scores(), "k"), x["gate"], x.v);
       },
       gated(half)},
      {"a factor of the keys as an operand",
       [](const Operands& x) {
         return einsum("k,bhqk,bhke->bhqe", x["key_bias"], softmax(x.scores(), "k"), x.v);
       },
       [](const Extras& x) {
         PairFormula formula = half(x);
         formula.factor = [x](const ScoreAt& i) { return x.key_bias.at({i.k}); };
         return formula;
       }},
      {"weights selected or 0",
       [](const Operands& x) {
         return x.sum(where(Expr(x["mask"]) > 0, softmax(x.scores(), "k"), 0));
       },
       masked},
      {"weights 0 where a condition holds, by hand",
       [](const Operands& x) {
         const Expr s = x.scores(), e = exp(s - max(s, "k")["bhq"]);
         return x.sum(where(Expr(x["mask"]) == 0, 0.0, e / sum(e, "k")["bhq"]));
       },
       masked},
      {"dropout: weights selected, then divided",
       [](const Operands& x) {
         return x.sum(where(Expr(x["mask"]) > 0, softmax(x.scores(), "k"), 0) / 0.75);
       },
       [masked](const Extras& x) {
         PairFormula formula = masked(x);
         formula.factor = [x](const ScoreAt& i) { return x.mask.at({i.q, i.k}) / 0.75; };
         return formula;
       }},
      {"a factor of positions, behind a view",
       [](const Operands& x) {
         const Expr p = permute(softmax(x.scores(), "k"), "bhqk->bqhk");
         return einsum("bqhk,bhke->bhqe", p * (1 + index("h") + index("k")), x.v);
       },
       [](const Extras& x) {
         PairFormula formula = half(x);
         formula.factor = [](const ScoreAt& i) { return static_cast<double>(1 + i.h + i.k); };
         return formula;
       }},
      {"a gated product", [](const Operands& x) { return x.sum(x.scores() * x["gate"]); },
       [](const Extras& x) {
         return plain_product([x](double s, const ScoreAt& i) {
           return s * 0.5 * x.gate.at({i.q, i.k});
         });
       }},
      {"a decayed product, causal",
       [](const Operands& x) {
         const Expr far = index("q") - index("k");
         const Expr decay = exp(-abs(x["slope"]["h"]) * far);
         return x.sum(where(far >= 0, x.scores() * decay, 0));
       },
       [](const Extras& x) {
         return plain_product([x](double s, const ScoreAt& i) {
           const auto far = static_cast<double>(i.q - i.k);
           return far >= 0 ? s * 0.5 * std::exp(-std::abs(x.slope.at({i.h})) * far) : 0;
         });
       }},
      {"sigmoid attention", [](const Operands& x) { return x.sum(sigmoid(x.scores() - 2)); },
       [](const Extras&) {
         return plain_product(
             [](double s, const ScoreAt&) { return 1 / (1 + std::exp(2 - s * 0.5)); });
       }},
      {"squared scores, grouped heads",
       [](const Operands& x) {
         const Expr s = grouped(x, x.q) * 0.5;
         return merge(einsum("bgrqk,bgke->bgrqe", relu(s) * relu(s), x.v), {1, 2});
       },
       [](const Extras&) {
         return plain_product([](double s, const ScoreAt&) { return s > 0 ? s * s / 4 : 0; });
       },
       kGrouped},
      {"a product capped by tanh",
       [](const Operands& x) { return x.sum(1.5 * tanh(x.scores() / 1.5)); },
       [](const Extras&) {
         return plain_product(
             [](double s, const ScoreAt&) { return 1.5 * std::tanh(s * 0.5 / 1.5); });
       }},
      {"a scaled product", [](const Operands& x) { return x.sum(x.scores()); },
       [](const Extras&) {
         return plain_product([](double s, const ScoreAt&) { return s * 0.5; });
       }},
  };
}

}  // namespace

TEST_SUITE("attention") {
  TEST_CASE("softmax by hand streams, with its rows of NaN") {
    for (const Form& form : by_hand()) check_form(form);
  }
  TEST_CASE("factors of weights, and pairs without a softmax stream") {
    for (const Form& form : factors()) check_form(form);
  }

  TEST_CASE("sinks by the word, as a column and by hand stream") {
    for (const Form& form : sinks()) check_form(form);
  }

  TEST_CASE("blocks of keys, pieces of rows and references that drift") {
    const std::vector<PairSizes> sizes = {
        {.batch = 1, .heads = 1, .groups = 1, .queries = 1, .keys = 2500, .inner = 8},
        {.batch = 1, .heads = 2, .groups = 2, .queries = 70, .keys = 500, .inner = 8}};
    for (const PairSizes& n : sizes) {
      const PairArrays arrays(n);
      const Extras extras(n);
      const Tensor q = to_tensor(arrays.q), k = to_tensor(arrays.k), v = to_tensor(arrays.v);
      const Expr s = einsum("bhqd,bhkd->bhqk", q, k) * 40;
      const Expr seen = where(index("k") <= 7 * index("q") + 900, s, -inf);
      const auto gate = [&](const ScoreAt& i) { return extras.gate.at({i.q, i.k}); };
      PairFormula formula = scored(
          [](double dot, const ScoreAt& i) { return i.k <= 7 * i.q + 900 ? dot * 40 : -INFINITY; });
      const auto check = [&](const Expr& weights, const std::optional<Expr>& divisor = {}) {
        Expr o = einsum("bhqk,bhke->bhqe", weights, v);
        if (divisor) o = o / *divisor;
        CHECK(streaming_fault({o}, n.heads * n.queries * n.keys * 8).empty());
        const Array want = pair_oracle(arrays, formula);
        CHECK(worst_error(Tensor(o), want) <= 1e-12);
        CHECK(worst_error(eval(o, {.fuse = false}), want) <= 1e-12);
      };
      const Expr e = exp(seen - max(seen, "k")["bhq"]), z = sum(e, "k")["bhq"];
      check(e, z);
      formula.factor = gate;
      check(softmax(seen, "k") * to_tensor(extras.gate));
      check((e / z) * to_tensor(extras.gate));
      formula = plain_product(
          [&](double dot, const ScoreAt& i) { return i.k <= 7 * i.q + 900 ? dot * gate(i) : 0; });
      check(where(index("k") <= 7 * index("q") + 900, s * to_tensor(extras.gate) / 40, 0));
      formula = plain_product([](double dot, const ScoreAt&) { return dot * 40; });
      check(s);
    }
  }

  TEST_CASE("logsumexp by the word and by hand comes from the same pass") {
    const PairArrays arrays(PairSizes{});
    const Tensor q = to_tensor(arrays.q), k = to_tensor(arrays.k), v = to_tensor(arrays.v);
    const Expr s = einsum("bhqd,bhkd->bhqk", q, k) * 0.5;
    const Expr output = einsum("bhqk,bhke->bhqe", softmax(s, "k"), v), word = logsumexp(s, "k");
    CHECK(streaming_fault({output, word}, kScoreBytes).empty());
    const Expr m = max(s, "k"), e = exp(s - m["bhq"]), z = sum(e, "k");
    const Expr by_hand = einsum("bhqk,bhke->bhqe", e / z["bhq"], v), logarithm = m + log(z);
    CHECK(streaming_fault({by_hand, logarithm}, kScoreBytes).empty());
    const auto want = eval({output, word}, {.fuse = false});
    for (const auto& got : {eval({output, word}), eval({by_hand, logarithm})}) {
      CHECK(worst_error(got[0], to_array(want[0])) <= 1e-14);
      CHECK(worst_error(got[1], to_array(want[1])) <= 1e-14);
    }
  }

  TEST_CASE("by hand, 0 times a value that is not finite is NaN, as the arithmetic says") {
    const Tensor q = ones({5, 2}, f64), v = tensor<double>({1, 2, NAN, 4, 5}, {5, 1});
    const Expr s = einsum("qd,kd->qk", q, q);
    const Expr hidden = where(index("k") <= index("q"), s, -inf);
    const Expr e = exp(hidden - max(hidden, "k")["q"]);
    const Expr by_hand = einsum("qk,ke->qe", e / sum(e, "k")["q"], v);
    const Expr gated = einsum("qk,ke->qe", where(index("k") <= index("q"), s, 0), v);
    const Expr word = einsum("qk,ke->qe", softmax(hidden, "k"), v);
    for (const Expr& output : {by_hand, gated}) {
      CHECK(streaming_fault({output}, std::int64_t{5} * 5 * 8).empty());
      for (const bool fuse : {true, false}) {
        const auto got = eval(output, {.fuse = fuse}).to_vector<double>();
        for (const double x : got) CHECK(std::isnan(x));
      }
    }
    CHECK(Tensor(word)(0, 0).item<double>() == 1);
    const Tensor gate = tensor<double>({1, 2, HUGE_VAL, 4, 5}, {5});
    const Expr changed = einsum("qk,ke->qe", softmax(hidden, "k") * gate, ones({5, 1}, f64));
    CHECK(streaming_fault({changed}, std::int64_t{5} * 5 * 8).empty());
    for (const bool fuse : {true, false}) {
      const Tensor got = eval(changed, {.fuse = fuse});
      CHECK(std::isnan(got(0, 0).item<double>()));
      CHECK(got(2, 0).item<double>() == HUGE_VAL);
    }
  }

  TEST_CASE("exponentials that are not divided by their sum do not stream, and are right") {
    const PairArrays arrays(PairSizes{});
    const Tensor q = to_tensor(arrays.q), k = to_tensor(arrays.k), v = to_tensor(arrays.v);
    const Expr s = einsum("bhqd,bhkd->bhqk", q, k), e = exp(s - max(s, "k")["bhq"]);
    const Expr o = einsum("bhqk,bhke->bhqe", e, v), z = sum(e, "k")["bhq"];
    const Tensor w = random({3}, 5, f64);
    for (const Expr& output : {o * w, o / w, o * (2 / z), o / sum(e * e, "k")["bhq"], w / o}) {
      CHECK_FALSE(streaming_fault({output}, kScoreBytes).empty());
      CHECK(worst_error(Tensor(output), to_array(eval(output, {.fuse = false}))) <= 1e-14);
    }
  }

  TEST_CASE("a raised maximum leaves rows far below it without weights") {
    const Tensor q = full({2, 1}, -1e4, f64), k = ones({3, 1}, f64), v = ones({3, 1}, f64);
    const Expr s = einsum("qd,kd->qk", q, k);
    const auto with = [&](double least) {
      const Expr e = exp(s - maximum(max(s, "k"), least)["q"]);
      return einsum("qk,ke->qe", e / sum(e, "k")["q"], v);
    };
    for (const bool fuse : {true, false}) {
      CHECK(std::isnan(eval(with(-100), {.fuse = fuse})(0, 0).item<double>()));
      CHECK(eval(with(-1e30), {.fuse = fuse})(0, 0).item<double>() == 1);
    }
  }
}
