// SPDX-License-Identifier: Apache-2.0
// Products of a few rows with rows of a large matrix where they lie, on every SIMD target against
// plain loops: all tails, rows and columns anywhere, NaN in every element that is not asked for.
#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <numeric>
#include <random>
#include <vector>

#include "../../../engine/base/half.h"
#include "../exec/guarded.h"
#include "aligned_array.h"
#include "matrices.h"
#include "on_all_targets.h"

using namespace einkern;
using namespace einkern::kernel;
using namespace einkern::test;

namespace {

/// Odd multiples of a power of two below 1: sums of a few thousand products are exact in T,
/// whatever their order, f16 and bf16 hold the values of f32 ones, and no product is lost unseen.
template <class T>
T skinny_value(std::mt19937& random) {
  constexpr int kBits = sizeof(T) == 4 ? 6 : 20;
  const auto odd = static_cast<double>(2 * (random() % (1U << kBits)) + 1) - (1 << kBits);
  return static_cast<T>(std::ldexp(odd, -kBits));
}

/// What a kernel is asked for. The few rows have `few_steps` steps in all.
struct SkinnyShape {
  std::int64_t few = 1, many = 1;  // rows and rows, or rows and columns
  std::int64_t first = 0, steps = 1, few_steps = 1;
  bool add = false;
};

/// Rows of f32, f64, f16 or bf16 in any order with gaps between them; the last one ends where the
/// memory does. All but the rows is NaN.
template <class T, class S>
class RowsApart {
 public:
  /// Rows of `before + length` elements, the first `before` of which are not to be read.
  RowsApart(std::int64_t count, std::int64_t before, std::int64_t length, std::mt19937& random) {
    std::vector<std::int64_t> order(static_cast<std::size_t>(count));
    std::iota(order.begin(), order.end(), 0);
    std::shuffle(order.begin(), order.end(), random);
    at.resize(order.size());
    std::int64_t end = 0;
    for (const std::int64_t row : order) {
      end += 1 + static_cast<std::int64_t>(random() % 5);
      at[static_cast<std::size_t>(row)] = end;
      end += before + length;
    }
    data.assign(static_cast<std::size_t>(end), S(std::numeric_limits<T>::quiet_NaN()));
    for (const std::int64_t row : at) {
      for (std::int64_t i = before; i < before + length; ++i) {
        data[static_cast<std::size_t>(row + i)] = S(skinny_value<T>(random));
      }
    }
  }
  S& element(std::int64_t row, std::int64_t i) {
    return data[static_cast<std::size_t>(at[static_cast<std::size_t>(row)] + i)];
  }

  List at;
  std::vector<S, Guarded<S>> data;
};

/// The elements of c that belong to a product, and sentinels; its last element is the last of the
/// memory.
template <class T>
class Scattered {
 public:
  /// Element (i, j) at rows[i] + columns[j]: what is there already, or NaN where nothing may be.
  Scattered(const List& rows, const List& columns, bool add, std::mt19937& random)
      : rows_(rows),
        columns_(columns),
        data_(static_cast<std::size_t>(*std::max_element(rows.begin(), rows.end()) +
                                       *std::max_element(columns.begin(), columns.end()) + 1),
              kUntouched<T>) {
    for (const std::int64_t row : rows) {
      for (const std::int64_t column : columns) {
        data_[static_cast<std::size_t>(row + column)] =
            add ? skinny_value<T>(random) : std::numeric_limits<T>::quiet_NaN();
      }
    }
    before_.assign(data_.begin(), data_.end());
  }
  T* data() { return data_.data(); }

  /// The first element that differs from what `sum(i, j, before)` says or that was none of its
  /// business; -1 when all is well.
  template <class F>
  std::int64_t first_wrong(bool add, const F& sum) const {
    std::vector<double> want(before_.begin(), before_.end());
    for (std::size_t i = 0; i < rows_.size(); ++i) {
      for (std::size_t j = 0; j < columns_.size(); ++j) {
        double& element = want[static_cast<std::size_t>(rows_[i] + columns_[j])];
        element =
            (add ? element : 0) + sum(static_cast<std::int64_t>(i), static_cast<std::int64_t>(j));
      }
    }
    for (std::size_t i = 0; i < want.size(); ++i) {
      const auto got = static_cast<double>(data_[i]);
      if (got != want[i] && !(std::isnan(got) && std::isnan(want[i]))) {
        return static_cast<std::int64_t>(i);
      }
    }
    return -1;
  }

