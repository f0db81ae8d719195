// SPDX-License-Identifier: Apache-2.0
// Folds of random axes of random views against double loops, and thread counts.
#include <doctest/doctest.h>

#include <cmath>
#include <cstdint>
#include <limits>
#include <random>
#include <vector>

#include "../../../engine/base/error.h"
#include "../../support/extremes.h"
#include "threads.h"
#include "views.h"

using namespace einkern;
using namespace einkern::test;
using plan::ReduceOp;

namespace {

/// The step that folds the marked axes of `in`; `out` has the other axes in order.
template <class T>
plan::Reduce make_step(ReduceOp op, const View<T>& in, const std::vector<bool>& folded,
                       const View<T>& out) {
  plan::Reduce step{
      .op = op, .in = in.operand(0), .out = out.operand(1), .kept = {}, .reduced = {}};
  std::size_t kept = 0;
  for (std::size_t axis = 0; axis < folded.size(); ++axis) {
    plan::Loop loop{.size = in.layout.shape[axis], .a = in.layout.strides[axis]};
    if (!folded[axis]) loop.c = out.layout.strides[kept++];
    if (loop.size != 1) (folded[axis] ? step.reduced : step.kept).push_back(loop);
  }
  return step;
}

double fold_one(ReduceOp op, double a, double b) {
  switch (op) {
    case ReduceOp::sum:
      return a + b;
    case ReduceOp::prod:
      return a * b;
    case ReduceOp::max:
      return std::max(a, b);
    case ReduceOp::min:
      return std::min(a, b);
  }
  return 0;
}

/// Value of every output element by a loop over all input elements.
template <class T>
std::vector<double> naive(ReduceOp op, View<T>& in, const std::vector<bool>& folded,
                          std::int64_t results) {
  const double start = op == ReduceOp::sum    ? 0
                       : op == ReduceOp::prod ? 1
                       : op == ReduceOp::max  ? -INFINITY
                                              : INFINITY;
  std::vector<double> want(static_cast<std::size_t>(results), start);
  for (std::int64_t p = 0; p < in.size(); ++p) {
    std::int64_t rest = p, at = 0, scale = 1;
    for (std::size_t axis = folded.size(); axis-- > 0;) {
      const std::int64_t size = in.layout.shape[axis];
      if (!folded[axis]) {
        at += rest % size * scale;
        scale *= size;
      }
      rest /= size;
    }
    double& total = want[static_cast<std::size_t>(at)];
    total = fold_one(op, total, static_cast<double>(in[p]));
  }
  return want;
}

template <class T>
void check_random_reductions(std::uint32_t seed, int count, std::size_t rank, std::int64_t most) {
  std::mt19937 random(seed);
  const auto& tables = kernel::supported_kernels();
  for (int i = 0; i < count; ++i) {
    const Dims shape = random_shape(random, rank, most);
    std::vector<bool> folded(shape.size());
    Dims kept;
    for (std::size_t axis = 0; axis < shape.size(); ++axis) {
      folded[axis] = random() % 2 == 0;
      if (!folded[axis]) kept.push_back(shape[axis]);
    }
    View<T> in(shape, random, true), out(kept, random, false);
    auto op = static_cast<ReduceOp>(random() % 4);
    // Products of numbers near 1 stay in range; integers stay small.
    in.fill([&] {
      if (!is_float(dtype_of<T>)) return std::floor(uniform(random, -2, 3));
      return op == ReduceOp::prod ? uniform(random, 0.99, 1.01) : uniform(random, -1, 1);
    });
    const bool nothing = in.size() == 0 && out.size() > 0;
    if (nothing && op >= ReduceOp::max) op = ReduceOp::sum;
    const std::vector<double> want = naive(op, in, folded, out.size());
    if (!is_float(dtype_of<T>) && op == ReduceOp::prod &&
        std::any_of(want.begin(), want.end(), [](double x) { return std::abs(x) > 0x1p50; })) {
      continue;
    }
    run_step(make_step(op, in, folded, out), {in.bytes(), out.bytes()},
             *tables[static_cast<std::size_t>(i) % tables.size()]);
    const double depth = static_cast<double>(in.size()) / std::max<double>(1, out.size()) + 2;
    const double epsilon =
        is_float(dtype_of<T>) ? static_cast<double>(std::numeric_limits<T>::epsilon()) : 0;
    // One unit per term for products; sums err by their tree's depth, which this bounds for terms
    // of at most 1.
    const double allowed =
        op >= ReduceOp::max ? 0
                            : epsilon * depth * (op == ReduceOp::sum ? std::min(depth, 170.0) : 2);
    bool right = true;
    for (std::int64_t p = 0; p < out.size(); ++p) {
      const double w = want[static_cast<std::size_t>(p)];
      right &= std::abs(static_cast<double>(out[p]) - w) <= allowed * std::max(1.0, std::abs(w));
    }
    CAPTURE(to_string(shape));
    CAPTURE(plan::name_of(op));
    CHECK(right);
    CHECK(out.gaps_untouched());
  }
}

template <class T>
T fold_all(ReduceOp op, std::vector<T> values) {
  View<T> in({static_cast<std::int64_t>(values.size())}), out(Dims{});
  for (std::size_t i = 0; i < values.size(); ++i) in[static_cast<std::int64_t>(i)] = values[i];
  run_step(plan::Reduce{.op = op,
                        .in = in.operand(0),
                        .out = out.operand(1),
                        .kept = {},
                        .reduced = {{.size = in.size(), .a = 1}}},
           {in.bytes(), out.bytes()}, kernel::kernels());
  return out[0];
}

}  // namespace

