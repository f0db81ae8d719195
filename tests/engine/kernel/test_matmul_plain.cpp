// SPDX-License-Identifier: Apache-2.0
// Products of operands that are read where they lie: the bits of packed ones, on every SIMD target.
#include <doctest/doctest.h>

#include <algorithm>
#include <cstdint>
#include <random>
#include <vector>

#include "matrices.h"
#include "on_all_targets.h"

using namespace einkern;
using namespace einkern::kernel;
using namespace einkern::test;

namespace {

/// A b that is read where it lies gives the bits of a packed one.
template <class T>
void check_plain_b(const Kernels& table) {
  std::mt19937 random(11);
  const auto& functions = table.matmul.of<T>();
  const std::int64_t half = nr<T>(table) / 2;
  for (const std::int64_t columns : {half, 2 * half, 3 * half, 8 * half}) {
    for (const std::int64_t steps : {1, 7, 40, 90}) {
      for (const std::int64_t gap : {0, 3}) {
        for (const bool backwards : {false, true}) {
          const std::int64_t rows = 2 * mr<T>(table) - 1, stride = columns + gap;
          const std::vector<T> a = random_values<T>(rows * steps, random);
          // Exactly what may be read.
          const std::vector<T> b = random_values<T>((steps - 1) * stride + columns, random);
          const std::int64_t step = backwards ? -stride : stride;
          const std::int64_t first = backwards ? (steps - 1) * stride : 0;
          const Panels panels{columns, nr<T>(table), true};
          std::vector<T> packed(static_cast<std::size_t>(panels.packed_size(steps)));
          const List b_columns = affine(columns, 1, first), b_steps = affine(steps, step);
          functions.pack({b.data(),
                          {b_columns.data(), columns, {columns, 1}},
                          {b_steps.data(), steps, {}},
                          panels,
                          packed.data()});
          const List c_rows = affine(rows, columns), c_columns = affine(columns, 1);
          std::vector<T> want(static_cast<std::size_t>(rows * columns)), got = want;
          MultiplyBlock<T> block{.a = a.data(),
                                 .b = packed.data(),
                                 .c = want.data(),
                                 .rows = c_rows.data(),
                                 .columns = c_columns.data(),
                                 .row_count = rows,
                                 .column_count = columns,
                                 .steps = steps};
          functions.multiply(block);
          block.b = b.data() + first;
          block.b_stride = step;
          block.c = got.data();
          functions.multiply(block);
          CHECK(got == want);
        }
      }
    }
  }
}

/// An a that is read where it lies gives the bits of a packed one.
template <class T>
void check_plain_a(const Kernels& table) {
  std::mt19937 random(12);
  const auto& functions = table.matmul.of<T>();
  for (std::int64_t rows = 1; rows <= 2 * mr<T>(table) + 1; ++rows) {
    for (const std::int64_t steps : {1, 16, 40, 90}) {
      const std::int64_t columns = 2 * nr<T>(table) - 1, stride = rows % 2 == 0 ? steps : steps + 5;
      const bool backwards = rows % 3 == 0;
      const std::int64_t first = backwards ? (rows - 1) * stride : 0;
      const std::int64_t apart = backwards ? -stride : stride;
      const std::vector<T> a = random_values<T>((rows - 1) * stride + steps, random);
      const Panels a_panels{rows, mr<T>(table), false}, b_panels{columns, nr<T>(table), true};
      const std::vector<T> b = random_values<T>(b_panels.packed_size(steps), random);
      std::vector<T> packed(static_cast<std::size_t>(a_panels.packed_size(steps)));
      const List a_rows = affine(rows, apart, first), a_steps = affine(steps, 1);
      functions.pack({a.data(),
                      {a_rows.data(), rows, {}},
                      {a_steps.data(), steps, {steps, 1}},
                      a_panels,
                      packed.data()});
      const List c_rows = affine(rows, columns), c_columns = affine(columns, 1);
      std::vector<T> want(static_cast<std::size_t>(rows * columns)), got = want;
      MultiplyBlock<T> block{.a = packed.data(),
                             .b = b.data(),
                             .c = want.data(),
                             .rows = c_rows.data(),
                             .columns = c_columns.data(),
                             .row_count = rows,
                             .column_count = columns,
                             .steps = steps};
      functions.multiply(block);
      block.a = a.data() + first;
      block.a_stride = apart;
      block.c = got.data();
      functions.multiply(block);
      CHECK(got == want);
      // What is fetched ahead is no part of the product, wherever it is said to lie.
      std::fill(got.begin(), got.end(), T{0});
      block.next_a = a.data() + a.size();
      functions.multiply(block);
      CHECK(got == want);
    }
  }
}

}  // namespace

TEST_SUITE("kernel") {
  TEST_CASE("products of a b that is not packed") {
    on_all_targets([](const Kernels& table) {
      check_plain_b<float>(table);
      check_plain_b<double>(table);
    });
  }

  TEST_CASE("products of an a that is not packed") {
    on_all_targets([](const Kernels& table) {
      check_plain_a<float>(table);
      check_plain_a<double>(table);
    });
  }
}
