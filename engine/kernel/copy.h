// SPDX-License-Identifier: Apache-2.0
// Moves elements: transposes through registers and copies that bypass the caches.
#pragma once

#include <cstdint>

namespace einkern::kernel {

/// Whether stores go around the caches: right for outputs larger than L2 that are not read at once.
enum class Stores : bool { cached, streaming };

struct CopyKernels {
  /// out[c * out_stride + r] = in[r * in_stride + c] for r < rows, c < columns, by tiles held in
  /// registers. Strides count elements and are not negative. Streaming needs lines of `out` that
  /// are aligned to a vector and falls back to cached stores where they are not.
  using Transpose = void (*)(const void* in, std::int64_t in_stride, void* out,
                             std::int64_t out_stride, std::int64_t rows, std::int64_t columns,
                             Stores stores) noexcept;
  Transpose transpose_4 = nullptr;  // elements of 4 bytes
  Transpose transpose_8 = nullptr;  // elements of 8 bytes

  /// Copies `bytes` bytes with streaming stores; the ranges do not overlap.
  void (*stream)(const void* in, void* out, std::int64_t bytes) noexcept = nullptr;
  /// Makes streaming stores of this thread visible to others; call once after the last of them.
  void (*fence)() noexcept = nullptr;
};

/// Sets every pointer to the kernels of the target that Highway dispatches to now.
void fill_copy(CopyKernels& kernels);

}  // namespace einkern::kernel
