// SPDX-License-Identifier: Apache-2.0
// Matrix kernels of every SIMD target: packing element by element, products against naive sums.
#include <doctest/doctest.h>

#include <cmath>
#include <cstdint>
#include <limits>
#include <numeric>
#include <random>
#include <vector>

#include "matrices.h"
#include "on_all_targets.h"

using namespace einkern;
using namespace einkern::kernel;
using namespace einkern::test;

namespace {

std::int64_t size(const List& list) { return static_cast<std::int64_t>(list.size()); }

/// Positions (outer, unit, inner) whose unit stride is 1; the others lie `far` apart.
List positions(std::int64_t outer, UnitRun unit, std::int64_t far) {
  List list;
  for (std::int64_t o = 0; o < outer; ++o) {
    for (std::int64_t u = 0; u < unit.size; ++u) {
      for (std::int64_t i = 0; i < unit.inner; ++i) list.push_back((o * unit.inner + i) * far + u);
    }
  }
  return list;
}

/// T is packed, S is what the source holds.
template <class T, class S>
void check_pack(const Kernels& table, const List& lanes, UnitRun lane_unit, const List& steps,
                UnitRun step_unit, const std::vector<S>& source) {
  for (const bool padded : {false, true}) {
    const Panels panels{size(lanes), padded ? nr<T>(table) : mr<T>(table), padded};
    const auto used = static_cast<std::size_t>(panels.packed_size(size(steps)));
    std::vector<T> packed(used + 64, kUntouched<T>);
    table.matmul.of<T>().pack({.source = source.data(),
                               .lanes = {lanes.data(), size(lanes), lane_unit},
                               .steps = {steps.data(), size(steps), step_unit},
                               .panels = panels,
                               .packed = packed.data(),
                               .dtype = dtype_of<S>});
    std::vector<T> want(packed.size(), kUntouched<T>);
    std::fill(want.begin(), want.begin() + static_cast<std::ptrdiff_t>(used), T{0});
    for (std::int64_t p = 0; p < panels.count(); ++p) {
      const std::int64_t first = panels.start(p), end = panels.start(p + 1);
      const std::int64_t width = padded ? panels.width : end - first;
      for (std::int64_t s = 0; s < size(steps); ++s) {
        for (std::int64_t i = first; i < end; ++i) {
          want[static_cast<std::size_t>(first * size(steps) + s * width + i - first)] =
              widen(source[static_cast<std::size_t>(lanes[static_cast<std::size_t>(i)] +
                                                    steps[static_cast<std::size_t>(s)])]);
        }
      }
    }
    CHECK(packed == want);
  }
}

template <class T, class S = T>
void check_packs(const Kernels& table) {
  std::mt19937 random(1);
  std::vector<S> source;
  for (const T x : random_values<T>(400000, random)) source.push_back(S(x));
  for (const std::int64_t unit : {1, 2, 3, 4, 5, 8, 15, 16, 17, 33, 40, 70}) {
    for (const std::int64_t inner : {1, 2, 7, 16, 18, 33}) {
      if (unit * inner > 1200) continue;
      CAPTURE(unit);
      CAPTURE(inner);
      const UnitRun run{unit, inner};
      const List near = positions(2, run, 101);
      const List far = affine(21, 7001);
      check_pack<T>(table, near, run, far, {}, source);
      check_pack<T>(table, far, {}, near, run, source);
      check_pack<T>(table, affine(5, 7001), {}, near, run, source);
    }
  }
  // No unit stride anywhere, and strides that run backwards.
  check_pack<T>(table, affine(75, -3, 1000), {}, affine(19, 5000), {}, source);
}

/// Where the columns of c lie.
enum class Spread { contiguous, runs, strided };

template <class T>
void check_multiply(const Kernels& table, std::int64_t rows, std::int64_t columns,
                    std::int64_t steps, Spread spread, Update update, std::int64_t skew) {
  std::mt19937 random(static_cast<std::uint32_t>(rows * 1000 + columns));
  const std::vector<T> a = random_values<T>(rows * steps + 1, random);
  const std::vector<T> b = random_values<T>(columns * steps + 1, random);
  const Panels row_panels{rows, mr<T>(table), false}, column_panels{columns, nr<T>(table), true};
  // Room for whole lines at an aligned start.
  std::vector<T> packed_a(static_cast<std::size_t>(row_panels.packed_size(steps)) + 1);
  std::vector<T> packed_b(static_cast<std::size_t>(column_panels.packed_size(steps)) + 1);
  const List a_rows = affine(rows, steps), a_steps = affine(steps, 1);
  const List b_columns = affine(columns, 1), b_steps = affine(steps, columns);
  const auto& functions = table.matmul.of<T>();
  functions.pack({a.data(),
                  {a_rows.data(), rows, {}},
                  {a_steps.data(), steps, {steps, 1}},
                  row_panels,
                  packed_a.data()});
  functions.pack({b.data(),
                  {b_columns.data(), columns, {columns, 1}},
                  {b_steps.data(), steps, {}},
                  column_panels,
                  packed_b.data()});

  List c_columns = affine(columns, spread == Spread::strided ? 3 : 1);
  if (spread == Spread::runs) {
    for (std::int64_t j = 0; j < columns; ++j) c_columns[static_cast<std::size_t>(j)] += j / 5 * 2;
  }
  const std::int64_t width = (c_columns.back() / 16 + 2) * 16;
  const List c_rows = affine(rows, width);
  std::vector<T> memory(static_cast<std::size_t>(rows * width + 32), kUntouched<T>);
  T* c = memory.data();
  while (reinterpret_cast<std::uintptr_t>(c) % 64 != 0) ++c;
  c += skew;
  std::vector<T> want = memory;
  functions.multiply({.a = packed_a.data(),
                      .b = packed_b.data(),
                      .c = c,
                      .rows = c_rows.data(),
                      .columns = c_columns.data(),
                      .row_count = rows,
                      .column_count = columns,
                      .steps = steps,
                      .update = update});
  for (std::int64_t i = 0; i < rows; ++i) {
    for (std::int64_t j = 0; j < columns; ++j) {
      double sum = update == Update::add ? static_cast<double>(kUntouched<T>) : 0;
      double bound = std::abs(sum);
      for (std::int64_t p = 0; p < steps; ++p) {
        const double product = static_cast<double>(a[static_cast<std::size_t>(i * steps + p)]) *
                               static_cast<double>(b[static_cast<std::size_t>(p * columns + j)]);
        sum += product;
        bound += std::abs(product);
      }
      T& got = c[c_rows[static_cast<std::size_t>(i)] + c_columns[static_cast<std::size_t>(j)]];
      const double limit =
          static_cast<double>(steps + 1) * std::numeric_limits<T>::epsilon() * bound;
      REQUIRE(std::abs(static_cast<double>(got) - sum) <= limit);
      got = kUntouched<T>;
    }
  }
  CHECK(memory == want);  // nothing else was written
}

template <class T>
void check_multiplies(const Kernels& table) {
  for (std::int64_t rows = 1; rows <= 2 * mr<T>(table) + 1; ++rows) {
    for (const std::int64_t columns : {nr<T>(table) / 2, nr<T>(table), 2 * nr<T>(table) + 1}) {
      check_multiply<T>(table, rows, std::max<std::int64_t>(columns, 1), 23, Spread::contiguous,
                        Update::store, 0);
    }
  }
  for (std::int64_t columns = 1; columns <= 2 * nr<T>(table) + 1; ++columns) {
    for (const Spread spread : {Spread::contiguous, Spread::runs, Spread::strided}) {
      for (const Update update : {Update::store, Update::add, Update::stream}) {
        check_multiply<T>(table, mr<T>(table) + 2, columns, 7, spread, update, 0);
      }
    }
    check_multiply<T>(table, 3, columns, 7, Spread::contiguous, Update::stream, 1);
  }
  for (std::int64_t steps = 0; steps <= 45; ++steps) {
    check_multiply<T>(table, mr<T>(table), 2 * nr<T>(table), steps, Spread::contiguous,
                      Update::store, 3);
  }
  check_multiply<T>(table, 2 * mr<T>(table) - 1, 3 * nr<T>(table) - 1, 1100, Spread::contiguous,
                    Update::add, 1);
}

template <class T>
void check_vectors(const Kernels& table) {
  std::mt19937 random(5);
  const auto& functions = table.matmul.of<T>();
  const double eps = std::numeric_limits<T>::epsilon();
  const std::vector<T> a = random_values<T>(3000, random), b = random_values<T>(3000, random);
  for (std::int64_t n = 0; n <= 300; ++n) {
    const T *x = a.data() + n % 5, *y = b.data() + n % 3;
    double sum = 0, bound = 0;
    for (std::int64_t i = 0; i < n; ++i) {
      sum += static_cast<double>(x[i]) * static_cast<double>(y[i]);
      bound += std::abs(static_cast<double>(x[i]) * static_cast<double>(y[i]));
    }
    const T got = functions.dot(x, y, n);
    CHECK(std::abs(static_cast<double>(got) - sum) <= static_cast<double>(n) * eps * bound);

    for (const std::int64_t x_stride : {0, 1, 3}) {
      for (const std::int64_t y_stride : {0, 1, -2}) {
        const T* const last = y_stride < 0 ? b.data() + 2000 : y;
        std::vector<T> c(static_cast<std::size_t>(n + 2), kUntouched<T>), want = c;
        for (std::int64_t i = 0; i < n; ++i) {
          want[static_cast<std::size_t>(i + 1)] = x[i * x_stride] * last[i * y_stride];
        }
        functions.products({.a = x,
                            .b = last,
                            .c = c.data() + 1,
                            .a_step = x_stride,
                            .b_step = y_stride,
                            .rows = 1,
                            .columns = n});
        REQUIRE(c == want);
      }
    }

    for (const std::int64_t rows : {1, 2, 3, 4, 5, 9}) {
      const List at = affine(rows, 301);
      std::vector<T> c(static_cast<std::size_t>(n + 2), kUntouched<T>);
      functions.weighted_rows({.x = a.data(),
                               .rows = at.data(),
                               .weights = b.data(),
                               .row_count = rows,
                               .size = n,
                               .y = c.data() + 1});
      double worst = 0;
      for (std::int64_t i = 0; i < n; ++i) {
        double want = 0;
        for (std::int64_t p = 0; p < rows; ++p) {
          want += static_cast<double>(b[static_cast<std::size_t>(p)]) *
                  static_cast<double>(a[static_cast<std::size_t>(p * 301 + i)]);
        }
        worst = std::max(worst,
                         std::abs(static_cast<double>(c[static_cast<std::size_t>(i + 1)]) - want));
      }
      REQUIRE(worst <= static_cast<double>(rows * rows) * eps);
      REQUIRE(c.front() == kUntouched<T>);
      REQUIRE(c.back() == kUntouched<T>);
      std::vector<T> once = c;
      functions.weighted_rows({.x = a.data(),
                               .rows = at.data(),
                               .weights = b.data() + 20,
                               .row_count = rows,
                               .size = n,
                               .y = c.data() + 1,
                               .add = true});
      for (std::int64_t i = 0; i < n; ++i) {
        auto want = static_cast<double>(once[static_cast<std::size_t>(i + 1)]);
        for (std::int64_t p = 0; p < rows; ++p) {
          want += static_cast<double>(b[static_cast<std::size_t>(p + 20)]) *
                  static_cast<double>(a[static_cast<std::size_t>(p * 301 + i)]);
        }
        const auto got = static_cast<double>(c[static_cast<std::size_t>(i + 1)]);
        REQUIRE(std::abs(got - want) <= static_cast<double>(4 * rows * rows) * eps);
      }
    }
  }
}

}  // namespace

