// SPDX-License-Identifier: Apache-2.0
// Softmax steps over random views against long double loops, sinks, and thread counts.
#include <doctest/doctest.h>

#include <cmath>
#include <cstdint>
#include <limits>
#include <random>
#include <vector>

#include "threads.h"
#include "views.h"

using namespace einkern;
using namespace einkern::test;
using plan::SoftmaxKind;

namespace {

/// What a step should give, element by element in C order of its output.
template <class T>
std::vector<double> naive(SoftmaxKind kind, View<T>& in, std::int64_t rows, View<T>* sink) {
  std::vector<double> want;
  const std::int64_t length = rows == 0 ? 0 : in.size() / rows;
  for (std::int64_t r = 0; r < rows; ++r) {
    long double most = sink != nullptr ? static_cast<long double>((*sink)[r]) : -INFINITY;
    for (std::int64_t i = 0; i < length; ++i) {
      most = std::max<long double>(most, in[r * length + i]);
    }
    const bool hidden = std::isinf(most);
    long double sum = sink != nullptr && !hidden ? std::exp((*sink)[r] - most) : 0;
    for (std::int64_t i = 0; i < length && !hidden; ++i) sum += std::exp(in[r * length + i] - most);
    if (kind == SoftmaxKind::logsumexp) {
      want.push_back(static_cast<double>(hidden ? -INFINITY : most + std::log(sum)));
      continue;
    }
    for (std::int64_t i = 0; i < length; ++i) {
      const long double shifted = in[r * length + i] - most;
      if (kind == SoftmaxKind::softmax) {
        want.push_back(hidden ? 0 : static_cast<double>(std::exp(shifted) / sum));
      } else {
        want.push_back(hidden ? -INFINITY : static_cast<double>(shifted - std::log(sum)));
      }
    }
  }
  return want;
}

template <class T>
void check(SoftmaxKind kind, const Dims& shape, std::size_t axes, std::mt19937& random,
           const kernel::Kernels& kernels) {
  const Dims kept(shape.begin(), shape.end() - static_cast<std::ptrdiff_t>(axes));
  View<T> in(shape, random, true), sink(kept, random, true);
  View<T> out(kind == SoftmaxKind::logsumexp ? kept : shape, random, false);
  in.fill([&] { return random() % 5 == 0 ? -INFINITY : uniform(random, -8, 8); });
  sink.fill([&] { return random() % 5 == 0 ? -INFINITY : uniform(random, -8, 8); });
  const bool with_sink = random() % 2 == 0;
  plan::Softmax step{
      .kind = kind, .axes = axes, .in = in.operand(0), .out = out.operand(1), .sink = {}};
  if (with_sink) step.sink = sink.operand(2);
  run_step(step, {in.bytes(), out.bytes(), sink.bytes()}, kernels);
  const auto want = naive(kind, in, sink.size(), with_sink ? &sink : nullptr);
  const double allowed = 16 * static_cast<double>(std::numeric_limits<T>::epsilon());
  bool right = static_cast<std::int64_t>(want.size()) == out.size();
  for (std::int64_t p = 0; right && p < out.size(); ++p) {
    const double w = want[static_cast<std::size_t>(p)], got = static_cast<double>(out[p]);
    right &= got == w || std::abs(got - w) <= allowed * std::max(1.0, std::abs(w));
  }
  CAPTURE(to_string(shape));
  CAPTURE(axes);
  CHECK(right);
  CHECK(out.gaps_untouched());
}

template <class T>
void check_random_softmaxes(std::uint32_t seed, int count, std::size_t rank, std::int64_t most) {
  std::mt19937 random(seed);
  const auto& tables = kernel::supported_kernels();
  for (int i = 0; i < count; ++i) {
    Dims shape = random_shape(random, rank, most);
    shape.push_back(1 + static_cast<std::int64_t>(random()) % most);
    const std::size_t axes = 1 + random() % shape.size();
    check<T>(static_cast<SoftmaxKind>(random() % 3), shape, axes, random,
             *tables[static_cast<std::size_t>(i) % tables.size()]);
  }
}

}  // namespace

TEST_SUITE("exec") {
  TEST_CASE("softmax over random axes of random views") {
    check_random_softmaxes<float>(1, 500, 4, 9);
    check_random_softmaxes<double>(2, 250, 4, 9);
  }

  TEST_CASE("softmax of larger views") {
    check_random_softmaxes<float>(3, 60, 2, 70);
    check_random_softmaxes<double>(4, 40, 2, 70);
  }

  TEST_CASE("softmax down columns") {
    for (const kernel::Kernels* kernels : kernel::supported_kernels()) {
      for (const std::int64_t columns : {1, 8, 16, 17, 100}) {
        // (rows, columns) in memory; each column is normalised.
        constexpr std::int64_t kRows = 37;
        View<float> in({kRows, columns}), out({kRows, columns});
        std::mt19937 random(5);
        in.fill([&] { return uniform(random, -5, 5); });
        const auto turned = [&](plan::Operand operand) {
          operand.layout = permuted(operand.layout, {1, 0});
          return operand;
        };
        run_step(
            plan::Softmax{.in = turned(in.operand(0)), .out = turned(out.operand(1)), .sink = {}},
            {in.bytes(), out.bytes()}, *kernels);
        for (std::int64_t c = 0; c < columns; ++c) {
          double sum = 0;
          for (std::int64_t r = 0; r < kRows; ++r) {
            sum += std::exp(static_cast<double>(in[r * columns + c]));
          }
          for (std::int64_t r = 0; r < kRows; ++r) {
            const double want = std::exp(static_cast<double>(in[r * columns + c])) / sum;
            CHECK(static_cast<double>(out[r * columns + c]) == doctest::Approx(want).epsilon(1e-6));
          }
        }
        CHECK(out.gaps_untouched());
      }
    }
  }

  TEST_CASE("the same bits for any number of threads") {
    std::mt19937 random(6);
    for (const Dims& shape : {Dims{600, 500}, Dims{2, 400000}}) {
      View<float> in(shape);
      in.fill([&] { return uniform(random, -5, 5); });
      for (const bool turned : {false, true}) {
        std::vector<float> first;
        with_threads([&](int threads) {
          View<float> out(shape);
          plan::Softmax step{.in = in.operand(0), .out = out.operand(1), .sink = {}};
          if (turned) {
            step.in.layout = permuted(step.in.layout, {1, 0});
            step.out.layout = permuted(step.out.layout, {1, 0});
          }
          run_step(step, {in.bytes(), out.bytes()}, kernel::kernels());
          if (threads == 1) first = out.elements();
          CHECK(same_bits(out.elements(), first));
        });
        double sum = 0;
        for (const float x : first) sum += static_cast<double>(x);
        CHECK(sum == doctest::Approx(static_cast<double>(shape[turned ? 1 : 0])).epsilon(1e-6));
      }
    }
  }

  TEST_CASE("rows of no elements") {
    View<float> in({3, 0}), out({3}), none({3, 0});
    run_step(plan::Softmax{.in = in.operand(0), .out = none.operand(1), .sink = {}},
             {in.bytes(), none.bytes()}, kernel::kernels());
    run_step(
        plan::Softmax{
            .kind = SoftmaxKind::logsumexp, .in = in.operand(0), .out = out.operand(1), .sink = {}},
        {in.bytes(), out.bytes()}, kernel::kernels());
    CHECK(out.elements() == std::vector<float>(3, -INFINITY));
  }
}
