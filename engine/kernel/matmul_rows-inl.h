// SPDX-License-Identifier: Apache-2.0
// Rows of an operand, transposed in registers.
// Per-target include guard.
#if defined(EINKERN_KERNEL_MATMUL_ROWS_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef EINKERN_KERNEL_MATMUL_ROWS_INL_H_
#undef EINKERN_KERNEL_MATMUL_ROWS_INL_H_
#else
#define EINKERN_KERNEL_MATMUL_ROWS_INL_H_
#endif

#include <algorithm>
#include <cstdint>

#include "half-inl.h"
#include "hwy/highway.h"
#include "matmul-inl.h"

#if HWY_TARGET != HWY_SCALAR

HWY_BEFORE_NAMESPACE();
namespace einkern::kernel::HWY_NAMESPACE {
namespace {

// Up to a vector of source rows, transposed a square or four columns (two of doubles) at a time.
template <class T, class S>
struct Rows {
  using D = hn::ScalableTag<T>;
  static constexpr std::int64_t kLanes = hn::MaxLanes(D());
  static constexpr std::int64_t kColumns = 16 / sizeof(T);

  const S* at[kLanes];

  // Rows past `count` repeat the last one: reading it again is harmless.
  Rows(const S* source, const std::int64_t* offsets, std::int64_t count) {
    for (std::int64_t i = 0; i < kLanes; ++i) at[i] = source + offsets[std::min(i, count - 1)];
  }

  template <class DPart>
  static HWY_INLINE hn::VFromD<DPart> load(DPart d, const S* const* rows, std::int64_t offset) {
    if constexpr (hn::MaxLanes(DPart()) * sizeof(T) == 16) {
      return load_as(d, rows[0] + offset);
    } else {
      const hn::Half<DPart> half;
      return hn::Combine(d, load(half, rows + hn::MaxLanes(DPart()) / 2, offset),
                         load(half, rows, offset));
    }
  }

  // Calls put(j, vector of column offset + j) for every j < kColumns. Blocks of 16 bytes are
  // gathered while loading, so that only steps inside 128-bit blocks remain.
  template <class Put>
  HWY_INLINE void columns(std::int64_t offset, const Put& put) const {
    const hn::FixedTag<T, kLanes> d;
    if constexpr (sizeof(T) == 4) {
      transpose4(d, load(d, at, offset), load(d, at + 1, offset), load(d, at + 2, offset),
                 load(d, at + 3, offset), put);
    } else {
      const auto v0 = load(d, at, offset), v1 = load(d, at + 1, offset);
      put(0, hn::InterleaveLower(d, v0, v1));
      put(1, hn::InterleaveUpper(d, v0, v1));
    }
  }

  // Are rows read a whole line at a time? Rows at a stride of 4 KiB share a set of L1, which holds
  // half of a vector of them: read in four parts, every line came from L2 four times, and packing
  // took 1.2 to 1.8 cycles an element instead of 0.7.
  static constexpr bool kSquares = kLanes * sizeof(T) == 64;

  // Calls put(j, vector of column offset + j) for every j < kLanes.
  template <class Put>
  HWY_INLINE void square(std::int64_t offset, const Put& put) const {
    const hn::FixedTag<T, kLanes> d;
    using V = hn::VFromD<decltype(d)>;
    // Block b of part[g][j] are rows g kColumns .. of column b kColumns + j.
    V part[4][kColumns];
    HWY_UNROLL(4)
    for (int g = 0; g < 4; ++g) {
      const S* const* rows = at + g * kColumns;
      const auto row = [&](int i) HWY_ATTR { return load_as(d, rows[i] + offset); };
      const auto keep = [&](std::int64_t j, V v) HWY_ATTR { part[g][j] = v; };
      if constexpr (sizeof(T) == 4) {
        transpose4(d, row(0), row(1), row(2), row(3), keep);
      } else {
        const V v0 = row(0), v1 = row(1);
        keep(0, hn::InterleaveLower(d, v0, v1));
        keep(1, hn::InterleaveUpper(d, v0, v1));
      }
    }
    HWY_UNROLL(4)
    for (std::int64_t j = 0; j < kColumns; ++j) {
      const V even01 = hn::OddEvenBlocks(hn::SwapAdjacentBlocks(part[1][j]), part[0][j]);
      const V odd01 = hn::OddEvenBlocks(part[1][j], hn::SwapAdjacentBlocks(part[0][j]));
      const V even23 = hn::OddEvenBlocks(hn::SwapAdjacentBlocks(part[3][j]), part[2][j]);
      const V odd23 = hn::OddEvenBlocks(part[3][j], hn::SwapAdjacentBlocks(part[2][j]));
      put(j, hn::ConcatLowerLower(d, even23, even01));
      put(j + kColumns, hn::ConcatLowerLower(d, odd23, odd01));
      put(j + 2 * kColumns, hn::ConcatUpperUpper(d, even23, even01));
      put(j + 3 * kColumns, hn::ConcatUpperUpper(d, odd23, odd01));
    }
  }

 private:
  // Rows of four in every block of 128 bits, transposed.
  template <class DV, class V, class Put>
  static HWY_INLINE void transpose4(DV d, V v0, V v1, V v2, V v3, const Put& put) {
    const hn::Repartition<double, DV> wide;
    const auto low01 = hn::BitCast(wide, hn::InterleaveLower(d, v0, v1));
    const auto low23 = hn::BitCast(wide, hn::InterleaveLower(d, v2, v3));
    const auto high01 = hn::BitCast(wide, hn::InterleaveUpper(d, v0, v1));
    const auto high23 = hn::BitCast(wide, hn::InterleaveUpper(d, v2, v3));
    put(0, hn::BitCast(d, hn::InterleaveLower(wide, low01, low23)));
    put(1, hn::BitCast(d, hn::InterleaveUpper(wide, low01, low23)));
    put(2, hn::BitCast(d, hn::InterleaveLower(wide, high01, high23)));
    put(3, hn::BitCast(d, hn::InterleaveUpper(wide, high01, high23)));
  }
};

}  // namespace
}  // namespace einkern::kernel::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // HWY_TARGET != HWY_SCALAR

#endif  // per-target include guard
