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

/// Rows one behind the other.
std::vector<std::int64_t> in_a_stream(std::int64_t keys, std::int64_t size) {
  std::vector<std::int64_t> at;
  for (std::int64_t j = 0; j < keys; ++j) at.push_back(j * size);
  return at;
}

/// Sizes of rows, and either way that rows of this size lie.
struct Lying {
  std::int64_t size;
  std::vector<std::int64_t> (*at)(std::int64_t keys, std::int64_t size);
};
std::vector<Lying> both_orders(const std::vector<std::int64_t>& sizes) {
  std::vector<Lying> all;
  for (const std::int64_t size : sizes) {
    all.push_back({size, backwards});
    all.push_back({size, in_a_stream});
  }
  return all;
}

constexpr std::int64_t kPaddedRows[] = {1, 2, 4, 8};

/// T is computed in, S is what keys are stored as.
template <class T, class S = T>
void check_decode_scores() {
  std::mt19937 random(1);
  constexpr double kRounding = static_cast<double>(std::numeric_limits<T>::epsilon()) / 2;
  on_decode_functions<T>([&](const DecodeFunctions<T>& functions) {
    for (const std::int64_t rows : kPaddedRows) {
      if (functions.padded_rows(rows) != rows) continue;
      const std::int64_t together = functions.together(rows);
      for (const std::int64_t keys : {0, 1, 2, 3, 4, 7, 8, 9, 11, 16, 21}) {
        for (const auto& [inner, lie] : both_orders({0, 1, 7, 16, 32, 37, 64, 67, 128, 150})) {
          const std::int64_t padded = (inner + together - 1) / together * together;
          AlignedArray<T> q(rows * padded);
          AlignedArray<T> out((keys + kernel::kDecodeKeys) * rows, T{9});
          AlignedArray<S> k(keys * (inner + 3));
          q.randomise(random);
          k.randomise(random);
          const auto q_at = [&](std::int64_t r, std::int64_t i) -> T& {
            return q[(i / together * rows + r) * together + i % together];
          };
          for (std::int64_t r = 0; r < rows; ++r) {
            for (std::int64_t i = inner; i < padded; ++i) q_at(r, i) = 0;
          }
          const std::vector<std::int64_t> at = lie(keys, inner);
          functions.scores({.q = q.data(),
                            .k = {k.data(), dtype_of<S>, at.data()},
                            .inner = inner,
                            .keys = keys,
                            .rows = rows,
                            .out = out.data(),
                            .ahead = {k.data(), dtype_of<S>, at.data()},
                            .ahead_rows = keys});
          double worst = 0;
          for (std::int64_t r = 0; r < rows; ++r) {
            for (std::int64_t j = 0; j < keys; ++j) {
              double sum = 0;
              for (std::int64_t i = 0; i < inner; ++i) {
                sum += static_cast<double>(q_at(r, i)) *
                       static_cast<double>(widen(k[at[static_cast<std::size_t>(j)] + i]));
              }
              worst = std::max(worst, std::abs(static_cast<double>(out[j * rows + r]) - sum));
            }
          }
          // Products are below 1 and sums hardly above: half a unit in the last place of 1 each.
          CHECK(worst <= static_cast<double>(std::max<std::int64_t>(inner, 16)) * kRounding);
          CHECK(out[(keys + kernel::kDecodeKeys - 1) * rows] == 9);
          if constexpr (is_half<S>) {
            // The bits that keys of type T give.
            AlignedArray<T> copies(keys * (inner + 3)), same((keys + kernel::kDecodeKeys) * rows);
            for (std::int64_t i = 0; i < keys * (inner + 3); ++i) copies[i] = widen(k[i]);
            functions.scores({.q = q.data(),
                              .k = {copies.data(), dtype_of<T>, at.data()},
                              .inner = inner,
                              .keys = keys,
                              .rows = rows,
                              .out = same.data()});
            CHECK(std::equal(out.data(), out.data() + keys * rows, same.data()));
          }
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
    for (const std::int64_t rows : kPaddedRows) {
      for (const std::int64_t keys : {0, 1, 5, 18}) {
        for (const auto& [columns, lie] : both_orders({0, 1, 7, 16, 32, 37, 64, 70, 128, 131})) {
          const std::int64_t out_stride = whole_lines<T>(columns);
          AlignedArray<T> weights(rows * keys), out(rows * out_stride, T{2});
          AlignedArray<S> v(keys * (columns + 3));
          weights.randomise(random);
          v.randomise(random);
          const std::vector<std::int64_t> at = lie(keys, columns);
          functions.values({.weights = weights.data(),
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
                sum += static_cast<double>(weights[j * rows + r]) *
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
  constexpr std::int64_t kKeys = 16;
  constexpr T kInfinity = std::numeric_limits<T>::infinity();
  std::mt19937 random(3);
  on_decode_functions<T>([&](const DecodeFunctions<T>& functions) {
    for (const std::int64_t rows : kPaddedRows) {
      const std::int64_t size = kKeys * rows;
      AlignedArray<T> x(size), largest(rows), reference(rows), sums(rows);
      x.randomise(random);
      for (std::int64_t r = 0; r < rows; ++r) {
        x[3 * rows + r] = std::numeric_limits<T>::quiet_NaN();
        x[(5 + r) * rows + r] = static_cast<T>(5 + r);
        x[15 * rows + r] = -kInfinity;
        reference[r] = static_cast<T>(3 - r);
      }
      functions.largest(x.data(), size, rows, largest.data());
      for (std::int64_t r = 0; r < rows; ++r) {
        CHECK(largest[r] == static_cast<T>(5 + r));
        x[3 * rows + r] = 0;
      }
      AlignedArray<T> natural(size);
      std::copy_n(x.data(), size, natural.data());
      functions.to_base_2(x.data(), size);
      CHECK(x[15 * rows] == -kInfinity);
      functions.weigh(x.data(), size, rows, reference.data(), sums.data());
      double worst = 0;
      for (std::int64_t r = 0; r < rows; ++r) {
        double right = 0;
        for (std::int64_t j = 0; j < kKeys; ++j) {
          const double weight = std::exp(static_cast<double>(natural[j * rows + r])) /
                                std::exp2(static_cast<double>(reference[r]));
          right += weight;
          if (weight == 0) continue;
          worst = std::max(worst, std::abs(static_cast<double>(x[j * rows + r]) / weight - 1));
        }
        CHECK(x[15 * rows + r] == 0);
        worst = std::max(worst, std::abs(static_cast<double>(sums[r]) / right - 1));
      }
      CHECK(worst <= (sizeof(T) == 4 ? 1e-6 : 1e-14));
    }

    // Finite scores stay finite, whatever their size; others stay what they are.
    constexpr std::int64_t kSize = 32;
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