 private:
  const List rows_, columns_;
  std::vector<T, Guarded<T>> data_;
  std::vector<T> before_;
};

List shuffled(List list, std::mt19937& random) {
  std::shuffle(list.begin(), list.end(), random);
  return list;
}

/// Few rows of values with the steps first .. first + steps, NaN in the others.
template <class T>
std::vector<T> few_rows_of(const SkinnyShape& s, std::mt19937& random) {
  std::vector<T> few(static_cast<std::size_t>(s.few * s.few_steps),
                     std::numeric_limits<T>::quiet_NaN());
  for (std::int64_t i = 0; i < s.few; ++i) {
    for (std::int64_t p = s.first; p < s.first + s.steps; ++p) {
      few[static_cast<std::size_t>(i * s.few_steps + p)] = skinny_value<T>(random);
    }
  }
  return few;
}

/// An infinity at the last step of a row and one in the large matrix: in their own sums alone.
template <class T, class S>
void put_infinities(const SkinnyShape& s, std::vector<T>& few, S& many, std::mt19937& random) {
  constexpr T kInfinity = std::numeric_limits<T>::infinity();
  const auto row = static_cast<std::int64_t>(random()) % s.few;
  few[static_cast<std::size_t>(row * s.few_steps + s.first + s.steps - 1)] = kInfinity;
  many = S(-kInfinity);
}

template <class T, class S>
void check_skinny_dots(const Kernels& table, const SkinnyShape& s, bool infinite,
                       std::mt19937& random) {
  const SkinnyFunctions<T>& functions = table.skinny.of<T>();
  const std::int64_t lanes = functions.lanes;
  RowsApart<T, S> many(s.many, s.first, s.steps, random);
  std::vector<T> few = few_rows_of<T>(s, random);
  if (infinite) put_infinities(s, few, many.element(s.many - 1, s.first), random);
  AlignedArray<T> packed(s.few * ((s.few_steps + lanes - 1) / lanes * lanes));
  for (std::int64_t i = 0; i < s.few; ++i) {
    for (std::int64_t p = 0; p < s.few_steps; ++p) {
      packed[(p / lanes * s.few + i) * lanes + p % lanes] =
          few[static_cast<std::size_t>(i * s.few_steps + p)];
    }
  }
  // Rows of c far apart and its columns three apart, both in any order.
  const List few_at = shuffled(affine(s.few, 3 * s.many + 5, 4), random);
  const List many_at = shuffled(affine(s.many, 3), random);
  Scattered<T> c(few_at, many_at, s.add, random);
  functions.dots({.few = packed.data(),
                  .few_count = s.few,
                  .many = {many.data.data(), dtype_of<S>, many.at.data()},
                  .many_count = s.many,
                  .first = s.first,
                  .steps = s.steps,
                  .c = c.data(),
                  .few_at = few_at.data(),
                  .many_at = many_at.data(),
                  .add = s.add});
  CAPTURE(s.few);
  CAPTURE(s.many);
  CAPTURE(s.first);
  CAPTURE(s.steps);
  CAPTURE(s.add);
  CHECK(c.first_wrong(s.add, [&](std::int64_t i, std::int64_t j) {
    double sum = 0;
    for (std::int64_t p = s.first; p < s.first + s.steps; ++p) {
      sum += static_cast<double>(few[static_cast<std::size_t>(i * s.few_steps + p)]) *
             static_cast<double>(widen(many.element(j, p)));
    }
    return sum;
  }) == -1);
}

template <class T, class S>
void check_skinny_sums(const Kernels& table, const SkinnyShape& s, bool infinite,
                       std::mt19937& random) {
  const SkinnyFunctions<T>& functions = table.skinny.of<T>();
  RowsApart<T, S> many(s.steps, 0, s.many, random);
  std::vector<T> few = few_rows_of<T>(s, random);
  if (infinite) put_infinities(s, few, many.element(s.steps - 1, s.many - 1), random);
  const Panels panels{.positions = s.few, .width = functions.sum_rows};
  AlignedArray<T> packed(s.few * s.few_steps);
  for (std::int64_t i = 0; i < s.few; ++i) {
    const std::int64_t panel = panels.panel_of(i), start = panels.start(panel);
    for (std::int64_t p = 0; p < s.few_steps; ++p) {
      packed[start * s.few_steps + p * (panels.start(panel + 1) - start) + i - start] =
          few[static_cast<std::size_t>(i * s.few_steps + p)];
    }
  }
  // Rows that come later may be asked for, which changes nothing.
  List at = many.at;
  const std::int64_t ahead = std::min<std::int64_t>(s.few_steps - s.first - s.steps, 3);
  for (std::int64_t i = 0; i < ahead; ++i) at.push_back(many.at.front());
  const List few_at = shuffled(affine(s.few, s.many + 3, 2), random);
  Scattered<T> c(few_at, affine(s.many, 1), s.add, random);
  functions.sums({.few = packed.data(),
                  .few_count = s.few,
                  .few_steps = s.few_steps,
                  .many = {many.data.data(), dtype_of<S>, at.data()},
                  .columns = s.many,
                  .first = s.first,
                  .steps = s.steps,
                  .c = c.data(),
                  .few_at = few_at.data(),
                  .add = s.add,
                  .ahead = ahead});
  CAPTURE(s.few);
  CAPTURE(s.many);
  CAPTURE(s.first);
  CAPTURE(s.steps);
  CAPTURE(s.add);
  CHECK(c.first_wrong(s.add, [&](std::int64_t i, std::int64_t j) {
    double sum = 0;
    for (std::int64_t p = 0; p < s.steps; ++p) {
      sum += static_cast<double>(few[static_cast<std::size_t>(i * s.few_steps + s.first + p)]) *
             static_cast<double>(widen(many.element(p, j)));
    }
    return sum;
  }) == -1);
}

// One more than two tiles of the most rows.
constexpr std::int64_t kMostFew = 2 * 14 + 1;

template <class T, class S>
void check_skinny_dot_sizes(const Kernels& table) {
  std::mt19937 random(31);
  const std::int64_t lanes = table.skinny.of<T>().lanes;
  const auto any = [&](std::int64_t most) {
    return 1 + static_cast<std::int64_t>(random()) % most;
  };
  // The last part of a sum, after some vectors of it or none.
  const auto check = [&](std::int64_t few, std::int64_t many, std::int64_t steps) {
    const std::int64_t first = static_cast<std::int64_t>(random() % 3) * lanes;
    const bool add = random() % 2 == 0;
    check_skinny_dots<T, S>(table, {few, many, first, steps, first + steps, add}, random() % 3 == 0,
                            random);
  };
  for (std::int64_t steps = 1; steps <= 3 * lanes + 1; ++steps) check(any(8), any(9), steps);
  for (std::int64_t few = 1; few <= kMostFew; ++few) check(few, any(9), any(3 * lanes + 1));
  for (std::int64_t many = 1; many <= 13; ++many) check(any(8), many, any(3 * lanes + 1));
  // A part in the middle, of whole vectors; long rows, of which several lines are asked for.
  check_skinny_dots<T, S>(table, {5, 7, lanes, 2 * lanes, 4 * lanes + 3, true}, false, random);
  check_skinny_dots<T, S>(table, {7, 6, 0, 2 * lanes, 3 * lanes, false}, true, random);
  check(7, 10, 1027);
}

template <class T, class S>
void check_skinny_sum_sizes(const Kernels& table) {
  std::mt19937 random(32);
  const std::int64_t lanes = table.skinny.of<T>().lanes, most_columns = 3 * 2 * lanes + 1;
  const auto any = [&](std::int64_t most) {
    return 1 + static_cast<std::int64_t>(random()) % most;
  };
  const auto check = [&](std::int64_t few, std::int64_t columns, std::int64_t steps) {
    const std::int64_t first = static_cast<std::int64_t>(random() % 3) * 5;
    const std::int64_t after = static_cast<std::int64_t>(random() % 3) * 2;
    const bool add = random() % 2 == 0;
    check_skinny_sums<T, S>(table, {few, columns, first, steps, first + steps + after, add},
                            random() % 3 == 0, random);
  };
  for (std::int64_t columns = 1; columns <= most_columns; ++columns) check(any(8), columns, any(9));
  for (std::int64_t few = 1; few <= kMostFew; ++few) check(few, any(most_columns), any(9));
  for (std::int64_t steps = 1; steps <= kSkinnySteps; steps += steps < 60 ? 3 : 1) {
    check(any(8), any(most_columns), steps);
  }
}

template <class T>
void check_skinny_functions(const Kernels& table) {
  const SkinnyFunctions<T>& functions = table.skinny.of<T>();
  CHECK(functions.lanes >= 1);
  CHECK(functions.sum_rows >= 1);
  CHECK(functions.sum_rows * 2 <= kMostFew);
}

}  // namespace

TEST_SUITE("kernel") {
  TEST_CASE("dots with rows where they lie") {
    on_all_targets([](const Kernels& table) {
      check_skinny_functions<float>(table);
      check_skinny_functions<double>(table);
      check_skinny_dot_sizes<float, float>(table);
      check_skinny_dot_sizes<float, Float16>(table);
      check_skinny_dot_sizes<float, BFloat16>(table);
      check_skinny_dot_sizes<double, double>(table);
    });
  }

  TEST_CASE("weighted sums of rows where they lie") {
    on_all_targets([](const Kernels& table) {
      check_skinny_sum_sizes<float, float>(table);
      check_skinny_sum_sizes<float, Float16>(table);
      check_skinny_sum_sizes<float, BFloat16>(table);
      check_skinny_sum_sizes<double, double>(table);
    });
  }
}
