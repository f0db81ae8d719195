// SPDX-License-Identifier: Apache-2.0
// Which programs fuse: every spelling of attention, against the plain route; near misses stay
// plain.
#include <doctest/doctest.h>

#include <functional>
#include <string>
#include <vector>

#include "graph_words.h"

using namespace einkern;
using namespace einkern::test;

namespace {

/// Does evaluating this run a streamed pass, and no softmax over a score tensor?
bool fuses(const std::vector<Expr>& exprs) {
  const std::string text = explain(exprs);
  return text.find(" attend ") != std::string::npos && text.find(" softmax ") == std::string::npos;
}

double worst(const Tensor& got, const Tensor& want) {
  CHECK(got.shape() == want.shape());
  const auto a = got.to_vector<double>(), b = want.to_vector<double>();
  double error = 0;
  for (std::size_t i = 0; i < a.size(); ++i) {
    if (a[i] != b[i]) error = std::max(error, std::abs(a[i] - b[i]));
    if (std::isnan(a[i]) != std::isnan(b[i])) return HUGE_VAL;
  }
  return error;
}

struct Form {
  std::string name;
  std::function<Expr(DType)> build;
};

Tensor rnd(const Shape& shape, std::uint64_t seed, DType dtype) {
  return mul(sub(random(shape, seed, dtype), 0.5), 2.0);
}

Expr softmax_over(const Expr& s, const std::vector<std::size_t>& axes,
                  const std::optional<Expr>& sink = {}) {
  return graph::softmax("softmax", plan::SoftmaxKind::softmax, s, axes, sink);
}
Expr causal(const Expr& s) { return select(less_equal(index("k"), index("q")), s, -HUGE_VAL); }
Expr tanh(const Expr& x) { return graph::elementwise("tanh", map::Op::tanh, {x}); }

/// Forms that must fuse; a form that stops fusing fails its test.
const std::vector<Form>& forms() {
  static const std::vector<Form> all = {
      {"plain, no batch",
       [](DType t) {
         const Expr s = div(einsum("qd,kd->qk", {rnd({5, 8}, 1, t), rnd({7, 8}, 2, t)}), 2.8);
         return einsum("qk,ke->qe", {softmax(s, 1), rnd({7, 3}, 3, t)});
       }},
      {"heads second, causal",
       [](DType t) {
         const Expr s = mul(
             einsum("bhqd,bhkd->bhqk", {rnd({2, 3, 9, 4}, 1, t), rnd({2, 3, 9, 4}, 2, t)}), 0.5);
         return einsum("bhqk,bhkd->bhqd", {softmax(causal(s), 3), rnd({2, 3, 9, 4}, 3, t)});
       }},
      {"heads third, keys transposed, operands swapped",
       [](DType t) {
         const Expr s =
             einsum("bdkh,bqhd->bhqk", {rnd({2, 4, 6, 3}, 2, t), rnd({2, 5, 3, 4}, 1, t)});
         return einsum("bkhd,bhqk->bqhd", {rnd({2, 6, 3, 4}, 3, t), softmax(s, 3)});
       }},
      {"scores stored keys first",
       [](DType t) {
         const Expr s = einsum("qd,kd->kq", {rnd({5, 8}, 1, t), rnd({7, 8}, 2, t)});
         return einsum("kq,ke->eq", {softmax(causal(s), 0), rnd({7, 3}, 3, t)});
       }},
      {"scale on q, bias by name, soft-cap",
       [](DType t) {
         const Expr q = mul(rnd({2, 5, 4}, 1, t), 0.7);
         const Expr s = einsum("hqd,hkd->hqk", {q, rnd({2, 6, 4}, 2, t)});
         const Expr capped = mul(tanh(div(s, 3)), 3);
         const Expr biased =
             add(capped, mul(named(rnd({2}, 4, t), "h"), sub(index("k"), index("q"))));
         return einsum("hqk,hkd->hqd", {softmax(causal(biased), 2), rnd({2, 6, 4}, 3, t)});
       }},
      {"grouped heads as a label",
       [](DType t) {
         const Expr s =
             einsum("bhgqd,bhkd->bhgqk", {rnd({2, 3, 2, 5, 4}, 1, t), rnd({2, 3, 6, 4}, 2, t)});
         return einsum("bhgqk,bhkd->bhgqd", {softmax(s, 4), rnd({2, 3, 6, 4}, 3, t)});
       }},
      {"grouped heads split and merged on the way, options on the merged axis",
       [](DType t) {
         const Expr q = graph::split("split", rnd({6, 5, 4}, 1, t), 0, {"g", "r"}, {3, 2});
         const Expr dot = einsum("grqd,gkd->grqk", {q, rnd({3, 6, 4}, 2, t)});
         const Expr s = label(graph::merge("merge", dot, 0, 2, "h"), {"h", "q", "k"});
         const Expr biased = add(s, mul(named(rnd({6}, 4, t), "h"), index("k")));
         const Expr seen =
             select(less_equal(index("k"), add(index("q"), index("h"))), biased, -HUGE_VAL);
         const Expr p = graph::split("split", softmax(seen, 2), 0, {"g", "r"}, {3, 2});
         return graph::merge("merge", einsum("grqk,gkd->grqd", {p, rnd({3, 6, 4}, 3, t)}), 0, 2,
                             "h");
       }},
      {"image attention: several streamed labels",
       [](DType t) {
         const Expr s =
             einsum("nxyc,nuvc->nxyuv", {rnd({2, 3, 4, 5}, 1, t), rnd({2, 3, 2, 5}, 2, t)});
         return einsum("nxyuv,nuvc->nxyc", {softmax_over(s, {3, 4}), rnd({2, 3, 2, 5}, 3, t)});
       }},
      {"several inner and column labels",
       [](DType t) {
         const Expr s = einsum("qab,kba->qk", {rnd({5, 2, 3}, 1, t), rnd({7, 3, 2}, 2, t)});
         return einsum("qk,kef->fqe", {softmax(s, 1), rnd({7, 2, 3}, 3, t)});
       }},
      {"a dense boolean mask and a key bias",
       [](DType t) {
         const Expr s = einsum("hqd,hkd->hqk", {rnd({2, 5, 4}, 1, t), rnd({2, 6, 4}, 2, t)});
         const Expr seen = less_equal(rnd({5, 6}, 4, t), 0.3);
         return einsum("hqk,hkd->hqd", {softmax(select(seen, add(s, rnd({6}, 5, t)), -HUGE_VAL), 2),
                                        rnd({2, 6, 4}, 3, t)});
       }},
      {"causal by adding 0 and -inf",
       [](DType t) {
         const Expr s =
             label(einsum("qd,kd->qk", {rnd({5, 8}, 1, t), rnd({5, 8}, 2, t)}), {"q", "k"});
         const Tensor bias = select(less_equal(index("k"), index("q")),
                                    label(zeros({5, 5}, t), {"q", "k"}), -HUGE_VAL);
         return einsum("qk,ke->qe", {softmax(add(s, bias), 1), rnd({5, 3}, 3, t)});
       }},
      {"a sink per head",
       [](DType t) {
         const Expr s = einsum("hqd,hkd->hqk", {rnd({2, 5, 4}, 1, t), rnd({2, 6, 4}, 2, t)});
         return einsum("hqk,hkd->hqd",
                       {softmax_over(s, {2}, named(rnd({2}, 4, t), "h")), rnd({2, 6, 4}, 3, t)});
       }},
      {"keys shared by all heads, a batch label that only a bias has",
       [](DType t) {
         const Expr s = einsum("hqd,kd->hqk", {rnd({2, 5, 4}, 1, t), rnd({6, 4}, 2, t)});
         const Expr wide = add(s, rnd({3, 1, 1, 6}, 4, t));
         return einsum("nhqk,kd->nhqd", {softmax(wide, 3), rnd({6, 4}, 3, t)});
       }},
      {"the output projection in the same einsum",
       [](DType t) {
         const Expr s =
             einsum("bhqd,bhkd->bhqk", {rnd({2, 3, 5, 4}, 1, t), rnd({2, 3, 6, 4}, 2, t)});
         return einsum("bhqk,hde,bhkd->bqe",
                       {softmax(causal(s), 3), rnd({3, 4, 7}, 4, t), rnd({2, 3, 6, 4}, 3, t)});
       }},
      {"a row that is summed after",
       [](DType t) {
         const Expr s = einsum("hqd,hkd->hqk", {rnd({2, 5, 4}, 1, t), rnd({2, 6, 4}, 2, t)});
         return einsum("hqk,hkd->hd", {softmax(s, 2), rnd({2, 6, 4}, 3, t)});
       }},
  };
  return all;
}

}  // namespace

