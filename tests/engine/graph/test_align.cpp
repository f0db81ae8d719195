// SPDX-License-Identifier: Apache-2.0
// Alignment by position and by name, against element formulas.
#include <doctest/doctest.h>

#include "graph_words.h"

using namespace einkern;
using namespace einkern::test;

TEST_SUITE("graph") {
  TEST_CASE("ordinary operands align by position from the right") {
    const Tensor a = counted({2, 3}), b = counted({3});
    const Tensor sum = add(a, b);
    CHECK(sum.shape() == Shape{2, 3});
    for (int i = 0; i < 2; ++i) {
      for (int j = 0; j < 3; ++j) CHECK(sum(i, j).item<double>() == 3 * i + j + j);
    }
    CHECK(Tensor(add(counted({2, 1}), counted({1, 3}))).shape() == Shape{2, 3});
    CHECK(Tensor(add(counted({0, 1}), counted({3}))).shape() == Shape{0, 3});
    CHECK_THROWS_WITH_AS(add(a, counted({2})), "add: axis -1 has size 3 and 2 in (2, 3) and (2,)",
                         ShapeError);
    CHECK_THROWS_WITH_AS(add(label(a, {"q", "k"}), counted({4, 3})),
                         "add: axis 'q' has size 2 and 4 in (q=2, k=3) and (4, 3)", ShapeError);
  }

  TEST_CASE("different labels at one position are an error, never a silent transpose") {
    const Expr a = label(counted({3, 3}), {"q", "k"}), b = label(counted({3, 3}), {"k", "q"});
    CHECK_THROWS_WITH_AS(
        add(a, b),
        "add: axes labelled 'k' and 'q' meet at position -1 of (q=3, k=3) and (k=3, q=3); permute "
        "one of them, or name its axes to align by name",
        ShapeError);
    CHECK(Tensor(add(a, label(counted({3}), {"k"}))).labels()[1] == "k");
    // Labels of either operand reach the result.
    CHECK(Tensor(add(counted({3, 3}), a)).labels()[0] == "q");
  }

  TEST_CASE("a named term aligns by name") {
    const Expr s = label(counted({2, 3, 4}), {"h", "q", "k"});
    const Tensor slope = tensor<double>({10, 20});
    const Tensor sum = add(s, named(slope, "h"));
    CHECK(sum.shape() == Shape{2, 3, 4});
    CHECK(sum(1, 2, 3).item<double>() == 23 + 20);
    const Tensor turned = add(named(counted({4, 3}), "kq"), s);
    CHECK(turned(0, 1, 2).item<double>() == (4 + 2) + (2 * 3 + 1));
    CHECK_THROWS_WITH_AS(add(s, named(slope, "b")),
                         "add: label 'b' of a named term is not among the axes (h=2, q=3, k=4)",
                         ShapeError);
    CHECK_THROWS_WITH_AS(add(s, named(counted({5}), "k")),
                         "add: axis 'k' has size 4 and 5 in (h=2, q=3, k=4) and (k=5)", ShapeError);
    CHECK_THROWS_WITH_AS(add(label(counted({2, 2}), {"i", "i"}), named(slope, "i")),
                         "add: label 'i' names two axes", ShapeError);
  }

  TEST_CASE("named terms among themselves make the union of their labels") {
    const Tensor outer =
        mul(named(tensor<double>({1, 2}), "a"), named(tensor<double>({3, 4, 5}), "b"));
    CHECK(outer.shape() == Shape{2, 3});
    CHECK(outer.labels()[0] == "a");
    CHECK(outer.labels()[1] == "b");
    CHECK(outer(1, 2).item<double>() == 10);
  }

  TEST_CASE("index is an open axis until it meets one of its name") {
    const Expr s = label(zeros({2, 3, 4}, f64), {"h", "q", "k"});
    const Expr distance = sub(index("k"), index("q"));
    const Tensor alibi = add(s, mul(named(tensor<double>({0.5, 0.25}), "h"), distance));
    for (int h = 0; h < 2; ++h) {
      for (int q = 0; q < 3; ++q) {
        for (int k = 0; k < 4; ++k) {
          CHECK(alibi(h, q, k).item<double>() == (h == 0 ? 0.5 : 0.25) * (k - q));
        }
      }
    }
    CHECK(graph::has_open_axes(distance));
    CHECK_THROWS_WITH_AS(eval(distance), "shape: index(\"k\") has met no axis 'k' yet", ShapeError);
    CHECK_THROWS_WITH_AS(add(s, index("z")),
                         "add: label 'z' of a named term is not among the axes (h=2, q=3, k=4)",
                         ShapeError);
    CHECK_THROWS_WITH_AS(index(0),
                         "index: position 0 counts from the left of an unknown rank; give a "
                         "negative one",
                         ShapeError);
  }

  TEST_CASE("index by position counts from the right") {
    const Expr s = zeros({2, 3}, f32);
    const Tensor mask = select(less_equal(index(-1), index(-2)), 1.0, s);
    CHECK(mask.to_vector<float>() == std::vector<float>{1, 0, 0, 1, 1, 0});
    CHECK_THROWS_WITH_AS(add(tensor<double>({1}), index(-2)),
                         "add: index(-2) meets no axis among (1,)", ShapeError);
  }

  TEST_CASE("index on an axis of size 1 that is stretched later stays 0") {
    const Expr one = label(zeros({1}, f64), {"q"});
    const Tensor wide = add(add(one, index("q")), label(zeros({3}, f64), {"q"}));
    CHECK(wide.to_vector<double>() == std::vector<double>{0, 0, 0});
    // The same inside a term that is still open, and so part of the larger program.
    const Expr open = add(mul(named(ones({1}, f64), "q"), index("q")), index("k"));
    const Tensor both = add(label(zeros({2, 3}, f64), {"q", "k"}), open);
    CHECK(both.to_vector<double>() == std::vector<double>{0, 1, 2, 0, 1, 2});
  }

  TEST_CASE("where aligns its branches first, then the condition") {
    const Expr s = label(counted({2, 2}), {"q", "k"});
    const Tensor masked = select(less_equal(index("k"), index("q")), s, -HUGE_VAL);
    CHECK(masked.to_vector<double>() == std::vector<double>{0, -HUGE_VAL, 2, 3});
    CHECK(masked.labels()[0] == "q");
  }
}
