// SPDX-License-Identifier: Apache-2.0
// Many small matrix products side by side in the lanes of vectors.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "matmul_lanes.cpp"
#include "hwy/foreach_target.h"
//
#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "hwy/cache_control.h"
#include "hwy/highway.h"
#include "matmul-inl.h"
#include "matmul.h"
#include "matmul_direct.h"

HWY_BEFORE_NAMESPACE();
namespace einkern::kernel::HWY_NAMESPACE {
namespace {

/// At most a line: a tile is a vector wide.
template <class T>
using LineTag = hn::CappedTag<T, static_cast<std::size_t>(kLineOf<T>)>;

template <class T>
void pack_lanes(const LanePack<T>& block) noexcept {
  constexpr std::int64_t kLine = kLineOf<T>;
  const LineTag<T> d;
  constexpr auto N = static_cast<std::int64_t>(hn::MaxLanes(d));
  const std::int64_t whole = block.lanes / kLine, rest = block.lanes % kLine;
  const std::int64_t next_line = block.line;
  // Runs are too short for the hardware to see them coming: about 16 lines are asked for ahead, as
  // many as can be on their way.
  const std::int64_t first = std::min(block.lanes, 16 * kLine);
  const std::int64_t ahead = std::clamp<std::int64_t>(16 * kLine / first, 1, 4);
  for (std::int64_t r = 0; r < block.runs; ++r) {
    const T* const from = block.source + block.at[r];
    T* to = block.packed + r * kLine;
    if (block.same) {
      for (std::int64_t q = 0; q < whole + (rest != 0); ++q, to += next_line) {
        for (std::int64_t l = 0; l < kLine; l += N) hn::StoreU(hn::Set(d, *from), d, to + l);
      }
      continue;
    }
    if (r + ahead < block.runs) {
      const T* const soon = block.source + block.at[r + ahead];
      for (std::int64_t l = 0; l < first; l += kLine) hwy::Prefetch(soon + l);
    }
    for (std::int64_t q = 0; q < whole; ++q, to += next_line) {
      for (std::int64_t l = 0; l < kLine; l += N) {
        hn::StoreU(hn::LoadU(d, from + q * kLine + l), d, to + l);
      }
    }
    if (rest == 0) continue;
    std::copy(from + whole * kLine, from + block.lanes, to);
    std::fill(to + rest, to + kLine, T{0});
  }
}

template <int R, int C, class T>
HWY_INLINE void lane_tile(const LaneBlock<T>& block, const T* a, const T* b, T* c,
                          std::size_t lanes) {
  const LineTag<T> d;
  using V = hn::VFromD<LineTag<T>>;
  V sum[R][C];
  HWY_UNROLL(4)
  for (int r = 0; r < R; ++r) {
    HWY_UNROLL(4)
    for (int j = 0; j < C; ++j) sum[r][j] = hn::Zero(d);
  }
  for (std::int64_t p = 0; p < block.steps; ++p, a += block.a_step, b += block.b_step) {
    V columns[C];
    HWY_UNROLL(4)
    for (int j = 0; j < C; ++j) columns[j] = load_lanes(d, b + j * block.b_column, lanes);
    HWY_UNROLL(4)
    for (int r = 0; r < R; ++r) {
      const V row = load_lanes(d, a + r * block.a_row, lanes);
      HWY_UNROLL(4)
      for (int j = 0; j < C; ++j) sum[r][j] = hn::MulAdd(row, columns[j], sum[r][j]);
    }
  }
  HWY_UNROLL(4)
  for (int r = 0; r < R; ++r) {
    HWY_UNROLL(4)
    for (int j = 0; j < C; ++j) {
      T* const to = c + r * block.c_row + j * block.c_column;
      if (block.stream && lanes == hn::Lanes(d)) {
        hn::Stream(sum[r][j], d, to);
      } else {
        store_lanes(d, sum[r][j], lanes, to);
      }
    }
  }
}

template <int R, class T>
HWY_INLINE void lane_row(const LaneBlock<T>& block, const T* a, const T* b, T* c,
                         std::size_t lanes) {
  std::int64_t j = 0;
  for (; j + 4 <= block.columns; j += 4) {
    lane_tile<R, 4>(block, a, b + j * block.b_column, c + j * block.c_column, lanes);
  }
  b += j * block.b_column;
  c += j * block.c_column;
  switch (block.columns - j) {
    case 1:
      return lane_tile<R, 1>(block, a, b, c, lanes);
    case 2:
      return lane_tile<R, 2>(block, a, b, c, lanes);
    case 3:
      return lane_tile<R, 3>(block, a, b, c, lanes);
    default:
      return;
  }
}

/// All products of the lanes of one vector: their factors stay in L1.
template <class T>
void multiply_lanes(const LaneBlock<T>& block) noexcept {
  constexpr auto N = static_cast<std::int64_t>(hn::MaxLanes(LineTag<T>()));
  for (std::int64_t l = 0; l < block.lanes; l += N) {
    const std::int64_t line = l / kLineOf<T>, in_line = l % kLineOf<T>;
    const auto lanes = static_cast<std::size_t>(std::min(N, block.lanes - l));
    const T* const b = block.b + line * block.b_line + in_line;
    std::int64_t i = 0;
    const auto a = [&] { return block.a + line * block.a_line + in_line + i * block.a_row; };
    const auto c = [&] { return block.c + l + i * block.c_row; };
    for (; i + 4 <= block.rows; i += 4) lane_row<4>(block, a(), b, c(), lanes);
    switch (block.rows - i) {
      case 1:
        lane_row<1>(block, a(), b, c(), lanes);
        break;
      case 2:
        lane_row<2>(block, a(), b, c(), lanes);
        break;
      case 3:
        lane_row<3>(block, a(), b, c(), lanes);
        break;
      default:
        break;
    }
  }
}

template <class T>
void fill(MatmulFunctions<T>& functions) {
  functions.pack_lanes = pack_lanes<T>;
  functions.multiply_lanes = multiply_lanes<T>;
}

void FillMatmulLanes(MatmulKernels& kernels) {
  fill(kernels.f32);
  fill(kernels.f64);
}

}  // namespace
}  // namespace einkern::kernel::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace einkern::kernel {

HWY_EXPORT(FillMatmulLanes);

void fill_matmul_lanes(MatmulKernels& kernels) { HWY_DYNAMIC_DISPATCH(FillMatmulLanes)(kernels); }

}  // namespace einkern::kernel
#endif  // HWY_ONCE
