// SPDX-License-Identifier: Apache-2.0
// Asks for the small matrices that are multiplied next: one by one, or as rows of many.
#include <algorithm>
#include <cstdint>

#include "hwy/cache_control.h"
#include "hwy/highway.h"
#include "matmul.h"

// Per-target include guard.
#if defined(EINKERN_KERNEL_MATMUL_SMALL_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef EINKERN_KERNEL_MATMUL_SMALL_INL_H_
#undef EINKERN_KERNEL_MATMUL_SMALL_INL_H_
#else
#define EINKERN_KERNEL_MATMUL_SMALL_INL_H_
#endif

HWY_BEFORE_NAMESPACE();
namespace einkern::kernel::HWY_NAMESPACE {
namespace {

/// Asks for memory `bytes` ahead, wherever that is.
HWY_INLINE void prefetch(const void* from, std::int64_t bytes) {
  hwy::Prefetch(reinterpret_cast<const std::uint8_t*>(reinterpret_cast<std::uintptr_t>(from) +
                                                      static_cast<std::uintptr_t>(bytes)));
}

/// Asks for the matrix `entries` places further on.
template <class T>
HWY_INLINE void prefetch_matrix(const T* m, std::int64_t ahead, std::int64_t rows,
                                std::int64_t row_stride, std::int64_t columns) {
  if (row_stride == columns) {
    columns *= rows;
    rows = 1;
  }
  for (std::int64_t r = 0; r < rows; ++r) {
    for (std::int64_t j = 0; j < columns; j += kLineOf<T>) {
      prefetch(m, (ahead + r * row_stride + j) * static_cast<std::int64_t>(sizeof(T)));
    }
  }
}

/// How many matrices ahead: about 2 KiB of `a`, which covers the latency of memory.
template <class T>
std::int64_t entries_ahead(const SmallBlock<T>& s) {
  return std::clamp<std::int64_t>(2048 / (s.rows * s.steps * static_cast<std::int64_t>(sizeof(T))),
                                  1, 8);
}

template <class T>
HWY_INLINE void prefetch_next(const SmallBlock<T>& s, const T* a, const T* b, std::int64_t ahead) {
  if (s.a_step == 1) prefetch_matrix(a, ahead * s.a_entry, s.rows, s.a_row, s.steps);
  if (s.a_row == 1) prefetch_matrix(a, ahead * s.a_entry, s.steps, s.a_step, s.rows);
  prefetch_matrix(b, ahead * s.b_entry, s.steps, s.b_step, s.columns);
}

/// Asks the matrices that follow a block into L2 while it is multiplied: some lines with every
/// step, in order of address where rows of many matrices are neighbours. Asked for matrix by
/// matrix, with nothing to do meanwhile, products of 17 x 17 apart by rows took 5.9 ms, not 3.1, on
/// an EPYC.
template <class T>
class MatricesAhead {
 public:
  /// `steps` of all tiles. Knows nothing where matrices do not make up rows.
  MatricesAhead(const SmallBlock<T>& s, std::int64_t steps) {
    if (s.ahead <= 0 || (s.a_step != 1 && s.a_row != 1)) return;
    const bool turned = s.a_step != 1;
    const bool known = turned ? add(rows_[0], s.a, s, s.a_entry, s.steps, s.a_step, s.rows)
                              : add(rows_[0], s.a, s, s.a_entry, s.rows, s.a_row, s.steps);
    if (!known || !add(rows_[1], s.b, s, s.b_entry, s.steps, s.b_step, s.columns)) return;
    const std::int64_t lines = rows_[0].count * rows_[0].lines + rows_[1].count * rows_[1].lines;
    at_once_ = (lines + steps - 1) / steps;
    begin_row();
  }

  bool known() const { return at_once_ != 0; }

  HWY_INLINE void fetch() {
    for (std::int64_t i = 0; i < at_once_; ++i) {
      constexpr int kRead = 0, kSecondLevel = 2;
      __builtin_prefetch(reinterpret_cast<const void*>(at_), kRead, kSecondLevel);
      at_ += kBytes;
      if (--left_ == 0) next_row();
    }
  }

 private:
  static constexpr std::int64_t kBytes = 64, kSize = sizeof(T);
  /// Addresses, never pointers: prefetches may leave the tensor.
  struct Rows {
    std::uintptr_t first = 0;
    std::int64_t count = 0, bytes = 0, lines = 0;  // rows, from one to the next, of each
  };

  /// The rows of one operand, if its matrices are neighbours row by row, or as a whole.
  static bool add(Rows& to, const T* from, const SmallBlock<T>& s, std::int64_t entry,
                  std::int64_t rows, std::int64_t row, std::int64_t columns) {
    if (entry == rows * columns && (rows == 1 || row == columns)) {
      columns = entry;
      rows = 1;
    }
    if (entry != columns) return false;
    to = {reinterpret_cast<std::uintptr_t>(from) +
              static_cast<std::uintptr_t>(s.count * entry * kSize),
          rows, row * kSize, s.ahead * columns * kSize / kBytes + 1};
    return true;
  }
  void begin_row() {
    const Rows& rows = rows_[operand_];
    left_ = rows.lines;
    at_ = rows.first + static_cast<std::uintptr_t>(row_ * rows.bytes);
  }
  void next_row() {
    if (++row_ == rows_[operand_].count) {
      row_ = 0;
      if (++operand_ == 2) {
        at_once_ = 0;
        return;
      }
    }
    begin_row();
  }

  Rows rows_[2];
  int operand_ = 0;
  std::int64_t row_ = 0, left_ = 0, at_once_ = 0;
  std::uintptr_t at_ = 0;
};

}  // namespace
}  // namespace einkern::kernel::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // per-target include guard
