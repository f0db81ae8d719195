// SPDX-License-Identifier: Apache-2.0
// Many small products on every SIMD target against plain loops: all shapes around the widths of
// registers, the layouts that share registers, and strides that do not.
#include <doctest/doctest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <limits>
#include <random>
#include <vector>

#include "matrices.h"
#include "on_all_targets.h"

using namespace einkern;
using namespace einkern::kernel;
using namespace einkern::test;

namespace {

/// How the matrices of a SmallBlock lie.
enum class Place { dense, rows_interleaved, apart, turned };

template <class T>
SmallBlock<T> placed(Place place, std::int64_t m, std::int64_t n, std::int64_t k,
                     std::int64_t count) {
  // What follows is asked for or not: it changes nothing, wherever the memory ends.
  SmallBlock<T> s{
      .rows = m, .columns = n, .steps = k, .count = count, .ahead = (m + n) % 3 * count};
  switch (place) {
    case Place::dense:
      s.a_entry = m * k, s.a_row = k, s.a_step = 1;
      s.b_entry = k * n, s.b_step = n;
      s.c_entry = m * n, s.c_row = n;
      break;
    case Place::rows_interleaved:  // row i of all matrices, then row i + 1
      s.a_entry = k, s.a_row = count * k, s.a_step = 1;
      s.b_entry = n, s.b_step = count * n;
      s.c_entry = n, s.c_row = count * n;
      break;
    case Place::apart:
      s.a_entry = m * (k + 2) + 1, s.a_row = k + 2, s.a_step = 1;
      s.b_entry = k * (n + 1) + 3, s.b_step = n + 1;
      s.c_entry = m * (n + 3) + 2, s.c_row = n + 3;
      break;
    case Place::turned:
      s.a_entry = m * k, s.a_row = 1, s.a_step = m;
      s.b_entry = k * n + 1, s.b_step = n;
      s.c_entry = m * n + 1, s.c_row = n;
      break;
  }
  return s;
}

template <class T>
void check_small(const Kernels& table, Place place, std::int64_t m, std::int64_t n, std::int64_t k,
                 std::int64_t count) {
  static std::mt19937 random(4);
  static const std::vector<T> a = random_values<T>(60000, random);
  static const std::vector<T> b = random_values<T>(60000, random);
  SmallBlock<T> s = placed<T>(place, m, n, k, count);
  s.a = a.data() + 3;
  s.b = b.data() + 1;
  const std::int64_t end = (count - 1) * s.c_entry + (m - 1) * s.c_row + n;
  std::vector<T> c(static_cast<std::size_t>(end) + 2, kUntouched<T>);
  s.c = c.data() + 1;
  table.matmul.of<T>().multiply_small(s);
  double worst = 0;
  for (std::int64_t e = 0; e < count; ++e) {
    for (std::int64_t i = 0; i < m; ++i) {
      for (std::int64_t j = 0; j < n; ++j) {
        double sum = 0;
        for (std::int64_t p = 0; p < k; ++p) {
          sum += static_cast<double>(s.a[e * s.a_entry + i * s.a_row + p * s.a_step]) *
                 static_cast<double>(s.b[e * s.b_entry + p * s.b_step + j]);
        }
        T& got = s.c[e * s.c_entry + i * s.c_row + j];
        worst = std::max(worst, std::abs(static_cast<double>(got) - sum));
        got = kUntouched<T>;
      }
    }
  }
  CHECK(worst <= static_cast<double>(k * k) * std::numeric_limits<T>::epsilon());
  CHECK(std::all_of(c.begin(), c.end(), [](T x) { return x == kUntouched<T>; }));
}

template <class T>
void check_small_sizes(const Kernels& table) {
  for (const Place place : {Place::dense, Place::rows_interleaved, Place::apart, Place::turned}) {
    for (std::int64_t m = 1; m <= 9; ++m) {
      for (std::int64_t n = 1; n <= 9; ++n) {
        for (const std::int64_t k : {1, 2, 3, 4, 5, 7, 8, 9}) {
          check_small<T>(table, place, m, n, k, 7);
        }
      }
    }
    for (const std::int64_t n : {1, 3, 8, 15, 16, 17, 31, 32, 33, 35}) {
      for (const std::int64_t m : {1, 2, 5, 8, 13, 16, 17})
        check_small<T>(table, place, m, n, 6, 3);
    }
    for (std::int64_t count = 1; count <= 10; ++count) {
      for (std::int64_t n = 2; n <= 4; ++n) check_small<T>(table, place, n, n, n, count);
      check_small<T>(table, place, 17, 2, 2, count);
    }
  }
}

/// Rows of half a line, or of one or two vectors, that go around the caches.
template <class T>
void check_small_streamed(const Kernels& table) {
  std::mt19937 random(5);
  const std::int64_t vector_bytes = table.target.vector_bytes;
  for (std::int64_t bytes = 32; bytes <= 2 * vector_bytes; bytes *= 2) {
    const std::int64_t n = bytes / static_cast<std::int64_t>(sizeof(T));
    for (std::int64_t m = 1; m <= 19; ++m) {
      if (m * bytes <= vector_bytes) continue;
      for (const Place place : {Place::dense, Place::turned}) {
        for (const std::int64_t k : {1, 3, 8}) {
          constexpr std::int64_t kCount = 5;
          SmallBlock<T> s = placed<T>(place, m, n, k, kCount);
          s.c_entry = m * n;
          s.ahead = 0;
          const auto a = random_values<T>(static_cast<std::size_t>(kCount * s.a_entry), random);
          const auto b = random_values<T>(static_cast<std::size_t>(kCount * s.b_entry), random);
          std::vector<T> want(static_cast<std::size_t>(kCount * m * n));
          std::vector<T> got(want.size() + kLineOf<T> + 1, kUntouched<T>);
          s.a = a.data(), s.b = b.data(), s.c = want.data();
          table.matmul.of<T>().multiply_small(s);  // which is checked above
          s.c = got.data() + 1;
          while (reinterpret_cast<std::uintptr_t>(s.c) % 64 != 0) ++s.c;
          s.stream = true;
          table.matmul.of<T>().multiply_small(s);
          table.copy.fence();
          CHECK(std::equal(want.begin(), want.end(), s.c));
          std::fill_n(s.c, want.size(), kUntouched<T>);
          CHECK(std::all_of(got.begin(), got.end(), [](T x) { return x == kUntouched<T>; }));
        }
      }
    }
  }
}

/// A product has the same bits wherever it stands and whatever stands beside it.
template <class T>
void check_small_bits(const Kernels& table) {
  std::mt19937 random(9);
  constexpr std::int64_t kCount = 9;
  for (const auto& [m, n, k] : {std::array<std::int64_t, 3>{2, 2, 2},
                                {3, 3, 3},
                                {4, 5, 3},
                                {8, 8, 8},
                                {5, 2, 7},
                                {3, 17, 4}}) {
    for (const Place place : {Place::dense, Place::rows_interleaved}) {
      SmallBlock<T> s = placed<T>(place, m, n, k, kCount);
      const std::vector<T> a = random_values<T>(static_cast<std::size_t>(kCount * m * k), random);
      const std::vector<T> b = random_values<T>(static_cast<std::size_t>(kCount * k * n), random);
      std::vector<T> c(static_cast<std::size_t>(kCount * m * n)), alone = c;
      s.a = a.data(), s.b = b.data(), s.c = c.data();
      table.matmul.of<T>().multiply_small(s);
      s.c = alone.data();
      s.count = 1;
      for (std::int64_t e = 0; e < kCount; ++e) {
        table.matmul.of<T>().multiply_small(s);
        s.a += s.a_entry, s.b += s.b_entry, s.c += s.c_entry;
      }
      CHECK(c == alone);
    }
  }
}

/// Neighbours of an infinity stay what they are.
template <class T>
void check_small_infinities(const Kernels& table) {
  constexpr T kInfinity = std::numeric_limits<T>::infinity();
  for (const Place place : {Place::dense, Place::rows_interleaved}) {
    for (const std::int64_t n : {1, 2, 3, 4, 5, 8}) {
      constexpr std::int64_t kCount = 5;
      SmallBlock<T> s = placed<T>(place, n, n, n, kCount);
      std::vector<T> a(static_cast<std::size_t>(kCount * n * n), T{1}), b = a, c = a;
      s.a = a.data(), s.b = b.data(), s.c = c.data();
      a[static_cast<std::size_t>(2 * s.a_entry)] = kInfinity;  // first row of the third matrix
      table.matmul.of<T>().multiply_small(s);
      for (std::int64_t e = 0; e < kCount; ++e) {
        for (std::int64_t i = 0; i < n; ++i) {
          for (std::int64_t j = 0; j < n; ++j) {
            const T want = e == 2 && i == 0 ? kInfinity : static_cast<T>(n);
            CHECK(s.c[e * s.c_entry + i * s.c_row + j] == want);
          }
        }
      }
    }
  }
}

/// Lanes straight from memory, and packed.
template <class T>
void check_lanes(const Kernels& table, std::int64_t rows, std::int64_t columns, std::int64_t lanes,
                 bool pack_a, bool pack_b, bool stream) {
  static std::mt19937 random(3);
  static const std::vector<T> a = random_values<T>(60000, random);
  static const std::vector<T> b = random_values<T>(60000, random);
  constexpr std::int64_t kSteps = 5, kWidth = 96;
  LaneBlock<T> block{.a = a.data() + 1,
                     .b = b.data() + 2,
                     .a_row = 600,
                     .a_step = 101,
                     .b_column = 700,
                     .b_step = 103,
                     .c_row = columns * kWidth,
                     .c_column = kWidth,
                     .rows = rows,
                     .columns = columns,
                     .steps = kSteps,
                     .lanes = lanes,
                     .stream = stream};
  std::vector<T> c(static_cast<std::size_t>(rows * columns * kWidth) + 64, kUntouched<T>);
  block.c = c.data();
  while (reinterpret_cast<std::uintptr_t>(block.c) % 64 != 0) ++block.c;
  if (!stream) ++block.c;
  const auto& functions = table.matmul.of<T>();
  const LaneBlock<T> plain = block;
  constexpr std::int64_t kLine = kLineOf<T>;
  const std::int64_t lines = (lanes + kLine - 1) / kLine;
  const auto pack = [&](const T* source, std::int64_t outer, std::int64_t outer_step,
                        std::int64_t inner, std::int64_t inner_step, bool same) {
    std::vector<std::int64_t> at;
    for (std::int64_t o = 0; o < outer; ++o) {
      for (std::int64_t i = 0; i < inner; ++i) at.push_back(o * outer_step + i * inner_step);
    }
    const std::int64_t runs = outer * inner, line = (runs + 1) * kLine;
    std::vector<T> packed(static_cast<std::size_t>(lines * line), kUntouched<T>);
    functions.pack_lanes({.source = source,
                          .at = at.data(),
                          .runs = runs,
                          .lanes = lanes,
                          .same = same,
                          .packed = packed.data(),
                          .line = line});
    for (std::int64_t l = 0; l < lines * kLine; ++l) {
      for (std::int64_t r = 0; r < runs; ++r) {
        const T want = same        ? source[at[static_cast<std::size_t>(r)]]
                       : l < lanes ? source[at[static_cast<std::size_t>(r)] + l]
                                   : T{0};
        REQUIRE(packed[static_cast<std::size_t>(l / kLine * line + r * kLine + l % kLine)] == want);
      }
    }
    return packed;
  };
  std::vector<T> packed_a, packed_b;
  if (pack_a) {
    packed_a = pack(block.a, rows, block.a_row, kSteps, block.a_step, false);
    block.a = packed_a.data();
    block.a_row = kSteps * kLine;
    block.a_step = kLine;
    block.a_line = (rows * kSteps + 1) * kLine;
  }
  if (pack_b) {
    packed_b = pack(block.b, kSteps, block.b_step, columns, block.b_column, true);
    block.b = packed_b.data();
    block.b_column = kLine;
    block.b_step = columns * kLine;
    block.b_line = (kSteps * columns + 1) * kLine;
  }
  functions.multiply_lanes(block);
  table.copy.fence();
  double worst = 0;
  for (std::int64_t i = 0; i < rows; ++i) {
    for (std::int64_t j = 0; j < columns; ++j) {
      for (std::int64_t l = 0; l < lanes; ++l) {
        double sum = 0;
        for (std::int64_t p = 0; p < kSteps; ++p) {
          sum += static_cast<double>(plain.a[i * plain.a_row + p * plain.a_step + l]) *
                 static_cast<double>(
                     plain.b[j * plain.b_column + p * plain.b_step + (pack_b ? 0 : l)]);
        }
        T& got = block.c[i * plain.c_row + j * plain.c_column + l];
        worst = std::max(worst, std::abs(static_cast<double>(got) - sum));
        got = kUntouched<T>;
      }
    }
  }
  CHECK(worst <= 5 * 5 * std::numeric_limits<T>::epsilon());
  CHECK(std::all_of(c.begin(), c.end(), [](T x) { return x == kUntouched<T>; }));
}

template <class T>
void check_lane_sizes(const Kernels& table) {
  for (const std::int64_t rows : {1, 2, 3, 4, 6}) {
    for (const std::int64_t columns : {1, 2, 3, 4, 5, 9}) {
      for (std::int64_t lanes = 1; lanes <= 69; lanes += lanes % 16 == 15 ? 1 : 2) {
        const bool even = lanes % 3 == 0;
        check_lanes<T>(table, rows, columns, lanes, false, false, false);
        check_lanes<T>(table, rows, columns, lanes, true, even, false);
        check_lanes<T>(table, rows, columns, lanes, !even, true, true);
      }
    }
  }
}

}  // namespace

TEST_SUITE("kernel") {
  TEST_CASE("small products") {
    on_all_targets([](const Kernels& table) {
      check_small_sizes<float>(table);
      check_small_sizes<double>(table);
    });
  }

  TEST_CASE("small products go around the caches") {
    on_all_targets([](const Kernels& table) {
      check_small_streamed<float>(table);
      check_small_streamed<double>(table);
    });
  }

  TEST_CASE("small products have the same bits wherever they stand") {
    on_all_targets([](const Kernels& table) {
      check_small_bits<float>(table);
      check_small_bits<double>(table);
    });
  }

  TEST_CASE("infinities stay in their small product") {
    on_all_targets([](const Kernels& table) {
      check_small_infinities<float>(table);
      check_small_infinities<double>(table);
    });
  }

  TEST_CASE("products side by side in the lanes") {
    on_all_targets([](const Kernels& table) {
      check_lane_sizes<float>(table);
      check_lane_sizes<double>(table);
    });
  }
}
