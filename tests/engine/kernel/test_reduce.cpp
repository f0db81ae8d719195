// SPDX-License-Identifier: Apache-2.0
// Folds of runs and columns against long double loops, on every SIMD target.
#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <random>
#include <vector>

#include "../../../engine/kernel/kernels.h"

using namespace einkern;
using kernel::Fold;
using kernel::FoldKernels;
using kernel::Int128;

namespace {

long double fold_one(Fold fold, long double a, long double b) {
  switch (fold) {
    case Fold::sum:
      return a + b;
    case Fold::prod:
      return a * b;
    case Fold::max:
      return std::max(a, b);
    case Fold::min:
      return std::min(a, b);
  }
  return 0;
}

template <class T>
std::vector<T> numbers(std::size_t n, Fold fold) {
  std::mt19937 random(static_cast<std::uint32_t>(n + 17));
  std::uniform_real_distribution<double> uniform(-1, 1), near_one(0.97, 1.03);
  std::vector<T> x(n);
  for (T& value : x) {
    value = static_cast<T>(fold == Fold::prod ? near_one(random) : uniform(random));
  }
  return x;
}

/// Error allowed for n values: blocks of 128 additions per lane, then a tree.
template <class T>
double tolerance(Fold fold, double n, double scale) {
  if (fold == Fold::max || fold == Fold::min) return 0;
  const double depth = fold == Fold::sum ? std::min(n, 160.0) + std::log2(n + 1) : n + 1;
  return depth * std::numeric_limits<T>::epsilon() / 2 * scale;
}

template <class T>
void check_rows() {
  for (const kernel::Kernels* kernels : kernel::supported_kernels()) {
    const auto lanes = std::max<std::size_t>(
        1, static_cast<std::size_t>(kernels->target.vector_bytes) / sizeof(T));
    std::vector<std::size_t> sizes{
        100, 1000, 128 * lanes - 1, 128 * lanes, 128 * lanes + 1, 640 * lanes + 3};
    for (std::size_t n = 1; n <= 2 * lanes + 1; ++n) sizes.push_back(n);
    for (int f = 0; f < 4; ++f) {
      const Fold fold = static_cast<Fold>(f);
      const FoldKernels& functions = kernels->reduce.of(fold, dtype_of<T>);
      for (const std::size_t n : sizes) {
        const std::vector<T> x = numbers<T>(n, fold);
        long double want = x[0], magnitude = std::abs(x[0]);
        for (std::size_t i = 1; i < n; ++i) {
          want = fold_one(fold, want, x[i]);
          magnitude = fold == Fold::sum ? magnitude + std::abs(x[i])
                                        : std::max<long double>(magnitude, std::abs(want));
        }
        T first = 0;
        bool have_first = false;
        for (const std::int64_t stride : {1, 2, -3, 7}) {
          const auto span = static_cast<std::int64_t>(n - 1) * std::abs(stride) + 1;
          std::vector<T> spread(static_cast<std::size_t>(span + 3),
                                std::numeric_limits<T>::quiet_NaN());
          T* start = spread.data() + 1 + (stride < 0 ? span - 1 : 0);
          for (std::size_t i = 0; i < n; ++i) start[static_cast<std::int64_t>(i) * stride] = x[i];
          T got = 0;
          functions.row(start, static_cast<std::int64_t>(n), stride, &got);
          const double error = std::abs(static_cast<double>(got - want));
          const double allowed =
              tolerance<T>(fold, static_cast<double>(n), static_cast<double>(magnitude));
          // Whatever the stride, the order and therefore the bits are the same.
          if (!(error <= allowed) || (have_first && got != first)) {
            FAIL_CHECK("fold ", f, " n ", n, " stride ", stride, " on ", kernels->target.name, ": ",
                       got, " for ", static_cast<double>(want));
          }
          first = got;
          have_first = true;
        }
      }
    }
  }
}

template <class T>
void check_columns() {
  for (const kernel::Kernels* kernels : kernel::supported_kernels()) {
    const auto lanes =
        std::max<std::int64_t>(1, kernels->target.vector_bytes / static_cast<int>(sizeof(T)));
    for (int f = 0; f < 4; ++f) {
      const Fold fold = static_cast<Fold>(f);
      const FoldKernels& functions = kernels->reduce.of(fold, dtype_of<T>);
      for (const std::int64_t rows : {1, 2, 7, 8, 9, 16, 100, 128}) {
        std::vector<std::int64_t> widths{4 * lanes, 7 * lanes + 1, 13 * lanes, 17 * lanes + 1};
        for (std::int64_t width = 1; width <= 2 * lanes + 1; ++width) widths.push_back(width);
        for (const std::int64_t columns : widths) {
          const std::int64_t stride = columns + 2;
          const auto x = numbers<T>(static_cast<std::size_t>(rows * stride), fold);
          std::vector<T> out(static_cast<std::size_t>(columns + 1), T{-55});
          functions.columns(x.data(), rows, stride, columns, out.data());
          bool right = out.back() == T{-55};
          for (std::int64_t j = 0; j < columns; ++j) {
            long double want = x[static_cast<std::size_t>(j)], magnitude = std::abs(want);
            for (std::int64_t r = 1; r < rows; ++r) {
              const T value = x[static_cast<std::size_t>(r * stride + j)];
              want = fold_one(fold, want, value);
              magnitude += fold == Fold::prod ? std::abs(want) / rows : std::abs(value);
            }
            const double error =
                std::abs(static_cast<double>(out[static_cast<std::size_t>(j)] - want));
            right &= error <=
                     tolerance<T>(fold, static_cast<double>(rows), static_cast<double>(magnitude));
          }
          auto joined = out;
          functions.join(joined.data(), out.data(), columns);
          for (std::int64_t j = 0; j < columns; ++j) {
            const T a = out[static_cast<std::size_t>(j)];
            // Rounded once: a long double product rounded to double may differ in the last bit.
            const T want = fold == Fold::prod ? a * a : static_cast<T>(fold_one(fold, a, a));
            right &= joined[static_cast<std::size_t>(j)] == want;
          }
          right &= joined.back() == T{-55};
          if (!right) {
            FAIL_CHECK("fold ", f, " rows ", rows, " columns ", columns, " on ",
                       kernels->target.name);
          }
        }
      }
    }
  }
}

template <class T>
void check_nan() {
  for (const kernel::Kernels* kernels : kernel::supported_kernels()) {
    for (const Fold fold : {Fold::max, Fold::min, Fold::sum}) {
      const FoldKernels& functions = kernels->reduce.of(fold, dtype_of<T>);
      for (std::size_t n : {1, 2, 5, 33, 150}) {
        for (std::size_t at = 0; at < n; ++at) {
          std::vector<T> x(n, T{1});
          x[at] = std::numeric_limits<T>::quiet_NaN();
          T got = 0;
          functions.row(x.data(), static_cast<std::int64_t>(n), 1, &got);
          CHECK(std::isnan(got));
          if (n > 128) continue;
          functions.columns(x.data(), static_cast<std::int64_t>(n), 1, 1, &got);
          CHECK(std::isnan(got));
        }
      }
      T a[] = {NAN, 1, 2}, b[] = {1, NAN, 3};
      functions.join(a, b, 3);
      CHECK(std::isnan(a[0]));
      CHECK(std::isnan(a[1]));
      CHECK(!std::isnan(a[2]));
    }
  }
}

}  // namespace

