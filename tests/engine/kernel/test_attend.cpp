// SPDX-License-Identifier: Apache-2.0
// Tiles of scores, weights and weighted values on every SIMD target: all widths, heights and tails.
#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <memory>
#include <new>
#include <random>
#include <vector>

#include "../../../engine/kernel/flush_denormals.h"
#include "aligned_array.h"
#include "on_all_targets.h"

#if defined(__SSE2__)
#include <xmmintrin.h>
#endif

using namespace einkern;
using kernel::AttendFunctions;
using kernel::Drift;
using namespace einkern::test;

namespace {

template <class T, class F>
void on_attend_functions(F&& f) {
  on_all_targets([&](const kernel::Kernels& table) { f(table.attend.of<T>()); });
}

constexpr double kLog2E = 1.4426950408889634;

template <class T>
void check_scores() {
  std::mt19937 random(3);
  const double tolerance = sizeof(T) == 4 ? 4e-6 : 1e-14;
  on_attend_functions<T>([&](const AttendFunctions<T>& functions) {
    for (std::int64_t vectors = 1; vectors <= functions.most_vectors; ++vectors) {
      const std::int64_t width = functions.most_vectors * functions.lanes;
      const std::int64_t rows = vectors * functions.lanes;
      for (std::int64_t keys = 0; keys <= 27; ++keys) {
        for (const std::int64_t inner : {0, 1, 5, 16, 37}) {
          for (const std::int64_t step : {std::int64_t{0}, width, std::int64_t{-1}}) {
            AlignedArray<T> q(inner * width), k(keys * (inner + 3) + 1), reference(width);
            AlignedArray<T> bias((keys + 1) * width), out(keys * width + 1, T{-7}),
                sums(width, T{2});
            for (AlignedArray<T>* x : {&q, &k, &reference, &bias}) x->randomise(random);
            std::vector<std::int64_t> at;
            for (std::int64_t j = 0; j < keys; ++j) at.push_back((keys - 1 - j) * (inner + 3));
            kernel::ScoreBlock<T> block{.q = q.data(),
                                        .k = k.data(),
                                        .k_at = at.data(),
                                        .inner = inner,
                                        .keys = keys,
                                        .out = out.data(),
                                        .sums = sums.data()};
            if (step != 0) block.bias = bias.data() + (step < 0 ? keys : 0);
            block.bias_step = step;
            const auto want = [&](std::int64_t j, std::int64_t r) {
              double sum = 0;
              for (std::int64_t i = 0; i < inner; ++i) {
                sum += static_cast<double>(q[i * width + r]) *
                       static_cast<double>(k[at[static_cast<std::size_t>(j)] + i]);
              }
              return step == 0 ? sum : sum + kLog2E * static_cast<double>(block.bias[j * step + r]);
            };
            double worst = 0;
            functions.scores(block, vectors);
            for (std::int64_t i = 0; i < keys * width; ++i) {
              const std::int64_t r = i % width;
              const double right = r < rows ? want(i / width, r) : -7;
              worst = std::max(worst, std::abs(static_cast<double>(out[i]) - right));
            }
            // Their exponentials afterwards, or at once.
            AlignedArray<T> late(keys * width), late_sums(width, T{2});
            std::copy_n(out.data(), keys * width, late.data());
            functions.weigh(late.data(), keys, reference.data(), late_sums.data(), vectors);
            block.reference = reference.data();
            functions.scores(block, vectors);
            for (std::int64_t r = 0; r < rows; ++r) {
              double sum = 2;
              for (std::int64_t j = 0; j < keys; ++j) {
                const double weight = std::exp2(want(j, r) - static_cast<double>(reference[r]));
                sum += weight;
                for (const T got : {out[j * width + r], late[j * width + r]}) {
                  worst = std::max(worst, std::abs(static_cast<double>(got) / weight - 1));
                }
              }
              for (const T got : {sums[r], late_sums[r]}) {
                worst = std::max(worst, std::abs(static_cast<double>(got) / sum - 1));
              }
            }
            if (rows < width) CHECK(sums[rows] == 2);
            // Capped: the dot product through tanh, the bias after it.
            block.reference = nullptr;
            block.cap = T{3};
            functions.scores(block, vectors);
            std::copy_n(out.data(), keys * width, late.data());
            functions.weigh(late.data(), keys, reference.data(), late_sums.data(), vectors);
            block.reference = reference.data();
            AlignedArray<T> raw(keys * width);
            std::copy_n(out.data(), keys * width, raw.data());
            functions.scores(block, vectors);
            for (std::int64_t i = 0; i < keys * width; ++i) {
              const std::int64_t j = i / width, r = i % width;
              if (r >= rows) continue;
              const double bias =
                  step == 0 ? 0 : kLog2E * static_cast<double>(block.bias[j * step + r]);
              const double right = 3 * std::tanh(want(j, r) - bias) + bias;
              worst = std::max(worst, std::abs(static_cast<double>(raw[i]) - right));
              worst = std::max(worst, std::abs(static_cast<double>(out[i] / late[i]) - 1));
            }
            CHECK(worst <= tolerance);
            CHECK(out[keys * width] == -7);  // nothing behind the last row is touched
          }
        }
      }
    }
  });
}

/// 2^x over its whole range, through scores without products.
template <class T>
void check_exponential() {
  const double unit = std::numeric_limits<T>::epsilon() / 2;
  on_attend_functions<T>([&](const AttendFunctions<T>& functions) {
    const std::int64_t width = functions.lanes;
    AlignedArray<T> reference(width), one(width, T{1}), out(width), sums(width);
    const std::int64_t at = 0;
    const auto exp2 = [&](T x) {
      kernel::ScoreBlock<T> block{.q = one.data(),
                                  .k = &x,
                                  .k_at = &at,
                                  .inner = 1,
                                  .keys = 1,
                                  .reference = reference.data(),
                                  .out = out.data(),
                                  .sums = sums.data()};
      functions.scores(block, 1);
      return out[width - 1];
    };
    double worst = 0;
    std::mt19937 random(5);
    const double low = sizeof(T) == 4 ? -126 : -1022;
    std::uniform_real_distribution<double> wide(low, 30), near(-1, 1);
    for (int i = 0; i < 40000; ++i) {
      const auto x = static_cast<T>(i % 2 == 0 ? wide(random) : near(random));
      const long double want = std::exp2(static_cast<long double>(x));
      const auto relative = static_cast<double>((static_cast<long double>(exp2(x)) - want) / want);
      // In units of the last place of the right answer.
      const auto place = static_cast<double>(std::ldexp(1.0L, std::ilogb(want)) / want);
      worst = std::max(worst, std::abs(relative) / (2 * unit * place));
    }
    CHECK(worst <= 2.6);
    CHECK(exp2(-std::numeric_limits<T>::infinity()) == 0);
    CHECK(exp2(std::numeric_limits<T>::infinity()) == std::numeric_limits<T>::infinity());
    CHECK(exp2(std::numeric_limits<T>::lowest()) == 0);
    CHECK(exp2(std::numeric_limits<T>::max()) == std::numeric_limits<T>::infinity());
    CHECK(exp2(static_cast<T>(low - 20)) == 0);  // flushed, not denormal
    CHECK(std::isnan(exp2(std::numeric_limits<T>::quiet_NaN())));
    for (int n = -100; n <= 100; ++n) {
      CHECK(std::abs(std::ldexp(exp2(static_cast<T>(n)), -n) - 1) <= 4 * unit);
    }
  });
}

/// tanh over its whole range, through capped scores.
template <class T>
void check_cap() {
  on_attend_functions<T>([&](const AttendFunctions<T>& functions) {
    const std::int64_t width = functions.lanes;
    AlignedArray<T> one(width, T{1}), out(width);
    const std::int64_t at = 0;
    const auto tanh = [&](T x) {
      kernel::ScoreBlock<T> block{.q = one.data(),
                                  .k = &x,
                                  .k_at = &at,
                                  .inner = 1,
                                  .keys = 1,
                                  .cap = 1,
                                  .out = out.data()};
      functions.scores(block, 1);
      return out[width - 1];
    };
    double worst = 0;
    std::mt19937 random(6);
    std::uniform_real_distribution<double> exponent(-20, 5);
    for (int i = 0; i < 40000; ++i) {
      const auto x = static_cast<T>(std::exp2(exponent(random)) * (i % 2 == 0 ? 1 : -1));
      const long double want = std::tanh(static_cast<long double>(x));
      const long double place =
          std::ldexp(static_cast<long double>(std::numeric_limits<T>::epsilon()), std::ilogb(want));
      worst = std::max(worst, static_cast<double>(std::abs(tanh(x) - want) / place));
    }
    CHECK(worst <= 3.2);
    CHECK(tanh(std::numeric_limits<T>::infinity()) == 1);
    CHECK(tanh(-std::numeric_limits<T>::infinity()) == -1);
    CHECK(tanh(0) == 0);
    CHECK(std::isnan(tanh(std::numeric_limits<T>::quiet_NaN())));
  });
}

template <class T>
void check_values() {
  std::mt19937 random(4);
  const double tolerance = sizeof(T) == 4 ? 1e-5 : 1e-13;
  on_attend_functions<T>([&](const AttendFunctions<T>& functions) {
    for (std::int64_t vectors = 1; vectors <= functions.most_vectors; ++vectors) {
      const std::int64_t width = functions.most_vectors * functions.lanes;
      const std::int64_t rows = vectors * functions.lanes;
      for (std::int64_t columns = 0; columns <= 27; ++columns) {
        for (const std::int64_t keys : {0, 1, 6, 50}) {
          AlignedArray<T> weights(keys * width), v(keys * (columns + 2) + 1),
              out(columns * width + 1);
          weights.randomise(random);
          v.randomise(random);
          out.randomise(random);
          std::vector<T> before(out.data(), out.data() + out.size());
          std::vector<std::int64_t> at;
          for (std::int64_t j = 0; j < keys; ++j) at.push_back((keys - 1 - j) * (columns + 2));
          for (const bool first : {false, true}) {
            std::copy(before.begin(), before.end(), out.data());
            functions.values({.weights = weights.data(),
                              .v = v.data(),
                              .v_at = at.data(),
                              .columns = columns,
                              .keys = keys,
                              .first = first,
                              .out = out.data(),
                              .ahead = {v.data(), at.data(), keys, columns}},
                             vectors);
            double worst = 0;
            for (std::int64_t c = 0; c < columns; ++c) {
              for (std::int64_t r = 0; r < width; ++r) {
                const auto old =
                    static_cast<double>(before[static_cast<std::size_t>(c * width + r)]);
                double sum = first && r < rows ? 0 : old;
                for (std::int64_t j = 0; r < rows && j < keys; ++j) {
                  sum += static_cast<double>(weights[j * width + r]) *
                         static_cast<double>(v[at[static_cast<std::size_t>(j)] + c]);
                }
                worst = std::max(worst, std::abs(static_cast<double>(out[c * width + r]) - sum));
              }
            }
            CHECK(worst <= tolerance);
            CHECK(out[columns * width] == before.back());
          }
        }
      }
    }
  });
}

template <class T>
void check_small_ones() {
  on_attend_functions<T>([&](const AttendFunctions<T>& functions) {
    for (std::int64_t vectors = 1; vectors <= functions.most_vectors; ++vectors) {
      const std::int64_t width = functions.most_vectors * functions.lanes,
                         last = vectors * functions.lanes - 1;
      AlignedArray<T> sums(width, static_cast<T>(kernel::kMostSum));
      CHECK(functions.judge(sums.data(), vectors) == Drift::none);
      sums[last] = static_cast<T>(kernel::kMostSum * 1.01);
      CHECK(functions.judge(sums.data(), vectors) == Drift::small);
      sums[0] = std::numeric_limits<T>::infinity();
      CHECK(functions.judge(sums.data(), vectors) == Drift::large);
      sums[last] = std::numeric_limits<T>::quiet_NaN();
      CHECK(functions.judge(sums.data(), vectors) == Drift::invalid);

      AlignedArray<T> bias(2 * width, static_cast<T>(kernel::kMostBias));
      bias[width] = -std::numeric_limits<T>::infinity();
      CHECK(functions.moderate(bias.data(), 2 * width));
      for (const T bad :
           {static_cast<T>(kernel::kMostBias * 1.01), std::numeric_limits<T>::infinity(),
            std::numeric_limits<T>::quiet_NaN(), std::numeric_limits<T>::lowest()}) {
        bias[2 * width - 1] = bad;
        CHECK(!functions.moderate(bias.data(), 2 * width));
      }

      AlignedArray<T> scores(3 * width, T{-1}), most(width, -std::numeric_limits<T>::infinity());
      scores[width + last] = 5;
      scores[last] = std::numeric_limits<T>::quiet_NaN();
      functions.largest(scores.data(), 3, vectors, most.data());
      CHECK(most[last] == 5);
      if (last > 0) CHECK(most[0] == -1);

      AlignedArray<T> x(3 * width, T{2}), factors(width, T{0.5});
      factors[last] = 4;
      CHECK(functions.scale(x.data(), 3, factors.data(), vectors));
      CHECK(x[2 * width + last] == 8);
      if (last > 0) CHECK(x[2 * width] == 1);
      x[width + last] = std::numeric_limits<T>::infinity();
      CHECK(!functions.scale(x.data(), 3, factors.data(), vectors));
    }
    std::vector<T> x(21, T{3});
    functions.multiply(x.data(), 20, T{2});
    CHECK(std::all_of(x.begin(), x.end() - 1, [](T value) { return value == 6; }));
    CHECK(x.back() == 3);
  });
}

}  // namespace

TEST_SUITE("kernel") {
  TEST_CASE("attend: scores and weights") {
    check_scores<float>();
    check_scores<double>();
  }
  TEST_CASE("attend: powers of two") {
    check_exponential<float>();
    check_exponential<double>();
  }
  TEST_CASE("attend: hyperbolic tangents of caps") {
    check_cap<float>();
    check_cap<double>();
  }
  TEST_CASE("attend: weighted values") {
    check_values<float>();
    check_values<double>();
  }
  TEST_CASE("attend: sums, biases, maxima and factors") {
    check_small_ones<float>();
    check_small_ones<double>();
  }
#if defined(__SSE2__)
  TEST_CASE("attend: denormals are flushed inside only") {
    const unsigned before = _mm_getcsr();
    {
      const kernel::FlushDenormals mode;
      volatile float tiny = 1e-38f;
      tiny = tiny * 0.01f;
      CHECK(tiny == 0);
    }
    CHECK(_mm_getcsr() == before);
    volatile float tiny = 1e-38f;
    tiny = tiny * 0.01f;
    CHECK(tiny != 0);
  }
#endif
}
