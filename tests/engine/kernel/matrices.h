// SPDX-License-Identifier: Apache-2.0
// What the tests of matrix kernels share: offsets, values, the size of a register tile.
#pragma once

#include <cstdint>
#include <random>
#include <vector>

#include "../../../engine/kernel/kernels.h"

namespace einkern::test {

/// Offsets of rows, columns or steps.
using List = std::vector<std::int64_t>;

/// What stands in an output before the kernel runs.
template <class T>
constexpr T kUntouched = T{-77};

inline List affine(std::int64_t count, std::int64_t stride, std::int64_t first = 0) {
  List list(static_cast<std::size_t>(count));
  for (std::int64_t i = 0; i < count; ++i) list[static_cast<std::size_t>(i)] = first + i * stride;
  return list;
}

template <class T>
std::vector<T> random_values(std::int64_t count, std::mt19937& random) {
  std::uniform_real_distribution<T> uniform(-1, 1);
  std::vector<T> values(static_cast<std::size_t>(count));
  for (T& x : values) x = uniform(random);
  return values;
}

/// Rows and columns of a register tile.
template <class T>
std::int64_t mr(const kernel::Kernels& table) {
  return sizeof(T) == 4 ? table.target.mr_f32 : table.target.mr_f64;
}
template <class T>
std::int64_t nr(const kernel::Kernels& table) {
  return sizeof(T) == 4 ? table.target.nr_f32 : table.target.nr_f64;
}

}  // namespace einkern::test