TEST_SUITE("exec") {
  TEST_CASE("folds of random axes of random views") {
    check_random_reductions<float>(1, 600, 5, 8);
    check_random_reductions<double>(2, 300, 5, 8);
    check_random_reductions<std::int64_t>(3, 300, 5, 6);
  }

  TEST_CASE("folds longer than a block of columns or a piece") {
    check_random_reductions<float>(4, 40, 3, 90);
    check_random_reductions<double>(5, 40, 2, 1200);
    check_random_reductions<std::int64_t>(6, 20, 2, 700);
  }

  TEST_CASE("long folds are the same for any number of threads, and accurate") {
    std::mt19937 random(7);
    struct Case {
      Dims shape;
      std::vector<bool> folded;
    };
    const Case cases[] = {{{1000003}, {true}},            // one long run
                          {{3, 300001}, {false, true}},   // a few
                          {{300001, 3}, {true, false}},   // down three columns
                          {{1500, 1100}, {true, false}},  // down many
                          {{1100, 1500}, {false, true}},  // many runs
                          {{900, 7, 130}, {true, false, true}}};
    for (const Case& c : cases) {
      CAPTURE(to_string(c.shape));
      Dims kept;
      for (std::size_t axis = 0; axis < c.folded.size(); ++axis) {
        if (!c.folded[axis]) kept.push_back(c.shape[axis]);
      }
      View<float> in(c.shape);
      in.fill([&] { return uniform(random, 0, 1); });
      View<float> sized(kept);
      const std::vector<double> want = naive(ReduceOp::sum, in, c.folded, sized.size());
      for (const kernel::Kernels* kernels : kernel::supported_kernels()) {
        std::vector<float> first;
        with_threads([&](int threads) {
          View<float> out(kept);
          run_step(make_step(ReduceOp::sum, in, c.folded, out), {in.bytes(), out.bytes()},
                   *kernels);
          if (threads == 1) first = out.elements();
          CHECK(same_bits(out.elements(), first));
        });
        for (std::size_t i = 0; i < want.size(); ++i) {
          CHECK(std::abs(static_cast<double>(first[i]) - want[i]) <= 3e-6 * want[i]);
        }
      }
    }
  }

  TEST_CASE("folds of nothing") {
    const plan::Loops none{{.size = 0, .a = 1}};
    View<float> in({0}), out({3});
    const auto fold = [&](ReduceOp op) {
      run_step(plan::Reduce{.op = op,
                            .in = in.operand(0),
                            .out = out.operand(1),
                            .kept = {{.size = 3, .a = 0, .c = 1}},
                            .reduced = none},
               {in.bytes(), out.bytes()}, kernel::kernels());
    };
    fold(ReduceOp::sum);
    CHECK(out.elements() == std::vector<float>{0, 0, 0});
    fold(ReduceOp::prod);
    CHECK(out.elements() == std::vector<float>{1, 1, 1});
    CHECK_THROWS_WITH_AS(fold(ReduceOp::max), "max: no elements to reduce", ValueError);
    CHECK_THROWS_WITH_AS(fold(ReduceOp::min), "min: no elements to reduce", ValueError);
    // Nothing to write: no error either.
    CHECK_NOTHROW(run_step(plan::Reduce{.op = ReduceOp::max,
                                        .in = in.operand(0),
                                        .out = out.operand(1),
                                        .kept = {{.size = 0, .a = 0, .c = 1}},
                                        .reduced = none},
                           {in.bytes(), out.bytes()}, kernel::kernels()));
  }

  TEST_CASE("NaN and infinities") {
    CHECK(std::isnan(fold_all<float>(ReduceOp::max, {1, NAN, 3})));
    CHECK(std::isnan(fold_all<double>(ReduceOp::min, {1, 2, NAN})));
    CHECK(fold_all<float>(ReduceOp::max, {-INFINITY, -INFINITY}) == -INFINITY);
    CHECK(std::isnan(fold_all<float>(ReduceOp::sum, {INFINITY, -INFINITY})));
  }

  TEST_CASE("integers are exact and overflow is a ValueError") {
    using Int = std::int64_t;
    CHECK(fold_all<Int>(ReduceOp::sum, {kMost, kMost, -kMost, -kMost + 3}) == 3);
    CHECK(fold_all<Int>(ReduceOp::sum, {-kMost, -1}) == -kMost - 1);
    CHECK_THROWS_WITH_AS(fold_all<Int>(ReduceOp::sum, {kMost, 1}), "sum: integer overflow",
                         ValueError);
    CHECK_THROWS_WITH_AS(fold_all<Int>(ReduceOp::sum, {-kMost, -2}), "sum: integer overflow",
                         ValueError);
    CHECK(fold_all<Int>(ReduceOp::prod, {kMost, kMost, kMost, 0}) == 0);
    CHECK(fold_all<Int>(ReduceOp::prod, {1LL << 32, -(1LL << 31)}) == -kMost - 1);
    CHECK_THROWS_WITH_AS(fold_all<Int>(ReduceOp::prod, {kMost, kMost, kMost}),
                         "prod: integer overflow", ValueError);
    CHECK(fold_all<Int>(ReduceOp::max, {kMost - 1, kMost, 0}) == kMost);
    std::vector<Int> many(100000, kMost / 100000);
    CHECK(fold_all<Int>(ReduceOp::sum, many) == kMost / 100000 * 100000);
    many.push_back(kMost);
    CHECK_THROWS_WITH_AS(fold_all<Int>(ReduceOp::sum, many), "sum: integer overflow", ValueError);
  }
}
