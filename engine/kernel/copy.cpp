// SPDX-License-Identifier: Apache-2.0
// Transposes tiles in registers and streams bytes past the caches.
#include "copy.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "copy.cpp"
#include <hwy/cache_control.h>
#include <hwy/foreach_target.h>  // IWYU pragma: keep
#include <hwy/highway.h>

#include <algorithm>
#include <cstddef>
#include <cstring>

#include "matmul-inl.h"

HWY_BEFORE_NAMESPACE();
namespace einkern::kernel::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

#if HWY_TARGET == HWY_SCALAR
template <class Word>
void transpose_edge(const Word* in, std::int64_t in_stride, Word* out, std::int64_t out_stride,
                    std::int64_t rows, std::int64_t columns) {
  for (std::int64_t c = 0; c < columns; ++c) {
    for (std::int64_t r = 0; r < rows; ++r) out[c * out_stride + r] = in[r * in_stride + c];
  }
}

template <class Word>
constexpr std::int64_t kSide = 8;

template <class Word>
HWY_INLINE void transpose_tile(const Word* in, std::int64_t in_stride, Word* out,
                               std::int64_t out_stride, bool /*stream*/) {
  transpose_edge(in, in_stride, out, out_stride, kSide<Word>, kSide<Word>);
}
#else
/// Lanes of a vector: a tile is that many vectors.
template <class Word>
constexpr std::int64_t kSide = static_cast<std::int64_t>(hn::MaxLanes(hn::ScalableTag<Word>()));

/// Transposes the 128-bit blocks of `v[0], v[step], v[2 step], ...`, as many vectors as each has
/// blocks.
template <class D, class V>
HWY_INLINE void transpose_blocks(D d, V* v, std::size_t step) {
  constexpr std::size_t kBlocks = hn::MaxLanes(D()) * sizeof(hn::TFromD<D>) / 16;
  if constexpr (kBlocks == 2) {
    const V a = v[0], b = v[step];
    v[0] = hn::ConcatLowerLower(d, b, a);
    v[step] = hn::ConcatUpperUpper(d, b, a);
  } else if constexpr (kBlocks == 4) {
    const V low_ac = hn::ConcatLowerLower(d, v[2 * step], v[0]);
    const V low_bd = hn::ConcatLowerLower(d, v[3 * step], v[step]);
    const V high_ac = hn::ConcatUpperUpper(d, v[2 * step], v[0]);
    const V high_bd = hn::ConcatUpperUpper(d, v[3 * step], v[step]);
    v[0] = hn::OddEvenBlocks(hn::SwapAdjacentBlocks(low_bd), low_ac);
    v[step] = hn::OddEvenBlocks(low_bd, hn::SwapAdjacentBlocks(low_ac));
    v[2 * step] = hn::OddEvenBlocks(hn::SwapAdjacentBlocks(high_bd), high_ac);
    v[3 * step] = hn::OddEvenBlocks(high_bd, hn::SwapAdjacentBlocks(high_ac));
  }
}

template <class D, class V>
HWY_INLINE void transpose_vectors(D d, V* v) {
  using Word = hn::TFromD<D>;
  constexpr std::size_t kRows = static_cast<std::size_t>(kSide<Word>);
  constexpr std::size_t kInBlock = 16 / sizeof(Word);  // lanes of a block, and rows of a group
  // Inside blocks: afterwards v[g + j] holds, in block b, column (kInBlock b + j) of the rows of
  // group g.
  if constexpr (sizeof(Word) == 4) {
    const hn::Repartition<std::uint64_t, decltype(d)> wide;
    for (std::size_t g = 0; g < kRows; g += 4) {
      const auto low01 = hn::BitCast(wide, hn::InterleaveLower(d, v[g], v[g + 1]));
      const auto low23 = hn::BitCast(wide, hn::InterleaveLower(d, v[g + 2], v[g + 3]));
      const auto high01 = hn::BitCast(wide, hn::InterleaveUpper(d, v[g], v[g + 1]));
      const auto high23 = hn::BitCast(wide, hn::InterleaveUpper(d, v[g + 2], v[g + 3]));
      v[g] = hn::BitCast(d, hn::InterleaveLower(wide, low01, low23));
      v[g + 1] = hn::BitCast(d, hn::InterleaveUpper(wide, low01, low23));
      v[g + 2] = hn::BitCast(d, hn::InterleaveLower(wide, high01, high23));
      v[g + 3] = hn::BitCast(d, hn::InterleaveUpper(wide, high01, high23));
    }
  } else {
    for (std::size_t g = 0; g < kRows; g += 2) {
      const V low = hn::InterleaveLower(d, v[g], v[g + 1]);
      v[g + 1] = hn::InterleaveUpper(d, v[g], v[g + 1]);
      v[g] = low;
    }
  }
  for (std::size_t j = 0; j < kInBlock; ++j) transpose_blocks(d, v + j, kInBlock);
}

