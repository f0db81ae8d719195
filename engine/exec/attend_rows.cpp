// SPDX-License-Identifier: Apache-2.0
// Transposes runs of rows through registers where their elements lie side by side.
#include "attend_rows.h"

#include <algorithm>

namespace einkern::exec {
namespace {

/// Calls f(first, count, offset, stride) for every run of rows along the innermost axis.
template <class F>
void each_run(const AttendAxes& axes, const Dims& strides, std::int64_t row, std::int64_t rows,
              F&& f) {
  const std::int64_t axis = axes.innermost();
  const std::int64_t stride = axis < 0 ? 0 : strides[static_cast<std::size_t>(axis)];
  for (std::int64_t r = 0; r < rows;) {
    const std::int64_t count = std::min(rows - r, axes.run() - (row + r) % axes.run());
    f(r, count, axes.offset(row + r, strides), stride);
    r += count;
  }
}

template <class T>
kernel::CopyKernels::Transpose transpose_of(const kernel::CopyKernels& kernels) {
  return sizeof(T) == 4 ? kernels.transpose_4 : kernels.transpose_8;
}

}  // namespace

void list_rows(const AttendAxes& axes, const Dims& strides, std::int64_t row, std::int64_t rows,
               std::int64_t* to) noexcept {
  each_run(axes, strides, row, rows,
           [&](std::int64_t first, std::int64_t count, std::int64_t at, std::int64_t stride) {
             for (std::int64_t i = 0; i < count; ++i) to[first + i] = at + i * stride;
           });
}

template <class T>
void pack_rows(const TensorRows<const T>& from, std::int64_t row, std::int64_t rows,
               std::int64_t width, const kernel::CopyKernels& kernels, T* tile) noexcept {
  const std::int64_t size = std::ssize(from.elements);
  each_run(from.axes, from.strides, row, rows,
           [&](std::int64_t first, std::int64_t count, std::int64_t at, std::int64_t stride) {
             const T* const data = from.data + at;
             T* const to = tile + first;
             if (from.dense && stride >= 0) {
               transpose_of<T>(kernels)(data, stride, to, width, count, size,
                                        kernel::Stores::cached);
               return;
             }
             for (std::int64_t i = 0; i < size; ++i) {
               const std::int64_t element = from.elements[static_cast<std::size_t>(i)];
               for (std::int64_t c = 0; c < count; ++c) {
                 to[i * width + c] = data[c * stride + element];
               }
             }
           });
}

template <class T>
void write_rows(const T* tile, std::int64_t width, const TensorRows<T>& to, std::int64_t row,
                std::int64_t rows, const kernel::CopyKernels& kernels) noexcept {
  const std::int64_t size = std::ssize(to.elements);
  each_run(to.axes, to.strides, row, rows,
           [&](std::int64_t first, std::int64_t count, std::int64_t at, std::int64_t stride) {
             const T* const from = tile + first;
             T* const data = to.data + at;
             if (to.dense && stride >= 0) {
               transpose_of<T>(kernels)(from, width, data, stride, size, count,
                                        kernel::Stores::cached);
               return;
             }
             for (std::int64_t i = 0; i < size; ++i) {
               const std::int64_t element = to.elements[static_cast<std::size_t>(i)];
               for (std::int64_t c = 0; c < count; ++c) {
                 data[c * stride + element] = from[i * width + c];
               }
             }
           });
}

template void pack_rows(const TensorRows<const float>&, std::int64_t, std::int64_t, std::int64_t,
                        const kernel::CopyKernels&, float*) noexcept;
template void pack_rows(const TensorRows<const double>&, std::int64_t, std::int64_t, std::int64_t,
                        const kernel::CopyKernels&, double*) noexcept;
template void write_rows(const float*, std::int64_t, const TensorRows<float>&, std::int64_t,
                         std::int64_t, const kernel::CopyKernels&) noexcept;
template void write_rows(const double*, std::int64_t, const TensorRows<double>&, std::int64_t,
                         std::int64_t, const kernel::CopyKernels&) noexcept;

}  // namespace einkern::exec
