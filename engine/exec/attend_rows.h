// SPDX-License-Identifier: Apache-2.0
// Rows of queries and outputs between memory and the lanes of a tile.
#pragma once

#include <cstdint>
#include <vector>

#include "../kernel/copy.h"
#include "../plan/attend_axes.h"

namespace einkern::exec {

using plan::AttendAxes;

/// How the rows of one tensor lie: element i of row r is at data[rows.offset(r) + elements[i]].
template <class T>
struct TensorRows {
  T* data;
  const AttendAxes& axes;
  const Dims& strides;                        // by axis of the scores
  const std::vector<std::int64_t>& elements;  // offsets
  bool dense;                                 // elements[i] is i
};

/// Offsets of rows row .. row + rows - 1.
void list_rows(const AttendAxes& axes, const Dims& strides, std::int64_t row, std::int64_t rows,
               std::int64_t* to) noexcept;

/// tile[i * width + r] = element i of row `row + r`.
template <class T>
void pack_rows(const TensorRows<const T>& from, std::int64_t row, std::int64_t rows,
               std::int64_t width, const kernel::CopyKernels& kernels, T* tile) noexcept;

/// Element i of row `row + r` = tile[i * width + r].
template <class T>
void write_rows(const T* tile, std::int64_t width, const TensorRows<T>& to, std::int64_t row,
                std::int64_t rows, const kernel::CopyKernels& kernels) noexcept;

}  // namespace einkern::exec
