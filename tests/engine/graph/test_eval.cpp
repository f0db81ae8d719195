// SPDX-License-Identifier: Apache-2.0
// Evaluation: lazy, shared, cached, into the caller's memory.
#include <doctest/doctest.h>

#include <thread>

#include "../../../engine/graph/compiled.h"
#include "../../../engine/graph/walk.h"
#include "graph_words.h"

using namespace einkern;
using namespace einkern::test;

namespace {

std::size_t count_of(const std::string& text, const std::string& word) {
  std::size_t count = 0;
  for (std::size_t at = text.find(word); at != std::string::npos; at = text.find(word, at + 1))
    ++count;
  return count;
}

}  // namespace

TEST_SUITE("graph") {
  TEST_CASE("an expression reads its leaves when it is evaluated") {
    const Tensor x = full({3}, 2, f64);
    const Expr doubled = mul(x, 2);
    CHECK(Tensor(doubled).to_vector<double>() == std::vector<double>{4, 4, 4});
    x.fill(5);
    CHECK(Tensor(doubled).to_vector<double>() == std::vector<double>{10, 10, 10});
  }

  TEST_CASE("an evaluated function never aliases its inputs") {
    const Tensor x = counted({2, 3});
    for (const Expr& same : {Expr(x), graph::permute("permute", x, {0, 1}), einsum("ij->ij", {x}),
                             graph::permute("permute", x, {1, 0})}) {
      const Tensor value = same;
      CHECK(value.is_contiguous());
      value.fill(-1);
      CHECK(x(1, 2).item<double>() == 5);
    }
  }

  TEST_CASE("views are free: a permuted, sliced and split operand costs no step") {
    const Tensor x = counted({4, 6});
    const Expr view = graph::split(
        "split", graph::slice("slice", graph::permute("permute", x, {1, 0}), 0, 5, {}, -1), 0,
        {"a", "b"}, {2, 3});
    const Tensor sum = graph::reduce("sum", plan::ReduceOp::sum, view, {1});
    CHECK(sum.shape() == Shape{2, 4});
    for (int a = 0; a < 2; ++a) {
      for (int j = 0; j < 4; ++j) {
        double expected = 0;
        for (int b = 0; b < 3; ++b) expected += 6 * j + (5 - (3 * a + b));
        CHECK(sum(a, j).item<double>() == expected);
      }
    }
    CHECK(count_of(explain({graph::reduce("sum", plan::ReduceOp::sum, view, {1})}), "copy ") == 0);
  }

  TEST_CASE("a result seen through views is written where it belongs, without a copy") {
    const Tensor a = random({4, 6}, 1, f64), b = random({6, 6}, 2, f64);
    const Expr product = einsum("ij,jk->ik", {a, b});
    const Expr turned = graph::permute(
        "permute", graph::split("split", label(product, {"x", "y"}), 1, {"p", "q"}, {2, 3}),
        {1, 2, 0});
    const Expr joined = graph::merge("merge", product, 0, 2, "m");
    CHECK(count_of(explain({turned}), " copy ") == 0);
    CHECK(count_of(explain({joined}), " copy ") == 0);
    const Tensor plain = product, seen = turned;
    CHECK(seen.shape() == Shape{2, 3, 4});
    for (int i = 0; i < 4; ++i) {
      for (int k = 0; k < 6; ++k) {
        CHECK(seen(k / 3, k % 3, i).item<double>() == plain(i, k).item<double>());
      }
    }
    CHECK(Tensor(joined).to_vector<double>() == plain.to_vector<double>());
    // Both at once: one of the two is a copy of the other.
    const auto both = eval({turned, product, joined});
    CHECK(both[0].to_vector<double>() == seen.to_vector<double>());
    CHECK(both[1].to_vector<double>() == plain.to_vector<double>());
    CHECK(both[2].to_vector<double>() == plain.to_vector<double>());
    // A view of a leaf, of an empty tensor, of a node that another root writes elsewhere.
    CHECK(Tensor(graph::merge("merge", a, 0, 2, "m")).to_vector<double>() == a.to_vector<double>());
    CHECK(Tensor(graph::merge("merge", add(zeros({0, 3}), 1), 0, 2, "m")).size() == 0);
  }

  TEST_CASE("merging axes that do not nest copies, and is right") {
    const Tensor x = counted({2, 3, 4});
    const Tensor merged = graph::merge("merge", graph::permute("permute", x, {2, 0, 1}), 0, 2, "m");
    CHECK(merged.shape() == Shape{8, 3});
    CHECK(merged(2 * 2 + 1, 2).item<double>() == 12 + 4 * 2 + 2);  // element (a=1, b=2, c=2) of x
    CHECK(Tensor(graph::merge("merge", x, 0, 3, "m")).to_vector<double>() == x.to_vector<double>());
  }

  TEST_CASE("concat and expand") {
    const Tensor joined = graph::concat("concat", {counted({2, 1}), counted({2, 2})}, 1);
    CHECK(joined.to_vector<double>() == std::vector<double>{0, 0, 1, 1, 2, 3});
    const Tensor grown = graph::expand("expand", counted({2}), 0, "n", 3);
    CHECK(grown.to_vector<double>() == std::vector<double>{0, 1, 0, 1, 0, 1});
    CHECK(grown.labels()[0] == "n");
    CHECK(Tensor(graph::concat("concat", {zeros({0, 2}, f32), ones({1, 2}, i64)}, 0)).dtype() ==
          f32);
  }

  TEST_CASE("equal sub-expressions of one evaluation are computed once") {
    const Tensor a = random({8, 8}, 1, f64);
    const auto product = [&] { return einsum("ij,jk->ik", {a, a}); };
    const std::string text = explain({exp(product()), softmax(product(), 1)});
    CHECK(count_of(text, "matmul") + count_of(text, "small_batched") == 1);
    const auto [e, s] = eval(exp(product()), softmax(product(), 1));
    CHECK(allclose(Tensor(exp(product())), e));
    CHECK(allclose(Tensor(softmax(product(), 1)), s));
    CHECK(eval({Expr(a), Expr(a)}).size() == 2);
  }

  TEST_CASE("scalars are operands of the plan, not part of its key") {
    const Tensor x = random({16}, 1, f64);
    Tensor warm = div(mul(x, 0.25), 3.5);
    const std::int64_t before = plans_made();
    for (int i = 1; i < 20; ++i) {
      const Tensor y = div(mul(x, 0.5 + i), 4.0 + i);
      CHECK(y(3).item<double>() == x(3).item<double>() * (0.5 + i) / (4.0 + i));
    }
    CHECK(plans_made() == before);
    // Equal scalars share a slot: that is structure, and a plan of its own.
    const Tensor y = div(mul(x, 7), 7);
    CHECK(y(3).item<double>() == x(3).item<double>() * 7 / 7);
    warm = mul(x, 2);
    CHECK(warm(0).item<double>() == x(0).item<double>() * 2);
  }

  TEST_CASE("every way of running gives the same bits without fusion") {
    const Expr s = label(random({3, 5, 7}, 3, f32), {"h", "q", "k"});
    const Expr masked = select(less_equal(index("k"), index("q")), add(mul(s, 2), 1), -HUGE_VAL);
    const Tensor fused = softmax(masked, 2);
    const Tensor plain = eval(softmax(masked, 2), {.fuse = false});
    CHECK(fused.to_vector<float>() == plain.to_vector<float>());
  }

  TEST_CASE("eval_into and einsum_into write into any strided tensor") {
    const Tensor a = counted({2, 3}), b = counted({3, 2});
    const Tensor memory = full({4, 6}, -1, f64);
    const Tensor out = memory.slice(0, 3, {}, -2).slice(1, 1, 5, 3);
    einsum_into(out, "ij,jk->ik", {a, b});
    CHECK(out.to_vector<double>() == std::vector<double>{10, 13, 28, 40});
    CHECK(memory(0, 0).item<double>() == -1);
    einsum_into(out, "ij,jk->ik", {a, b}, {.alpha = 2, .beta = 3});
    CHECK(out.to_vector<double>() == std::vector<double>{50, 65, 140, 200});
    einsum_into(out, "ij,jk->ik", std::vector<Expr>{a, b}, {.threads = 2});
    CHECK(out.to_vector<double>() == std::vector<double>{10, 13, 28, 40});
    const Tensor nan = full({2, 2}, NAN, f64);
    einsum_into(nan, "ij,jk->ik", {a, b}, {.alpha = 0.5, .beta = 0});
    CHECK(nan(1, 1).item<double>() == 20);
  }

  TEST_CASE("einsum_into where out overlaps an operand") {
    const Tensor a = counted({3, 3});
    const std::vector<double> transposed{0, 3, 6, 1, 4, 7, 2, 5, 8};
    einsum_into(a, "ij->ji", {a});
    CHECK(a.to_vector<double>() == transposed);
    const Tensor x = counted({4});
    einsum_into(x.slice(0, 1, {}), "i->i", {x.slice(0, 0, 3)}, {.alpha = 2, .beta = 1});
    CHECK(x.to_vector<double>() == std::vector<double>{0, 1, 4, 7});
  }

  TEST_CASE("a repeated output label writes the diagonal; beta reaches the rest") {
    const Tensor out = full({2, 2}, 1, f64);
    einsum_into(out, "i->ii", {tensor<double>({3, 4})}, {.beta = 10});
    CHECK(out.to_vector<double>() == std::vector<double>{13, 10, 10, 14});
    const Tensor empty_sum = full({2}, 5, f64);
    einsum_into(empty_sum, "ij->i", {zeros({2, 0}, f64)}, {.beta = 2});
    CHECK(empty_sum.to_vector<double>() == std::vector<double>{10, 10});
    const Tensor whole = full({2}, 3, i64);
    einsum_into(whole, "i->i", {tensor<std::int64_t>({1, 2})}, {.alpha = 2, .beta = -1});
    CHECK(whole.to_vector<std::int64_t>() == std::vector<std::int64_t>{-1, 1});
  }

  TEST_CASE("outputs that cannot take the value") {
    const Tensor a = zeros({2, 2}, f64);
    CHECK_THROWS_WITH_AS(einsum_into(zeros({2, 3}, f64), "ij->ji", {a}),
                         "einsum_into: the result is (j=2, i=2) but out is (2, 3)", ShapeError);
    CHECK_THROWS_WITH_AS(einsum_into(zeros({2, 2}, f32), "ij->ji", {a}),
                         "einsum_into: the result is f64 but out is f32", TypeError);
    CHECK_THROWS_AS(einsum_into(zeros({2}, f64).broadcast({2, 2}), "ij->ji", {a}), ValueError);
  }

  TEST_CASE("integer overflow leaves the output untouched") {
    const Tensor big = full({2}, 0x1p62, i64), out = full({2}, 7, i64);
    CHECK_THROWS_AS(eval_into(out, mul(big, 4)), ValueError);
    CHECK_THROWS_AS(einsum_into(out, "i,i->i", {big, big}), ValueError);
    CHECK(out.to_vector<std::int64_t>() == std::vector<std::int64_t>{7, 7});
  }

  TEST_CASE("a graph of a million nodes is built, walked and destroyed without recursion") {
    const Tensor one = full({1}, 1, f64);
    Expr deep = one;
    for (int i = 1; i < 1'000'000; ++i) deep = exp(deep);
    CHECK(graph::topological_order({deep.node()}).size() == 1'000'000);
    Expr sum = one;
    for (int i = 0; i < 50'000; ++i) sum = add(sum, one);
    CHECK(Tensor(sum).item<double>() == 50'001);
    Expr open = index("k");
    for (int i = 0; i < 1000; ++i) open = add(open, 1);
    CHECK(Tensor(add(label(zeros({2}, f64), {"k"}), open))(1).item<double>() == 1001);
    // A graph whose paths are more than any walk could count.
    Expr wide = one;
    for (int i = 0; i < 60; ++i) wide = add(wide, wide);
    CHECK(Tensor(wide).item<double>() == 0x1p60);
  }

  TEST_CASE("hidden keys contribute nothing, whatever their values hold") {
    const double kInf = HUGE_VAL;
    const Tensor values = tensor<double>({1, 2, NAN, kInf}, {4, 1});
    const Expr s = label(zeros({4, 4}, f64), {"q", "k"});
    const Expr masked = select(less_equal(index("k"), index("q")), s, -kInf);
    const Tensor out = einsum("qk,kd->qd", {softmax(masked, 1), values});
    CHECK(out(0, 0).item<double>() == 1);
    CHECK(out(1, 0).item<double>() == 1.5);
    CHECK(std::isnan(out(2, 0).item<double>()));
    // By arithmetic, -inf is IEEE: 0 * NaN is NaN.
    const Tensor bias = tensor<double>({0, 0, -kInf, -kInf});
    const Tensor ieee = einsum("qk,kd->qd", {softmax(add(s, bias), 1), values});
    CHECK(std::isnan(ieee(0, 0).item<double>()));
    // Weights that were made a Tensor are numbers like any others.
    const Tensor weights = softmax(masked, 1);
    CHECK(std::isnan(Tensor(einsum("qk,kd->qd", {weights, values}))(0, 0).item<double>()));
    // Negated conditions, finite bias on top, views between, a third operand, several heads.
    const Expr inverse = select(less_equal(add(index("q"), 1), index("k")), -kInf, s);
    const Expr turned = graph::permute("permute", softmax(add(inverse, 3), 1), {1, 0});
    const Tensor through = einsum("kq,kd,d->qd", {turned, values, tensor<double>({2})});
    CHECK(through(1, 0).item<double>() == 3);
    const Tensor plain =
        eval(einsum("kq,kd,d->qd", {turned, values, tensor<double>({2})}), {.fuse = false});
    CHECK(plain(1, 0).item<double>() == 3);
  }

  TEST_CASE("compiled plans check their inputs and serve many threads") {
    const Expr q = input(f32, {2, dyn("q"), 4}, "hqd"), k = input(f32, {2, dyn("k"), 4}, "hkd");
    const Expr s = einsum("hqd,hkd->hqk", {q, k});
    const Expr masked = select(less_equal(index("k"), index("q")), s, -HUGE_VAL);
    const Compiled f = compile({q, k}, {softmax(masked, 2), s});
    const auto check = [&](std::int64_t nq, std::int64_t nk) {
      const Tensor tq = random({2, nq, 4}, 1), tk = random({2, nk, 4}, 2);
      const auto got = f({tq, tk});
      const Tensor scores = einsum("hqd,hkd->hqk", {tq, tk});
      const Tensor want = softmax(select(less_equal(index("k"), index("q")), scores, -HUGE_VAL), 2);
      CHECK(got[1].to_vector<float>() == scores.to_vector<float>());
      CHECK(got[0].to_vector<float>() == want.to_vector<float>());
      CHECK(got[0].labels()[2] == "k");
    };
    std::vector<std::thread> threads;
    for (int t = 0; t < 4; ++t) {
      threads.emplace_back([&, t] {
        for (std::int64_t n = 1; n < 6; ++n) f({zeros({2, n, 4}), zeros({2, t + 1, 4})});
      });
    }
    for (std::thread& thread : threads) thread.join();
    check(3, 5);
    check(1, 1);
    CHECK_THROWS_WITH_AS(f({zeros({2, 3, 4})}), "compiled: 1 inputs given for 2 declared",
                         ShapeError);
    CHECK_THROWS_WITH_AS(f({zeros({2, 3, 5}), zeros({2, 3, 4})}),
                         "compiled: input 0 is (2, 3, 5) but was declared (h=2, q=q, d=4)",
                         ShapeError);
    CHECK_THROWS_WITH_AS(f({zeros({2, 3, 4}, f64), zeros({2, 3, 4})}),
                         "compiled: input 0 is f64 but was declared f32", TypeError);
    CHECK_THROWS_WITH_AS(
        compile({q}, {s}),
        "compile: an output uses a placeholder (h=2, k=k, d=4) that is not an input", ValueError);
    CHECK_THROWS_WITH_AS(eval(s),
                         "eval: the expression has placeholders; compile it and call the result",
                         ValueError);
  }

  TEST_CASE("compiled plans write into outputs, overlapping inputs included") {
    const Expr x = input(f64, {dyn("n")});
    const Compiled f = compile({x}, {add(x, 1)});
    const Tensor memory = counted({5});
    f.into({memory.slice(0, 1, {})}, {memory.slice(0, 0, 4)});
    CHECK(memory.to_vector<double>() == std::vector<double>{0, 1, 2, 3, 4});
    const Expr y = input(f64, {dyn("n")});
    CHECK_THROWS_WITH_AS(compile({x, y}, {add(x, y)})({zeros({2}, f64), zeros({3}, f64)}),
                         "compiled: size 'n' is 2 but axis 0 of input 1 is 3", ShapeError);
  }
}
