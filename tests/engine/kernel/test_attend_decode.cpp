// SPDX-License-Identifier: Apache-2.0
// Scores and weighted values of few rows on every SIMD target: all row counts, sizes and tails.
#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <memory>
#include <new>
#include <random>
#include <vector>

#include "aligned_array.h"
#include "on_all_targets.h"

using namespace einkern;
using kernel::DecodeFunctions;
using namespace einkern::test;

namespace {

template <class T>
std::int64_t whole_lines(std::int64_t n) {
  constexpr std::int64_t kLine = 64 / static_cast<std::int64_t>(sizeof(T));
  return (n + kLine - 1) / kLine * kLine;
}

template <class T, class F>
void on_decode_functions(F&& f) {
  on_all_targets([&](const kernel::Kernels& table) { f(table.decode.of<T>()); });
}

/// Rows of keys or values, the last one first, `size + 3` apart.
std::vector<std::int64_t> backwards(std::int64_t keys, std::int64_t size) {
  std::vector<std::int64_t> at;
  for (std::int64_t j = 0; j < keys; ++j) at.push_back((keys - 1 - j) * (size + 3));
  return at;
}

/// T is computed in, S is what keys are stored as.
template <class T, class S = T>
void check_decode_scores() {
  std::mt19937 random(1);
  const double tolerance = sizeof(T) == 4 ? 4e-6 : 1e-14;
  on_decode_functions<T>([&](const DecodeFunctions<T>& functions) {
    for (std::int64_t rows = 1; rows <= 9; ++rows) {
      for (std::int64_t keys = 0; keys <= 11; ++keys) {
        for (const std::int64_t inner : {0, 1, 7, 16, 37}) {
          const std::int64_t q_stride = whole_lines<T>(inner), out_stride = whole_lines<T>(keys);
          AlignedArray<T> q(rows * q_stride), out(rows * out_stride);
          AlignedArray<S> k(keys * (inner + 3));
          q.randomise(random);
          k.randomise(random);
          for (std::int64_t r = 0; r < rows; ++r) {
            for (std::int64_t i = inner; i < q_stride; ++i) q[r * q_stride + i] = 0;
          }
          const std::vector<std::int64_t> at = backwards(keys, inner);
          functions.scores({.q = q.data(),
                            .q_stride = q_stride,
                            .k = {k.data(), dtype_of<S>, at.data()},
                            .inner = inner,
                            .keys = keys,
                            .rows = rows,
                            .out = out.data(),
                            .out_stride = out_stride,
                            .ahead = {k.data(), dtype_of<S>, at.data()},
                            .ahead_rows = keys});
          double worst = 0;
          for (std::int64_t r = 0; r < rows; ++r) {
            for (std::int64_t j = 0; j < keys; ++j) {
              double sum = 0;
              for (std::int64_t i = 0; i < inner; ++i) {
                sum += static_cast<double>(q[r * q_stride + i]) *
                       static_cast<double>(widen(k[at[static_cast<std::size_t>(j)] + i]));
              }
              worst = std::max(worst, std::abs(static_cast<double>(out[r * out_stride + j]) - sum));
            }
          }
          CHECK(worst <= tolerance);
        }
      }
    }
  });
}

template <class T, class S = T>
void check_decode_values() {
  std::mt19937 random(2);
  const double tolerance = sizeof(T) == 4 ? 1e-5 : 1e-14;
  on_decode_functions<T>([&](const DecodeFunctions<T>& functions) {
    for (std::int64_t rows = 1; rows <= 9; ++rows) {
      for (const std::int64_t keys : {0, 1, 5, 18}) {
        for (const std::int64_t columns : {0, 1, 7, 16, 37, 64, 70, 131}) {
          const std::int64_t out_stride = whole_lines<T>(columns), stride = whole_lines<T>(keys);
          AlignedArray<T> weights(rows * stride), out(rows * out_stride, T{2});
          AlignedArray<S> v(keys * (columns + 3));
          weights.randomise(random);
          v.randomise(random);
          const std::vector<std::int64_t> at = backwards(keys, columns);
          functions.values({.weights = weights.data(),
                            .weights_stride = stride,
                            .v = {v.data(), dtype_of<S>, at.data()},
                            .columns = columns,
                            .keys = keys,
                            .rows = rows,
                            .out = out.data(),
                            .out_stride = out_stride,
                            .ahead = {v.data(), dtype_of<S>, at.data()},
                            .ahead_rows = keys});
          double worst = 0;
          for (std::int64_t r = 0; r < rows; ++r) {
            for (std::int64_t c = 0; c < columns; ++c) {
              double sum = 2;
              for (std::int64_t j = 0; j < keys; ++j) {
                sum += static_cast<double>(weights[r * stride + j]) *
                       static_cast<double>(widen(v[at[static_cast<std::size_t>(j)] + c]));
              }
              worst = std::max(worst, std::abs(static_cast<double>(out[r * out_stride + c]) - sum));
            }
          }
          CHECK(worst <= tolerance);
        }
      }
    }
  });
}

template <class T>
void check_decode_weights() {
  constexpr std::int64_t kSize = 32;
  std::mt19937 random(3);
  on_decode_functions<T>([&](const DecodeFunctions<T>& functions) {
    AlignedArray<T> x(kSize);
    x.randomise(random);
    x[3] = std::numeric_limits<T>::quiet_NaN();
    x[17] = 5;
    x[31] = -std::numeric_limits<T>::infinity();
    CHECK(functions.largest(x.data(), kSize) == 5);
    x[3] = 0;
    AlignedArray<T> natural(kSize);
    std::copy_n(x.data(), kSize, natural.data());
    functions.to_base_2(x.data(), kSize);
    CHECK(x[31] == -std::numeric_limits<T>::infinity());
    const T reference = 3;
    const T sum = functions.weigh(x.data(), kSize, reference);
    double right = 0, worst = 0;
    for (std::int64_t i = 0; i < kSize; ++i) {
      const double weight = std::exp(static_cast<double>(natural[i])) / 8;
      right += weight;
      if (weight != 0) worst = std::max(worst, std::abs(static_cast<double>(x[i]) / weight - 1));
    }
    CHECK(x[31] == 0);
    CHECK(worst <= (sizeof(T) == 4 ? 1e-6 : 1e-14));
    CHECK(std::abs(static_cast<double>(sum) / right - 1) <= (sizeof(T) == 4 ? 1e-6 : 1e-14));

    // Finite scores stay finite, whatever their size; others stay what they are.
    AlignedArray<T> far(kSize, std::numeric_limits<T>::lowest());
    far[1] = std::numeric_limits<T>::max();
    far[2] = std::numeric_limits<T>::infinity();
    far[3] = std::numeric_limits<T>::quiet_NaN();
    functions.to_base_2(far.data(), kSize);
    CHECK(std::isfinite(far[0]));
    CHECK(std::isfinite(far[1]));
    CHECK(far[2] == std::numeric_limits<T>::infinity());
    CHECK(std::isnan(far[3]));
  });
}

}  // namespace

TEST_SUITE("kernel") {
  TEST_CASE("attend_decode: scores of few rows") {
    check_decode_scores<float>();
    check_decode_scores<double>();
    check_decode_scores<float, Float16>();
    check_decode_scores<float, BFloat16>();
  }
  TEST_CASE("attend_decode: weighted values of few rows") {
    check_decode_values<float>();
    check_decode_values<double>();
    check_decode_values<float, Float16>();
    check_decode_values<float, BFloat16>();
  }
  TEST_CASE("attend_decode: maxima and weights") {
    check_decode_weights<float>();
    check_decode_weights<double>();
  }
}
