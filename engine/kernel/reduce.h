// SPDX-License-Identifier: Apache-2.0
// Sums, products, maxima and minima of runs and of columns.
#pragma once

#include <cstddef>
#include <cstdint>

#include "../base/dtype.h"

namespace einkern::kernel {

/// What an element is accumulated in: floats in themselves, i64 in 128 bits (so that a sum never
/// wraps; a product saturates beyond i64, and a zero still makes it zero).
__extension__ using Int128 = __int128;
constexpr std::size_t partial_size(DType dtype) noexcept {
  return dtype == DType::i64 ? sizeof(Int128) : size_of(dtype);
}

/// Index into the tables below; the order of plan::ReduceOp.
enum class Fold : std::uint8_t { sum, prod, max, min };
inline constexpr std::size_t kFolds = 4;

/// Longest run of rows that `columns` takes: errors grow with the rows added one after another, so
/// callers join longer runs in a tree.
inline constexpr std::int64_t kColumnRows = 128;

/// The kernels of one (fold, dtype). Partials are contiguous, `partial_size` bytes each. The order
/// in which elements are joined depends on the sizes only. max and min of a NaN are NaN.
struct FoldKernels {
  /// partial[0] = fold of in[i * stride], i < n; n >= 1. Floats are added in blocks of 128 vectors
  /// whose sums are joined pairwise.
  void (*row)(const void* in, std::int64_t n, std::int64_t stride,
              void* partial) noexcept = nullptr;
  /// partials[j] = fold over r < rows of in[r * row_stride + j], j < columns; 1 <= rows <=
  /// kColumnRows.
  void (*columns)(const void* in, std::int64_t rows, std::int64_t row_stride, std::int64_t columns,
                  void* partials) noexcept = nullptr;
  /// partials[j] = fold of partials[j] and others[j], j < n.
  void (*join)(void* partials, const void* others, std::int64_t n) noexcept = nullptr;
};

struct ReduceKernels {
  FoldKernels f32[kFolds], f64[kFolds], i64[kFolds];

  const FoldKernels& of(Fold fold, DType dtype) const noexcept {
    const FoldKernels* folds = dtype == DType::f32 ? f32 : dtype == DType::f64 ? f64 : i64;
    return folds[static_cast<std::size_t>(fold)];
  }
};

/// Sets every pointer to the kernels of the target that Highway dispatches to now.
void fill_reduce(ReduceKernels& kernels);

}  // namespace einkern::kernel
