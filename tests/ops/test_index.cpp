// SPDX-License-Identifier: Apache-2.0
// Positions, comparisons, logic, selection and the rules by which operands align.
#include <doctest/doctest.h>

#include <cmath>

#include "../../engine/base/error.h"
#include "../../engine/tensor/create.h"
#include "../../ops/ops.h"
#include "../support/arrays.h"

using namespace einkern;
using namespace einkern::test;

namespace {

template <class A, class B>
concept Ordered = requires(A a, B b) {
  a < b;
}
|| requires(A a, B b) { a <= b; }
|| requires(A a, B b) { a > b; }
|| requires(A a, B b) { a >= b; };
template <class A, class B>
concept Equal = requires(A a, B b) {
  a == b;
}
|| requires(A a, B b) { a != b; };
template <class A>
concept Truth = requires(A a) {
  a ? 1 : 2;
};
template <class A>
concept Negatable = requires(A a) {
  !a;
};
template <class A, class B>
concept Conjunctive = requires(A a, B b) {
  a&& b;
};

// 0 <= index("k") < n compares a truth value.
static_assert(!Ordered<BoolExpr, int> && !Ordered<int, BoolExpr> && !Ordered<BoolExpr, BoolExpr>);
static_assert(!Ordered<BoolExpr, Expr> && !Ordered<Tensor, BoolExpr> && !Ordered<BoolExpr, double>);
static_assert(!Equal<BoolExpr, int> && !Equal<BoolExpr, BoolExpr> && !Equal<Expr, BoolExpr>);
static_assert(Ordered<Expr, int> && Ordered<double, Expr> && Ordered<Tensor, Tensor> &&
              Equal<Tensor, Expr> && Equal<int, Expr>);
// An expression has no truth value while the program is being built.
static_assert(!Truth<Expr> && !Truth<BoolExpr> && !Truth<Tensor>);
static_assert(Negatable<BoolExpr> && !Negatable<Expr> && !Negatable<Tensor>);
static_assert(Conjunctive<BoolExpr, BoolExpr> && !Conjunctive<Expr, Expr> &&
              !Conjunctive<BoolExpr, Tensor>);
static_assert(!std::convertible_to<Expr, BoolExpr> && !std::convertible_to<Tensor, BoolExpr>);

std::vector<bool> truths(const Expr& e) {
  const Tensor t = e;
  CHECK(t.dtype() == boolean);
  return t.to_vector<bool>();
}

}  // namespace