template <class Word>
HWY_INLINE void transpose_tile(const Word* in, std::int64_t in_stride, Word* out,
                               std::int64_t out_stride, bool stream) {
  const hn::ScalableTag<Word> d;
  constexpr std::size_t kRows = static_cast<std::size_t>(kSide<Word>);
  hn::Vec<decltype(d)> v[kRows];
  for (std::size_t r = 0; r < kRows; ++r) {
    v[r] = hn::LoadU(d, in + static_cast<std::int64_t>(r) * in_stride);
  }
  transpose_vectors(d, v);
  for (std::size_t c = 0; c < kRows; ++c) {
    Word* const to = out + static_cast<std::int64_t>(c) * out_stride;
    if (stream) {
      hn::Stream(v[c], d, to);
    } else {
      hn::StoreU(v[c], d, to);
    }
  }
}

/// A tile of fewer rows or columns.
template <class Word>
void transpose_part(const Word* in, std::int64_t in_stride, Word* out, std::int64_t out_stride,
                    std::int64_t rows, std::int64_t columns) {
  const hn::ScalableTag<Word> d;
  constexpr std::int64_t kRows = kSide<Word>;
  hn::Vec<decltype(d)> v[static_cast<std::size_t>(kRows)];
  for (std::int64_t r = 0; r < kRows; ++r) {
    v[r] = r < rows ? load_lanes(d, in + r * in_stride, static_cast<std::size_t>(columns))
                    : hn::Zero(d);
  }
  transpose_vectors(d, v);
  for (std::int64_t c = 0; c < columns; ++c) {
    store_lanes(d, v[c], static_cast<std::size_t>(rows), out + c * out_stride);
  }
}

template <class Word>
void transpose_edge(const Word* in, std::int64_t in_stride, Word* out, std::int64_t out_stride,
                    std::int64_t rows, std::int64_t columns) {
  for (std::int64_t r = 0; r < rows; r += kSide<Word>) {
    for (std::int64_t c = 0; c < columns; c += kSide<Word>) {
      transpose_part(in + r * in_stride + c, in_stride, out + c * out_stride + r, out_stride,
                     std::min(kSide<Word>, rows - r), std::min(kSide<Word>, columns - c));
    }
  }
}
#endif

template <class Word>
void transpose(const void* in, std::int64_t in_stride, void* out, std::int64_t out_stride,
               std::int64_t rows, std::int64_t columns, Stores stores) noexcept {
  const Word* x = static_cast<const Word*>(in);
  Word* y = static_cast<Word*>(out);
  constexpr std::int64_t kTile = kSide<Word>;
  constexpr std::size_t kLine = 64;
  // Only vectors of a whole line may bypass the cache: half-filled lines would go out twice.
  const bool stream = stores == Stores::streaming && kTile * sizeof(Word) == kLine &&
                      reinterpret_cast<std::uintptr_t>(out) % kLine == 0 && out_stride % kTile == 0;
  const std::int64_t whole_rows = rows / kTile * kTile, whole_columns = columns / kTile * kTile;
  for (std::int64_t r = 0; r < whole_rows; r += kTile) {
    for (std::int64_t c = 0; c < whole_columns; c += kTile) {
      transpose_tile(x + r * in_stride + c, in_stride, y + c * out_stride + r, out_stride, stream);
    }
  }
  transpose_edge(x + whole_columns, in_stride, y + whole_columns * out_stride, out_stride,
                 whole_rows, columns - whole_columns);
  transpose_edge(x + whole_rows * in_stride, in_stride, y + whole_rows, out_stride,
                 rows - whole_rows, columns);
}

void stream_bytes(const void* in, void* out, std::int64_t bytes) noexcept {
  if (bytes == 0) return;  // nothing may lie nowhere: memcpy refuses a null pointer
  const hn::ScalableTag<std::uint8_t> d;
  const auto* x = static_cast<const std::uint8_t*>(in);
  auto* y = static_cast<std::uint8_t*>(out);
  constexpr std::int64_t kLine = 64;
  const auto past_line = static_cast<std::int64_t>(reinterpret_cast<std::uintptr_t>(out) % kLine);
  std::int64_t i = past_line == 0 ? 0 : kLine - past_line;
  if (i > bytes) i = bytes;
  if (i > 0) std::memcpy(y, x, static_cast<std::size_t>(i));
#if HWY_TARGET != HWY_SCALAR
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
  for (; i + kLine <= bytes; i += kLine) {
    for (std::int64_t k = 0; k < kLine; k += lanes) {
      hn::Stream(hn::LoadU(d, x + i + k), d, y + i + k);
    }
  }
#else
  static_cast<void>(d);
#endif
  if (i < bytes) std::memcpy(y + i, x + i, static_cast<std::size_t>(bytes - i));
}

void fence_stores() noexcept { hwy::FlushStream(); }

void fill_moves(CopyKernels& kernels) {
  kernels.transpose_4 = transpose<std::uint32_t>;
  kernels.transpose_8 = transpose<std::uint64_t>;
  kernels.stream = stream_bytes;
  kernels.fence = fence_stores;
}

}  // namespace einkern::kernel::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace einkern::kernel {

HWY_EXPORT(fill_moves);
void fill_copy(CopyKernels& kernels) { HWY_DYNAMIC_DISPATCH(fill_moves)(kernels); }

}  // namespace einkern::kernel
#endif
