// SPDX-License-Identifier: Apache-2.0
// Types, dtypes and error texts of nodes, without evaluating any.
#include <doctest/doctest.h>

#include "graph_words.h"

using namespace einkern;
using namespace einkern::test;

TEST_SUITE("graph") {
  TEST_CASE("scalars are weak, tensors promote") {
    const Expr a32 = zeros({2}, f32), a64 = zeros({2}, f64), n = zeros({2}, i64),
               b = zeros({2}, boolean);
    CHECK(add(a32, 1).dtype() == f32);
    CHECK(add(a32, 1.5).dtype() == f32);
    CHECK(add(a32, a64).dtype() == f64);
    CHECK(add(a32, n).dtype() == f32);
    CHECK(add(n, 1).dtype() == i64);
    CHECK(add(n, 0.5).dtype() == f64);
    CHECK(add(b, b).dtype() == i64);
    CHECK(add(zeros({2}, i8), zeros({2}, i8)).dtype() == i64);
    CHECK(div(n, n).dtype() == f64);
    CHECK(div(a32, 2).dtype() == f32);
    CHECK(exp(n).dtype() == f64);
    CHECK(less_equal(n, 0.5).dtype() == boolean);
    // Terms of index and scalars stay weak, so they do not widen either.
    CHECK(add(label(a32, {"k"}), mul(index("k"), 0.5)).dtype() == f32);
    CHECK(add(label(a32, {"k"}), div(index("k"), 3)).dtype() == f32);
    CHECK(add(label(n, {"k"}), index("k")).dtype() == i64);
    CHECK(select(b, a32, -HUGE_VAL).dtype() == f32);
    CHECK(softmax(n, 0).dtype() == f64);
  }

  TEST_CASE("a weak float term runs in the float that it meets") {
    const Tensor third = add(label(zeros({4}, f32), {"k"}), div(index("k"), 3));
    for (int k = 0; k < 4; ++k) CHECK(third(k).item<float>() == static_cast<float>(k) / 3.0F);
  }

  TEST_CASE("dtypes that an operation does not take") {
    const Expr x = zeros({2}, f32), b = zeros({2}, boolean);
    CHECK_THROWS_WITH_AS(select(x, x, x), "where: operand 0 is f32, not bool", TypeError);
    CHECK_THROWS_WITH_AS(less_equal(b, b), "less_equal: operand 0 is bool, which has no order",
                         TypeError);
    CHECK_THROWS_WITH_AS(graph::elementwise("&&", map::Op::logical_and, {b, x}),
                         "&&: operand 1 is f32, not bool", TypeError);
    CHECK_THROWS_WITH_AS(einsum("i->", {b}),
                         "einsum: operand 0 is bool; convert it with astype first", TypeError);
    CHECK_THROWS_WITH_AS(BoolExpr{x}, "BoolExpr: the expression is f32, not bool", TypeError);
  }

  TEST_CASE("axes that are not there") {
    const Expr s = label(zeros({2, 3}, f32), {"q", "k"});
    CHECK_THROWS_WITH_AS(graph::permute("permute", s, {0, 0}),
                         "permute: the order [0, 0] is not one of all 2 axes of (q=2, k=3)",
                         ShapeError);
    CHECK_THROWS_WITH_AS(graph::resolve_axes("sum", s, {Axis("q"), Axis(0)}),
                         "sum: axis 0 is named twice", ShapeError);
    CHECK_THROWS_WITH_AS(graph::split("split", s, 1, {"a", "b"}, {2, -1}),
                         "split: axis 1 of size 3 does not split into (2, -1)", ShapeError);
    CHECK_THROWS_WITH_AS(graph::split("split", s, 1, {"a", "b"}, {-1, -1}),
                         "split: sizes (-1, -1) have two of -1", ShapeError);
    CHECK_THROWS_WITH_AS(graph::merge("merge", s, 1, 2, "m"),
                         "merge: 2 axes from axis 1 are not among (q=2, k=3)", ShapeError);
    CHECK_THROWS_WITH_AS(graph::slice("slice", s, 0, {}, {}, 0), "slice: step is 0", ValueError);
    CHECK_THROWS_WITH_AS(s["qkv"], "[]: 3 labels (q, k, v) for the 2 axes of (q=2, k=3)",
                         ShapeError);
    CHECK_THROWS_WITH_AS(
        graph::concat("concat", {s, zeros({3, 3}, f32)}, 1),
        "concat: part 1 is (3, 3) but part 0 is (q=2, k=3); only axis 1 may differ", ShapeError);
    CHECK_THROWS_WITH_AS(graph::reduce("max", plan::ReduceOp::max, zeros({2, 0}, f32), {1}),
                         "max: axis 1 of (2, 0) is empty and has no max", ValueError);
  }

  TEST_CASE("einsum errors are raised when the expression is built") {
    CHECK_THROWS_WITH_AS(einsum("bhqd,bhkd->bhqk", {zeros({1, 2, 3, 64}), zeros({1, 2, 3, 32})}),
                         "einsum: label 'd' is 64 in operand 0 but 32 in operand 1\n"
                         "    bhqd,bhkd->bhqk\n"
                         "       ^    ^",
                         ShapeError);
    CHECK_THROWS_AS(einsum("ij-", {zeros({2, 2})}), SyntaxError);
    CHECK(einsum("qd,kd->qk", {zeros({2, 4}), zeros({3, 4})}).labels()[1] == "k");
  }
}
