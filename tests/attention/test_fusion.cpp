// SPDX-License-Identifier: Apache-2.0
// Forms of attention that run as one streamed pass: layouts of operands, and scores.
#include <doctest/doctest.h>

#include <cmath>

#include "../../ops/ops.h"
#include "fusion_forms.h"

using namespace einkern;
using namespace einkern::test;

namespace {

using I = std::int64_t;

std::vector<Form> layouts() {
  return {
      {"heads second", [](const Operands& x) { return x.sum(softmax(x.scores(), "k")); }, half},
      {"heads third",
       [](const Operands& x) {
         const Expr q = permute(x.q, "bhqd->bqhd"), k = permute(x.k, "bhkd->bkhd"),
                    v = permute(x.v, "bhke->bkhe");
         const Expr s = einsum("bqhd,bkhd->bhqk", q, k) * 0.5;
         return permute(einsum("bhqk,bkhe->bqhe", softmax(s, "k"), v), "bqhe->bhqe");
       },
       half},
      {"keys stored transposed",
       [](const Operands& x) {
         const Expr k = permute(x.k, "bhkd->bhdk");
         return x.sum(softmax(einsum("bhqd,bhdk->bhqk", x.q, k) * 0.5, "k"));
       },
       half},
      {"scores stored keys first",
       [](const Operands& x) {
         const Expr s = einsum("bhqd,bhkd->kbqh", x.q, x.k) * 0.5;
         return einsum("kbqh,bhke->bhqe", softmax(s, "k"), x.v);
       },
       half},
      {"scores permuted by an einsum",
       [](const Operands& x) {
         const Expr s = einsum("bhqk->bkqh", x.scores());
         return einsum("bkqh,bhke->bhqe", softmax(s, "k"), x.v);
       },
       half},
      {"merged heads split on the way",
       [](const Operands& x) {
         const auto merged = [](const Expr& t) {
           return Tensor(merge(permute(t, "bhnd->bnhd"), {2, 3}, "m"));
         };
         const auto heads = [&](const Expr& t) {
           return permute(split(merged(t), 2, {"h", "d"}, {x.n.heads, -1}), "bnhd->bhnd");
         };
         const Expr s = einsum("bhqd,bhkd->bhqk", heads(x.q), heads(x.k)) * 0.5;
         const Expr o = einsum("bhqk,bhke->bqhe", softmax(s, "k"), heads(x.v));
         return permute(split(merge(o, {2, 3}, "m"), 2, {"h", "e"}, {x.n.heads, -1}), "bqhe->bhqe");
       },
       half},
      {"no batch",
       [](const Operands& x) {
         const Expr q = merge(x.q, {0, 1, 2}), k = merge(x.k, {0, 1, 2}), v = merge(x.v, {0, 1, 2});
         const Expr o = einsum("qk,ke->qe", softmax(einsum("qd,kd->qk", q, k) * 0.5, "k"), v);
         return split(o, 0, {"b", "h", "q"}, {1, 1, -1});
       },
       half,
       {.batch = 1, .heads = 1, .groups = 1}},
      {"several batch and several streamed labels",
       [](const Operands& x) {
         const Expr q = split(split(x.q, 1, {"m", "n"}, {2, 2}), 3, {"x", "y"}, {4, 2});
         const Expr k = split(split(x.k, 1, {"m", "n"}, {2, 2}), 3, {"u", "w"}, {3, 4});
         const Expr v = split(split(x.v, 1, {"m", "n"}, {2, 2}), 3, {"u", "w"}, {3, 4});
         const Expr s = einsum("bmnxyd,bmnuwd->bmnxyuw", q, k) * 0.5;
         const Expr o = einsum("bmnxyuw,bmnuwe->bmnxye", softmax(s, {"u", "w"}), v);
         return merge(merge(o, {3, 4}), {1, 2});
       },
       half},
      {"softmax over several labels, merged before the sum",
       [](const Operands& x) {
         const Expr k = split(x.k, 2, {"u", "w"}, {3, 4});
         const Expr p = softmax(einsum("bhqd,bhuwd->bhquw", x.q, k) * 0.5, {"u", "w"});
         return x.sum(merge(p, {"u", "w"}, "k"));
       },
       half},
      {"operands in any order",
       [](const Operands& x) {
         const Expr s = 0.5 * einsum("bhkd,bhqd->bhqk", x.k, x.q);
         return einsum("bhke,bhqk->bhqe", x.v, softmax(s, "k"));
       },
       half},
      {"a scale as an operand of the einsum",
       [](const Operands& x) {
         const Expr s = einsum("bhqd,,bhkd->bhqk", x.q, full({}, 0.5, x.q.dtype()), x.k);
         return x.sum(softmax(s, "k"));
       },
       half},
      {"a factor of the inner label as an operand",
       [](const Operands& x) {
         const Expr s = einsum("bhqd,d,bhkd->bhqk", x.q, x["ones"], x.k) * 0.5;
         return x.sum(softmax(s, "k"));
       },
       half},
      {"a factor of the keys as an operand",
       [](const Operands& x) {
         const Expr s = einsum("bhqd,bhkd,k->bhqk", x.q, x.k, x["key_bias"]);
         return x.sum(softmax(s, "k"));
       },
       [](const Extras& x) {
         return scored([x](double s, const ScoreAt& i) { return s * x.key_bias.at({i.k}); });
       }},
      {"a scale of each head by an einsum",
       [](const Operands& x) {
         const Expr s = einsum("bhqd,bhkd->bhqk", x.q, x.k);
         return x.sum(softmax(einsum("bhqk,h->bhqk", s, x["slope"]), "k"));
       },
       [](const Extras& x) {
         return scored([x](double s, const ScoreAt& i) { return s * x.slope.at({i.h}); });
       }},
      {"grouped heads as a label",
       [](const Operands& x) {
         const Expr p = softmax(grouped(x, x.q) * 0.5, "k");
         return merge(einsum("bgrqk,bgke->bgrqe", p, x.v), {1, 2});
       },
       half, kGrouped},
      {"grouped heads, scores and output merged",
       [](const Operands& x) {
         const Expr s = merge(grouped(x, x.q), {1, 2}, "h") * 0.5;
         const Expr p = split(softmax(s, "k"), "h", {"g", "r"}, {x.n.groups, -1});
         return merge(einsum("bgrqk,bgke->bgrqe", p, x.v), {1, 2});
       },
       half, kGrouped},
      {"grouped heads by repeat",
       [](const Operands& x) {
         const I r = x.n.heads / x.n.groups;
         const Expr s = einsum("bhqd,bhkd->bhqk", x.q, repeat(x.k, 1, r)) * 0.5;
         return einsum("bhqk,bhke->bhqe", softmax(s, "k"), repeat(x.v, 1, r));
       },
       half, kGrouped},
      {"grouped heads by repeat behind a permutation",
       [](const Operands& x) {
         const I r = x.n.heads / x.n.groups;
         const Expr k = permute(repeat(permute(x.k, "bgkd->bkgd"), 2, r), "bkhd->bhkd");
         const Expr s = einsum("bhqd,bhkd->bhqk", x.q, k) * 0.5;
         return einsum("bhqk,bhke->bhqe", softmax(s, "k"), repeat(x.v, 1, r));
       },
       half, kGrouped},
      {"one head of keys for all",
       [](const Operands& x) {
         const Expr s = einsum("bhqd,bokd->bhqk", x.q, x.k) * 0.5;
         return einsum("bhqk,boke->bhqe", softmax(s, "k"), x.v);
       },
       half,
       {.groups = 1}},
  };
}

std::vector<Form> scores() {
  return {
      {"no scale",
       [](const Operands& x) { return x.sum(softmax(einsum("bhqd,bhkd->bhqk", x.q, x.k), "k")); },
       [](const Extras&) { return PairFormula{}; }},
      {"scale on q",
       [](const Operands& x) {
         return x.sum(softmax(einsum("bhqd,bhkd->bhqk", x.q * 0.5, x.k), "k"));
       },
       half},
      {"scale on k, behind a view",
       [](const Operands& x) {
         const Expr k = permute(x.k * 0.5, "bhkd->bkhd");
         return x.sum(softmax(einsum("bhqd,bkhd->bhqk", x.q, k), "k"));
       },
       half},
      {"scale on both",
       [](const Operands& x) {
         return x.sum(softmax(einsum("bhqd,bhkd->bhqk", x.q / 2, x.k * -1) * -1, "k"));
       },
       half},
      {"scale by division",
       [](const Operands& x) {
         return x.sum(softmax(einsum("bhqd,bhkd->bhqk", x.q, x.k) / 2, "k"));
       },
       half},
      {"negative scale", [](const Operands& x) { return x.sum(softmax(-x.scores(), "k")); },
       [](const Extras&) { return scored([](double s, const ScoreAt&) { return s * -0.5; }); }},
      {"soft-cap",
       [](const Operands& x) { return x.sum(softmax(1.5 * tanh(x.scores() / 1.5), "k")); },
       [](const Extras&) {
         return scored([](double s, const ScoreAt&) { return 1.5 * std::tanh(s * 0.5 / 1.5); });
       }},
      {"a chain of elementwise words",
       [](const Operands& x) {
         const Expr s = x.scores();
         return x.sum(softmax(sqrt(abs(s) + 1) * sigmoid(s) - s * s, "k"));
       },
       [](const Extras&) {
         return scored([](double s, const ScoreAt&) {
           s *= 0.5;
           return std::sqrt(std::abs(s) + 1) / (1 + std::exp(-s)) - s * s;
         });
       }},
      {"biases of several ranks",
       [](const Operands& x) {
         return x.sum(softmax(x.scores() + x["bias"] + x["key_bias"], "k"));
       },
       [](const Extras& x) {
         return scored([x](double s, const ScoreAt& i) {
           return s * 0.5 + x.bias.at({i.h, i.q, i.k}) + x.key_bias.at({i.k});
         });
       }},
      {"distance times a slope per head, causal",
       [](const Operands& x) {
         const Expr s = x.scores() + x["slope"]["h"] * (index("k") - index("q"));
         return x.sum(softmax(mask(s, causal("q", "k")), "k"));
       },
       [](const Extras& x) {
         return scored([x](double s, const ScoreAt& i) {
           const auto far = static_cast<double>(i.k - i.q);
           return i.k <= i.q ? s * 0.5 + x.slope.at({i.h}) * far : -INFINITY;
         });
       }},
      {"causal by mask",
       [](const Operands& x) { return x.sum(softmax(mask(x.scores(), causal("q", "k")), "k")); },
       causal_half},
      {"causal by where",
       [](const Operands& x) {
         return x.sum(softmax(where(index("q") >= index("k"), x.scores(), -inf), "k"));
       },
       causal_half},
      {"causal by where, the other way round",
       [](const Operands& x) {
         return x.sum(softmax(where(index("q") < index("k"), -inf, x.scores()), "k"));
       },
       causal_half},
      {"causal by adding 0 and -inf",
       [](const Operands& x) { return x.sum(softmax(x.scores() + x["additive"], "k")); },
       causal_half},
      {"causal by adding an expression of 0 and -inf",
       [](const Operands& x) {
         const Expr zero = full({}, 0.0, x.q.dtype());
         return x.sum(softmax(x.scores() + where(index("q") >= index("k"), zero, -inf), "k"));
       },
       causal_half},
      {"s m + lowest (1 - m)",
       [](const Operands& x) {
         const Expr m = x["mask"];
         const double lowest = x.q.dtype() == f32 ? -3.4028234663852886e38 : -1.7e308;
         return x.sum(softmax(x.scores() * m + lowest * (1 - m), "k"));
       },
       [](const Extras& x) {
         return scored([x](double s, const ScoreAt& i) {
           return x.mask.at({i.q, i.k}) != 0 ? s * 0.5 : -INFINITY;
         });
       }},
      {"a dense mask",
       [](const Operands& x) { return x.sum(softmax(mask(x.scores(), Expr(x["mask"]) > 0), "k")); },
       [](const Extras& x) {
         return scored([x](double s, const ScoreAt& i) {
           return x.mask.at({i.q, i.k}) != 0 ? s * 0.5 : -INFINITY;
         });
       }},
      {"lengths",
       [](const Operands& x) {
         const Tensor n = x["lengths"].astype(i64);
         return x.sum(softmax(mask(x.scores(), lengths(n, "b", "k")), "k"));
       },
       [](const Extras& x) {
         return scored([x](double s, const ScoreAt& i) {
           return static_cast<double>(i.k) < x.lengths.at({i.b}) ? s * 0.5 : -INFINITY;
         });
       }},
      {"rows without a key", [](const Operands& x) { return x.sum(softmax(late_scores(x), "k")); },
       late},
  };
}

}  // namespace

TEST_SUITE("attention") {
  TEST_CASE("layouts and groups of heads stream") {
    for (const Form& form : layouts()) check_form(form);
  }
  TEST_CASE("whatever is elementwise over the scores streams") {
    for (const Form& form : scores()) check_form(form);
  }
}
