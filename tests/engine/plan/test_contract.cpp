// SPDX-License-Identifier: Apache-2.0
// Groups of loops of a pair: which loop is where, in which order, what is fused, and the regime.
#include <doctest/doctest.h>

#include <ostream>

#include "plans.h"

namespace einkern::plan {

std::ostream& operator<<(std::ostream& out, const Loops& loops) {
  for (const Loop& loop : loops) {
    out << "{" << loop.size << ", " << loop.a << ", " << loop.b << ", " << loop.c << "} ";
  }
  return out;
}

}  // namespace einkern::plan

namespace einkern::test {
namespace {

using plan::Contract;
using plan::Loop;
using plan::Loops;
using plan::Operand;
using plan::Regime;

/// The contraction of two contiguous operands into a contiguous output, letters being labels.
Contract contract(const std::string& a, const Shape& shape_a, const std::string& b,
                  const Shape& shape_b, const std::string& c, const Shape& shape_c) {
  const auto labels = [](const std::string& text) {
    return std::vector<LabelId>(text.begin(), text.end());
  };
  return plan::make_contract({0, f32, contiguous(shape_a)}, labels(a),
                             {1, f32, contiguous(shape_b)}, labels(b),
                             {2, f32, contiguous(shape_c)}, labels(c), kTarget);
}

}  // namespace

TEST_SUITE("plan") {
  TEST_CASE("the groups of a matrix product") {
    const Contract s = contract("mk", {2, 3}, "kn", {3, 5}, "mn", {2, 5});
    CHECK(s.regime == Regime::matmul);
    CHECK(s.a.value == 0);
    CHECK(s.b.value == 1);
    CHECK(s.batch == Loops{});
    CHECK(s.m == Loops{{2, 3, 0, 5}});
    CHECK(s.n == Loops{{5, 0, 1, 1}});
    CHECK(s.k == Loops{{3, 1, 5, 0}});
  }

  TEST_CASE("the operand with the unit stride of c becomes b") {
    const Contract s = contract("mk", {2, 3}, "kn", {3, 5}, "nm", {5, 2});
    CHECK(s.a.value == 1);
    CHECK(s.b.value == 0);
    CHECK(s.m == Loops{{5, 1, 0, 2}});
    CHECK(s.n == Loops{{2, 0, 3, 1}});
    CHECK(s.k == Loops{{3, 5, 1, 0}});
  }

  TEST_CASE("neighbours that nest in every tensor are fused") {
    const Contract s = contract("bhqd", {2, 3, 4, 5}, "bhkd", {2, 3, 7, 5}, "bhqk", {2, 3, 4, 7});
    CHECK(s.batch == Loops{{6, 20, 35, 28}});
    CHECK(s.m == Loops{{4, 5, 0, 7}});
    CHECK(s.n == Loops{{7, 0, 5, 1}});
    CHECK(s.k == Loops{{5, 1, 1, 0}});

    const Contract two_contracted =
        contract("bnhe", {2, 3, 4, 5}, "hed", {4, 5, 7}, "bnd", {2, 3, 7});
    CHECK(two_contracted.m == Loops{{6, 20, 0, 7}});
    CHECK(two_contracted.k == Loops{{20, 1, 7, 0}});
  }

  TEST_CASE("loops that nest in one tensor only are kept apart") {
    const Contract s = contract("xyk", {2, 3, 4}, "kn", {4, 5}, "yxn", {3, 2, 5});
    CHECK(s.m == Loops{{2, 12, 0, 5}, {3, 4, 0, 10}});
    const Contract crossed = contract("mxy", {5, 2, 3}, "yxn", {3, 2, 7}, "mn", {5, 7});
    CHECK(crossed.k == Loops{{2, 3, 7, 0}, {3, 1, 14, 0}});
  }

  TEST_CASE("loops of size 1 are dropped and no longer stand between others") {
    const Contract s = contract("x1yk", {2, 1, 3, 4}, "k1n", {4, 1, 5}, "xy1n", {2, 3, 1, 5});
    CHECK(s.batch == Loops{});
    CHECK(s.m == Loops{{6, 4, 0, 5}});
  }

  TEST_CASE("every group follows the tensor that gains most from it") {
    // n follows c, m follows a, whatever the order of the labels in the other tensors.
    const Contract s = contract("kyx", {4, 3, 2}, "vku", {5, 4, 7}, "xyuv", {2, 3, 7, 5});
    CHECK(s.n == Loops{{7, 0, 1, 5}, {5, 0, 28, 1}});
    CHECK(s.m == Loops{{3, 2, 0, 35}, {2, 1, 0, 105}});
    // k follows a where a has its unit stride in it, else b.
    const Contract by_a = contract("mxy", {4, 2, 3}, "yxn", {3, 2, 5}, "mn", {4, 5});
    CHECK(by_a.k == Loops{{2, 3, 5, 0}, {3, 1, 10, 0}});
    const Contract by_b = contract("xym", {2, 3, 4}, "nyx", {5, 3, 2}, "mn", {4, 5});
    CHECK(by_b.k == Loops{{3, 4, 2, 0}, {2, 12, 1, 0}});
    // batch follows c; here its unit stride is c's.
    const Contract lanes = contract("mkb", {4, 3, 32}, "knb", {3, 5, 32}, "mnb", {4, 5, 32});
    CHECK(lanes.batch == Loops{{32, 1, 1, 1}});
    CHECK(lanes.a.value == 0);
  }

  TEST_CASE("strides of 0 and below") {
    // a is stretched along x: the loop that does not move a goes outside.
    const Operand a{0, f32, {{3, 2, 4}, {4, 0, 1}, 0}};
    const Operand b{1, f32, {{4, 5}, {-5, -1}, 19}};
    const Operand c{2, f32, contiguous({3, 2, 5})};
    const Contract s = plan::make_contract(a, {0, 1, 2}, b, {2, 3}, c, {0, 1, 3}, kTarget);
    CHECK(s.m == Loops{{2, 0, 0, 5}, {3, 4, 0, 10}});
    CHECK(s.k == Loops{{4, 1, -5, 0}});
    CHECK(s.n == Loops{{5, 0, -1, 1}});
    CHECK(s.b.layout.offset == 19);
  }

  TEST_CASE("regimes") {
    CHECK(contract("mk", {64, 64}, "kn", {64, 64}, "mn", {64, 64}).regime == Regime::matmul);
    CHECK(contract("k", {9}, "k", {9}, "", {}).regime == Regime::dot);
    CHECK(contract("bk", {99, 9}, "bk", {99, 9}, "b", {99}).regime == Regime::dot);
    CHECK(contract("mk", {9, 9}, "k", {9}, "m", {9}).regime == Regime::matvec);
    CHECK(contract("k", {9}, "kn", {9, 9}, "n", {9}).regime == Regime::matvec);
    CHECK(contract("bmk", {3, 9, 9}, "bk", {3, 9}, "bm", {3, 9}).regime == Regime::matvec);
    CHECK(contract("m", {9}, "n", {9}, "mn", {9, 9}).regime == Regime::outer);
    CHECK(contract("bmk", {2000, 8, 8}, "bkn", {2000, 8, 8}, "bmn", {2000, 8, 8}).regime ==
          Regime::small_batched);
    CHECK(contract("bmk", {15, 8, 8}, "bkn", {15, 8, 8}, "bmn", {15, 8, 8}).regime ==
          Regime::matmul);
    CHECK(contract("bmk", {2000, 16, 16}, "bkn", {2000, 16, 16}, "bmn", {2000, 16, 16}).regime ==
          Regime::small_batched);
    CHECK(contract("bmk", {2000, 33, 32}, "bkn", {2000, 32, 32}, "bmn", {2000, 33, 32}).regime ==
          Regime::matmul);
  }

  TEST_CASE("a short sum that is bound by memory is streamed") {
    const auto regime = [](std::int64_t k, std::int64_t m, std::int64_t n) {
      return contract("km", {k, m}, "kn", {k, n}, "mn", {m, n}).regime;
    };
    CHECK(regime(4, 512, 4096) == Regime::stream);
    CHECK(regime(64, 512, 4096) == Regime::matmul);    // bound by arithmetic
    CHECK(regime(4, 128, 1024) == Regime::matmul);     // the output fits the caches
    CHECK(regime(4, 100000, 4096) == Regime::matmul);  // both operands are large
    CHECK(contract("bkm", {2, 4, 512}, "bkn", {2, 4, 4096}, "bmn", {2, 512, 4096}).regime ==
          Regime::matmul);
    // Neither the columns nor the sum are contiguous in the larger operand.
    const Operand a{0, f32, contiguous({4, 512})}, b{1, f32, {{4, 4096}, {8192, 2}, 0}};
    const Operand c{2, f32, contiguous({512, 4096})};
    CHECK(plan::make_contract(a, {0, 1}, b, {0, 2}, c, {1, 2}, kTarget).regime == Regime::matmul);
  }

  TEST_CASE("a matrix times a vector has its unit stride in n") {
    const Contract s = contract("mk", {4, 9}, "k", {9}, "m", {4});
    CHECK(s.a.value == 1);
    CHECK(s.m.empty());
    CHECK(s.n == Loops{{4, 0, 9, 1}});
  }

  TEST_CASE("labels that have no place in a pair are refused") {
    CHECK_THROWS_AS(contract("mkx", {4, 9, 2}, "kn", {9, 3}, "mn", {4, 3}), std::logic_error);
    CHECK_THROWS_AS(contract("mk", {4, 9}, "kn", {9, 3}, "mnx", {4, 3, 2}), std::logic_error);
    CHECK_THROWS_AS(contract("mk", {4, 9}, "kn", {8, 3}, "mn", {4, 3}), std::logic_error);
  }

  TEST_CASE("the selecting form addresses what is visible along the same loops") {
    // weights (b, h, q, k), values (b, h, k, e), visible (q, k): one for all b and h.
    const Operand weights{0, f32, contiguous({2, 3, 4, 5})},
        values{1, f32, contiguous({2, 3, 5, 7})};
    const Operand c{2, f32, contiguous({2, 3, 4, 7})};
    const Operand shared{3, boolean, contiguous({4, 5})};
    const plan::SelectContract s = plan::make_select_contract(
        weights, {0, 1, 2, 3}, values, {0, 1, 3, 4}, c, {0, 1, 2, 4}, shared, {2, 3}, kTarget);
    CHECK(s.contract.batch == Loops{{6, 20, 35, 28}});
    CHECK(s.visible_batch == std::vector<std::int64_t>{0});
    CHECK(s.contract.m == Loops{{4, 5, 0, 7}});
    CHECK(s.visible_m == std::vector<std::int64_t>{5});
    CHECK(s.contract.k == Loops{{5, 1, 7, 0}});
    CHECK(s.visible_k == std::vector<std::int64_t>{1});

    // A mask of its own for every b keeps b and h apart.
    const Operand per_batch{3, boolean, contiguous({2, 1, 1, 5})};
    const plan::SelectContract apart =
        plan::make_select_contract(weights, {0, 1, 2, 3}, values, {0, 1, 3, 4}, c, {0, 1, 2, 4},
                                   per_batch, {0, 1, 2, 3}, kTarget);
    CHECK(apart.contract.batch == Loops{{2, 60, 105, 84}, {3, 20, 35, 28}});
    CHECK(apart.visible_batch == std::vector<std::int64_t>{5, 0});
    CHECK(apart.visible_m == std::vector<std::int64_t>{0});
  }

  TEST_CASE("the selecting form is never swapped") {
    const Operand weights{0, f32, contiguous({4, 5})}, values{1, f32, contiguous({5, 7})};
    const Operand c{2, f32, contiguous({7, 4})}, visible{3, boolean, contiguous({4, 5})};
    const plan::SelectContract s = plan::make_select_contract(weights, {0, 1}, values, {1, 2}, c,
                                                              {2, 0}, visible, {0, 1}, kTarget);
    CHECK(s.contract.a.value == 0);
    CHECK(s.contract.m == Loops{{4, 5, 0, 1}});
    CHECK(s.contract.n == Loops{{7, 0, 1, 4}});
    CHECK_THROWS_AS(plan::make_select_contract(weights, {0, 1}, values, {1, 2}, c, {2, 0}, visible,
                                               {0, 9}, kTarget),
                    std::logic_error);
  }
}

}  // namespace einkern::test