TEST_SUITE("kernel") {
  TEST_CASE("folds of runs") {
    check_rows<float>();
    check_rows<double>();
  }
  TEST_CASE("folds of columns") {
    check_columns<float>();
    check_columns<double>();
  }
  TEST_CASE("NaN wins every fold") {
    check_nan<float>();
    check_nan<double>();
  }

  TEST_CASE("a million equal terms are summed to a few units in the last place") {
    const std::vector<float> x(1 << 20, 0.1f);
    for (const kernel::Kernels* kernels : kernel::supported_kernels()) {
      float got = 0;
      kernels->reduce.of(Fold::sum, f32).row(x.data(), 1 << 20, 1, &got);
      // Adding one after another is off by 1 in 100 here.
      CHECK(std::abs(got - 104857.6015625) < 104857.6 * 4e-6);
    }
  }

  TEST_CASE("folds of infinities") {
    for (const kernel::Kernels* kernels : kernel::supported_kernels()) {
      const float x[] = {-INFINITY, -INFINITY, -INFINITY};
      float got = 0;
      kernels->reduce.of(Fold::max, f32).row(x, 3, 1, &got);
      CHECK(got == -INFINITY);
      kernels->reduce.of(Fold::sum, f32).row(x, 3, 1, &got);
      CHECK(got == -INFINITY);
      const float y[] = {INFINITY, INFINITY};
      kernels->reduce.of(Fold::min, f32).row(y, 2, 1, &got);
      CHECK(got == INFINITY);
    }
  }

  TEST_CASE("integers are folded exactly, beyond 64 bits") {
    constexpr std::int64_t kMost = std::numeric_limits<std::int64_t>::max();
    const std::int64_t x[] = {kMost, kMost, -kMost, 5, -kMost};
    const std::int64_t zero[] = {kMost, kMost, kMost, 0};
    const std::int64_t least[] = {1LL << 32, -(1LL << 31), 1};
    for (const kernel::Kernels* kernels : kernel::supported_kernels()) {
      const auto fold = [&](Fold f, const std::int64_t* from, std::int64_t n, std::int64_t stride) {
        Int128 total = 0;
        kernels->reduce.of(f, i64).row(from, n, stride, &total);
        return total;
      };
      CHECK((fold(Fold::sum, x, 5, 1) == 5));
      CHECK((fold(Fold::sum, x, 2, 1) == Int128{kMost} * 2));
      CHECK((fold(Fold::sum, x, 3, 2) == -kMost));
      CHECK((fold(Fold::max, x, 5, 1) == kMost));
      CHECK((fold(Fold::min, x, 5, 1) == -kMost));
      CHECK((fold(Fold::prod, zero, 4, 1) == 0));
      CHECK((fold(Fold::prod, zero, 3, 1) > kMost));
      CHECK((fold(Fold::prod, least, 3, 1) == std::numeric_limits<std::int64_t>::min()));
      Int128 columns[2], others[2] = {1, 2};
      kernels->reduce.of(Fold::sum, i64).columns(x, 2, 3, 2, columns);
      CHECK((columns[0] == Int128{kMost} + 5));
      CHECK((columns[1] == 0));
      kernels->reduce.of(Fold::sum, i64).join(columns, others, 2);
      CHECK((columns[1] == 2));
    }
  }
}