TEST_SUITE("graph") {
  TEST_CASE("every spelling of attention fuses and equals the plain route") {
    for (const Form& form : forms()) {
      CAPTURE(form.name);
      for (const DType dtype : {f32, f64}) {
        const Expr output = form.build(dtype);
        CHECK(fuses({output}));
        const Tensor fused = output;
        const Tensor plain = eval(output, {.fuse = false});
        CHECK(worst(fused, plain) < (dtype == f32 ? 1e-6 : 1e-14));
      }
    }
  }

  TEST_CASE("logsumexp comes from the same pass") {
    const Expr s = einsum("hqd,hkd->hqk", {rnd({2, 5, 4}, 1, f64), rnd({2, 6, 4}, 2, f64)});
    const Expr masked = causal(s);
    const Expr output = einsum("hqk,hkd->hqd", {softmax(masked, 2), rnd({2, 6, 4}, 3, f64)});
    const Expr lse = graph::softmax("logsumexp", plan::SoftmaxKind::logsumexp, masked, {2});
    CHECK(fuses({output, lse}));
    CHECK(explain({output, lse}).find("matmul") == std::string::npos);
    const auto fused = eval({output, lse});
    const auto plain = eval({output, lse}, {.fuse = false});
    CHECK(worst(fused[0], plain[0]) < 1e-14);
    CHECK(worst(fused[1], plain[1]) < 1e-14);
  }

  TEST_CASE("what is no streamed pair stays plain, and right, and the plan says why") {
    const Tensor q = rnd({2, 5, 4}, 1, f64), k = rnd({2, 6, 4}, 2, f64), v = rnd({2, 6, 4}, 3, f64);
    const Expr s = einsum("hqd,hkd->hqk", {q, k});
    const Expr p = softmax(s, 2);
    const auto sum = [&](const Expr& weights) { return einsum("hqk,hkd->hqd", {weights, v}); };
    const auto reduced = [](plan::ReduceOp op, const Expr& x) {
      return graph::reduce("reduce", op, x, {2}, true);
    };
    const Expr e = exp(s);
    const std::string weights = "weights (h=2, q=5, k=6), 480 bytes: ";
    struct Miss {
      std::string name;
      std::vector<Expr> exprs;
      std::string why;
    };
    const Tensor one_key = rnd({1, 4}, 5, f64), few_keys = rnd({4, 4}, 6, f64);
    const std::vector<Miss> misses = {
        {"one key",
         {einsum("qk,ke->qe",
                 {softmax(einsum("qd,kd->qk", {rnd({9, 4}, 1, f64), one_key}), 1), one_key})},
         "weights (q=9, k=1), 72 bytes: so few scores (one key, or 16 of one head) cost less "
         "apart"},
        {"few scores",
         {einsum("qk,ke->qe",
                 {softmax(einsum("qd,kd->qk", {rnd({4, 4}, 1, f64), few_keys}), 1), few_keys})},
         "so few scores (one key, or 16 of one head) cost less apart"},
        {"weights wanted as well", {sum(p), p}, weights + "the weights are wanted elsewhere too"},
        {"normalised over what is kept",
         {sum(softmax(s, 1))},
         weights + "the einsum keeps an axis that the softmax runs over"},
        {"talking heads",
         {einsum("gqk,gkd->gqd", {softmax(einsum("hqk,hg->gqk", {s, rnd({2, 2}, 4, f64)}), 2), v})},
         "the keys have an axis that the values lack, as of other heads"},
        {"relative positions",
         {sum(softmax(add(s, einsum("hqd,hqkd->hqk", {q, rnd({2, 5, 6, 4}, 4, f64)})), 2))},
         weights + "the scores are made of two products"},
        {"weights changed in between",
         {sum(exp(p))},
         weights + "what changes the weights is not linear in them"},
        {"weights squared", {sum(mul(p, p))}, weights + "the weights are wanted elsewhere too"},
        {"part of the weights",
         {einsum("hqk,hkd->hqd",
                 {graph::slice("slice", p, 2, 0, 3, 1), graph::slice("slice", v, 1, 0, 3, 1)})},
         weights + "only a slice of the weights is summed"},
        {"by hand, without the maximum",
         {sum(div(e, reduced(plan::ReduceOp::sum, e)))},
         weights + "no maximum is subtracted before exp"},
        {"by hand, with another maximum",
         {sum(div(
             exp(sub(s, reduced(plan::ReduceOp::max, mul(s, 2)))),
             reduced(plan::ReduceOp::sum, exp(sub(s, reduced(plan::ReduceOp::max, mul(s, 2)))))))},
         weights + "what is subtracted before exp is no maximum of the same scores"},
        {"weights of another dtype",
         {sum(graph::cast(softmax(graph::cast(s, f32), 2), f64))},
         "weights (h=2, q=5, k=6), 240 bytes: "
         "what changes the weights is not linear in them"},
        {"scores that were given",
         {sum(softmax(rnd({2, 5, 6}, 5, f64), 2))},
         "no einsum with all the axes that are summed makes the scores"},
    };
    for (const Miss& miss : misses) {
      CAPTURE(miss.name);
      CHECK(explain(miss.exprs).find(" attend ") == std::string::npos);
      CHECK(explain(miss.exprs).find("not fused: weights (") != std::string::npos);
      CHECK_MESSAGE(explain(miss.exprs).find(miss.why + "\n") != std::string::npos,
                    explain(miss.exprs));
      CHECK(explain_json(miss.exprs).find(miss.why + "\"]") != std::string::npos);
      const auto value = eval(miss.exprs), plain = eval(miss.exprs, {.fuse = false});
      CHECK(value[0].to_vector<double>() == plain[0].to_vector<double>());
    }
    CHECK(explain({sum(p)}).find("not fused") == std::string::npos);
  }

  TEST_CASE("hidden keys contribute nothing on the fused route either") {
    const Tensor values = tensor<double>({1, 2, NAN, HUGE_VAL, 3}, {5, 1});
    const Expr s = einsum("qd,kd->qk", {zeros({5, 2}, f64), ones({5, 2}, f64)});
    const Expr output = einsum("qk,kd->qd", {softmax(causal(s), 1), values});
    CHECK(fuses({output}));
    const Tensor out = output;
    CHECK(out(0, 0).item<double>() == 1);
    CHECK(out(1, 0).item<double>() == 1.5);
    CHECK(std::isnan(out(2, 0).item<double>()));
    CHECK(std::isnan(out(3, 0).item<double>()));
  }
}