TEST_SUITE("kernel") {
  TEST_CASE("panels cover every position once") {
    for (std::int64_t positions = 1; positions < 100; ++positions) {
      for (const bool padded : {false, true}) {
        const Panels panels{positions, 14, padded};
        for (std::int64_t p = 0; p < panels.count(); ++p) {
          REQUIRE(panels.start(p) < panels.start(p + 1));
          REQUIRE(panels.start(p + 1) - panels.start(p) <= 14);
          for (std::int64_t i = panels.start(p); i < panels.start(p + 1); ++i) {
            REQUIRE(panels.panel_of(i) == p);
          }
        }
        CHECK(panels.start(panels.count()) == positions);
      }
    }
  }

  TEST_CASE("packing moves every element to its place") {
    on_all_targets([](const Kernels& table) {
      check_packs<float>(table);
      check_packs<double>(table);
      check_packs<float, Float16>(table);
      check_packs<float, BFloat16>(table);
    });
  }

  TEST_CASE("packed products of all heights, widths and lengths") {
    on_all_targets([](const Kernels& table) {
      check_multiplies<float>(table);
      check_multiplies<double>(table);
    });
  }

  TEST_CASE("dots, weighted rows and elementwise products") {
    on_all_targets([](const Kernels& table) {
      check_vectors<float>(table);
      check_vectors<double>(table);
    });
  }
}