TEST_SUITE("ops") {
  TEST_CASE("index is the position along an axis found by name or by place") {
    const Tensor s = zeros({2, 3, 4}, f64);
    const Expr by_name = named(s, "bqk");
    const auto at = [](const Array& a, std::int64_t b, std::int64_t q, std::int64_t k) {
      return a.at({b, q, k});
    };
    const Array k = to_array(by_name + index("k")), q = to_array(by_name + index("q"));
    const Array last = to_array(s + index(-1)), first = to_array(s + index(-3));
    for_each_index({2, 3, 4}, [&](const Sizes& i) {
      CHECK(at(k, i[0], i[1], i[2]) == static_cast<double>(i[2]));
      CHECK(at(q, i[0], i[1], i[2]) == static_cast<double>(i[1]));
      CHECK(at(last, i[0], i[1], i[2]) == static_cast<double>(i[2]));
      CHECK(at(first, i[0], i[1], i[2]) == static_cast<double>(i[0]));
    });
  }

  TEST_CASE("comparisons follow IEEE: NaN equals nothing and has no order") {
    const Tensor a = tensor<double>({1, 2, 3, NAN, INFINITY}),
                 b = tensor<double>({2, 2, 2, NAN, 1});
    CHECK(truths(a < b) == std::vector<bool>{true, false, false, false, false});
    CHECK(truths(a <= b) == std::vector<bool>{true, true, false, false, false});
    CHECK(truths(a > b) == std::vector<bool>{false, false, true, false, true});
    CHECK(truths(a >= b) == std::vector<bool>{false, true, true, false, true});
    CHECK(truths(a == b) == std::vector<bool>{false, true, false, false, false});
    CHECK(truths(a != b) == std::vector<bool>{true, false, true, true, true});
    CHECK(truths(2 < a) == std::vector<bool>{false, false, true, false, true});
    CHECK(truths(a.astype(f32) >= 3) == std::vector<bool>{false, false, true, false, true});
  }

  TEST_CASE("integers compare exactly, beyond what a double can hold") {
    const std::int64_t big = (std::int64_t{1} << 53) + 1;
    const Tensor a = tensor<std::int64_t>({big, big - 1});
    CHECK(truths(a == big) == std::vector<bool>{true, false});
    CHECK(truths(a > big - 1) == std::vector<bool>{true, false});
  }

  TEST_CASE(
      "a comparison of named terms lists labels in order of appearance, in either direction") {
    const Tensor a = tensor<double>({0, 1, NAN}), b = tensor<double>({1, 0});
    for (const BoolExpr& c : {a["q"] > b["k"], a["q"] >= b["k"], a["q"] < b["k"]}) {
      CHECK(c.labels()[0] == "q");
      CHECK(c.labels()[1] == "k");
      CHECK(c.shape() == Shape{3, 2});
    }
    CHECK(truths(a["q"] > b["k"]) == std::vector<bool>{false, false, false, true, false, false});
    CHECK(truths(a["q"] >= b["k"]) == std::vector<bool>{false, true, true, true, false, false});
  }

  TEST_CASE("logic") {
    const BoolExpr a(tensor<bool>({false, false, true, true}));
    const BoolExpr b(tensor<bool>({false, true, false, true}));
    CHECK(truths(a && b) == std::vector<bool>{false, false, false, true});
    CHECK(truths(a || b) == std::vector<bool>{false, true, true, true});
    CHECK(truths(!a) == std::vector<bool>{true, true, false, false});
  }

  TEST_CASE("where selects: what is not selected has no influence") {
    const Tensor c = tensor<bool>({true, false, true});
    const Tensor x = tensor<double>({1, NAN, 3}), y = tensor<double>({NAN, 5, INFINITY});
    CHECK(to_array(where(c, x, y)).data == std::vector<double>{1, 5, 3});
    CHECK(Tensor(where(c, x.astype(f32), -inf)).dtype() == f32);
  }

  TEST_CASE("where aligns its branches first, then the condition") {
    const Tensor s = arange(0, 6, 1, f64).split(0, {"q", "k"}, {2, 3});
    CHECK(to_array(where(index("k") <= index("q"), s, -1)).data ==
          std::vector<double>{0, -1, -1, 3, 4, -1});
    CHECK(to_array(where(causal(), unnamed(s), -1)).data ==
          std::vector<double>{0, -1, -1, 3, 4, -1});
  }

  TEST_CASE("ordinary operands align from the right; different labels in one place are refused") {
    const Tensor a = zeros({2, 3}, f64).with_labels(Labels({"q", "k"}));
    const Tensor b = zeros({3, 3}, f64).with_labels(Labels({"k", "q"}));
    CHECK_THROWS_WITH_AS(a + b,
                         "add: axes labelled 'k' and 'q' meet at position -1 of (q=2, k=3) and "
                         "(k=3, q=3); permute one of them, or name its axes to align by name",
                         ShapeError);
    CHECK_NOTHROW(a + unnamed(slice(b, 0, 0, 2)));
    CHECK_THROWS_WITH_AS(a + zeros({2}, f64),
                         "add: axis 'k' has size 3 and 2 in (q=2, k=3) and (2,)", ShapeError);
  }

  TEST_CASE("named terms align by name, whatever the order of the other operand's axes") {
    const Array values = noise({3}, 1), pairs = noise({4, 2}, 3), scores = noise({3, 2, 4}, 2);
    const Tensor s = to_tensor(scores).with_labels(Labels({"h", "q", "k"}));
    const Array one = to_array(s + to_tensor(values)["h"]);
    const Array two = to_array(to_tensor(pairs)["kq"] - s);
    for_each_index({3, 2, 4}, [&](const Sizes& i) {
      CHECK(one.at(i) == scores.at(i) + values.at({i[0]}));
      CHECK(two.at(i) == pairs.at({i[2], i[1]}) - scores.at(i));
    });
    CHECK((s + to_tensor(values)["h"]).labels().to_vector(3) ==
          std::vector<std::string>{"h", "q", "k"});
  }

  TEST_CASE("a named term whose label the other operand lacks is refused") {
    const Expr s = einsum("qd,kd->qk", zeros({2, 4}, f64), zeros({3, 4}, f64));
    CHECK_THROWS_WITH_AS(s + zeros({5}, f64)["h"],
                         "add: label 'h' of a named term is not among the axes (q=2, k=3)",
                         ShapeError);
    CHECK_THROWS_WITH_AS(s + index("h"),
                         "add: label 'h' of a named term is not among the axes (q=2, k=3)",
                         ShapeError);
    CHECK_NOTHROW(expand(s, "h", 5) + zeros({5}, f64)["h"]);
  }

  TEST_CASE("named terms among themselves make the union of their labels") {
    const Array a = noise({2}, 4), b = noise({3}, 5);
    const Expr sum = to_tensor(a)["x"] + to_tensor(b)["y"];
    CHECK(sum.labels().to_vector(2) == std::vector<std::string>{"x", "y"});
    const Array got = to_array(sum);
    for_each_index({2, 3},
                   [&](const Sizes& i) { CHECK(got.at(i) == a.at({i[0]}) + b.at({i[1]})); });
  }

  TEST_CASE("an open axis has no size and no value until it meets an axis") {
    CHECK_THROWS_WITH_AS(index("k").shape(), "shape: index(\"k\") has met no axis 'k' yet",
                         ShapeError);
    CHECK_THROWS_AS(eval(index("k") + 1), ShapeError);
    CHECK_THROWS_WITH_AS(
        index(0),
        "index: position 0 counts from the left of an unknown rank; give a negative "
        "one",
        ShapeError);
    CHECK_THROWS_WITH_AS(softmax(index("k"), "k"), "softmax: index(\"k\") has met no axis 'k' yet",
                         ShapeError);
  }

  TEST_CASE("truth values have no order, and numbers no logic") {
    const Tensor t = tensor<bool>({true, false});
    CHECK_THROWS_WITH_AS(static_cast<void>(t < 1), "less: operand 0 is bool, which has no order",
                         TypeError);
    CHECK_THROWS_WITH_AS(static_cast<void>(1 > Expr(t)),
                         "greater: operand 1 is bool, which has no order", TypeError);
    CHECK_THROWS_WITH_AS(BoolExpr(zeros({2})), "BoolExpr: the expression is f32, not bool",
                         TypeError);
    CHECK_THROWS_WITH_AS(where(zeros({2}), 1, 0), "where: the condition is f32, not bool",
                         TypeError);
  }
}
