// SPDX-License-Identifier: Apache-2.0
// Products of matrices too small or too thin to pack: dots, weighted sums of rows, many small
// matrices.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "matmul_direct.cpp"
#include "hwy/foreach_target.h"
//
#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <utility>

#include "hwy/cache_control.h"
#include "hwy/highway.h"
#include "matmul-inl.h"
#include "matmul.h"
#include "matmul_direct.h"

HWY_BEFORE_NAMESPACE();
namespace einkern::kernel::HWY_NAMESPACE {
namespace {

template <class D>
inline constexpr std::int64_t kLanesOf = hn::MaxLanes(D());

template <class T>
T dot(const T* a, const T* b, std::int64_t n) noexcept {
  using D = hn::ScalableTag<T>;
  const D d;
  constexpr std::int64_t N = kLanesOf<D>;
  // Eight sums in flight cover the latency of the FMA units.
  auto s0 = hn::Zero(d), s1 = s0, s2 = s0, s3 = s0, s4 = s0, s5 = s0, s6 = s0, s7 = s0;
  const auto add = [&](std::int64_t i, hn::VFromD<D>& sum) HWY_ATTR {
    sum = hn::MulAdd(hn::LoadU(d, a + i), hn::LoadU(d, b + i), sum);
  };
  std::int64_t i = 0;
  for (; i + 8 * N <= n; i += 8 * N) {
    add(i, s0);
    add(i + N, s1);
    add(i + 2 * N, s2);
    add(i + 3 * N, s3);
    add(i + 4 * N, s4);
    add(i + 5 * N, s5);
    add(i + 6 * N, s6);
    add(i + 7 * N, s7);
  }
  for (; i < n; i += N) {
    const auto lanes = static_cast<std::size_t>(std::min(N, n - i));
    s0 = hn::MulAdd(load_lanes(d, a + i, lanes), load_lanes(d, b + i, lanes), s0);
  }
  s0 = hn::Add(hn::Add(s0, s4), hn::Add(s2, s6));
  s1 = hn::Add(hn::Add(s1, s5), hn::Add(s3, s7));
  return hn::GetLane(hn::SumOfLanes(d, hn::Add(s0, s1)));
}

template <class T>
void products(const T* a, std::int64_t a_stride, const T* b, std::int64_t b_stride, T* c,
              std::int64_t n) noexcept {
  using D = hn::ScalableTag<T>;
  const D d;
  if (a_stride > 1 || a_stride < 0 || b_stride > 1 || b_stride < 0) {
    for (std::int64_t i = 0; i < n; ++i) c[i] = a[i * a_stride] * b[i * b_stride];
    return;
  }
  for (std::int64_t i = 0; i < n; i += kLanesOf<D>) {
    const auto lanes = static_cast<std::size_t>(std::min(kLanesOf<D>, n - i));
    const auto x = a_stride == 0 ? hn::Set(d, *a) : load_lanes(d, a + i, lanes);
    const auto y = b_stride == 0 ? hn::Set(d, *b) : load_lanes(d, b + i, lanes);
    store_lanes(d, hn::Mul(x, y), lanes, c + i);
  }
}

// A pass over y takes this many rows: y comes from L1 and the rows stream.
inline constexpr std::int64_t kRowsAtOnce = 4;

template <int R, bool kFirst, class T>
void add_rows(const T* const* x, const T* weights, T* y, std::int64_t n) {
  using D = hn::ScalableTag<T>;
  const D d;
  for (std::int64_t i = 0; i < n; i += kLanesOf<D>) {
    const auto lanes = static_cast<std::size_t>(std::min(kLanesOf<D>, n - i));
    auto sum = kFirst ? hn::Zero(d) : load_lanes(d, y + i, lanes);
    for (int r = 0; r < R; ++r) {
      sum = hn::MulAdd(hn::Set(d, weights[r]), load_lanes(d, x[r] + i, lanes), sum);
    }
    store_lanes(d, sum, lanes, y + i);
  }
}

template <bool kFirst, class T>
void add_rows(std::int64_t rows, const T* const* x, const T* weights, T* y, std::int64_t n) {
  switch (rows) {
    case 1:
      return add_rows<1, kFirst>(x, weights, y, n);
    case 2:
      return add_rows<2, kFirst>(x, weights, y, n);
    case 3:
      return add_rows<3, kFirst>(x, weights, y, n);
    default:
      return add_rows<4, kFirst>(x, weights, y, n);
  }
}

template <class T>
void weighted_rows(const WeightedRows<T>& block) noexcept {
  for (std::int64_t p = 0; p < block.row_count; p += kRowsAtOnce) {
    const std::int64_t rows = std::min(kRowsAtOnce, block.row_count - p);
    const T* x[kRowsAtOnce];
    for (std::int64_t r = 0; r < rows; ++r) x[r] = block.x + block.rows[p + r];
    if (p == 0) {
      add_rows<true>(rows, x, block.weights, block.y, block.size);
    } else {
      add_rows<false>(rows, x, block.weights + p, block.y, block.size);
    }
  }
}

// R x C products over lanes, the whole sum in registers.
template <int R, int C, class T>
void lane_tile(const LaneBlock<T>& block, std::int64_t i, std::int64_t j) {
  using D = hn::ScalableTag<T>;
  using V = hn::VFromD<D>;
  const D d;
  for (std::int64_t l = 0; l < block.lanes; l += kLanesOf<D>) {
    const auto lanes = static_cast<std::size_t>(std::min(kLanesOf<D>, block.lanes - l));
    V sum[R][C];
    HWY_UNROLL(4)
    for (int r = 0; r < R; ++r) {
      HWY_UNROLL(4)
      for (int c = 0; c < C; ++c) sum[r][c] = hn::Zero(d);
    }
    for (std::int64_t p = 0; p < block.steps; ++p) {
      const T* const a = block.a + block.steps_a[p];
      const T* const b = block.b + block.steps_b[p];
      V columns[C];
      HWY_UNROLL(4)
      for (int c = 0; c < C; ++c) {
        const T* const from = b + block.columns_b[j + c];
        columns[c] = block.same_b ? hn::Set(d, *from) : load_lanes(d, from + l, lanes);
      }
      HWY_UNROLL(4)
      for (int r = 0; r < R; ++r) {
        const T* const from = a + block.rows_a[i + r];
        const V row = block.same_a ? hn::Set(d, *from) : load_lanes(d, from + l, lanes);
        HWY_UNROLL(4)
        for (int c = 0; c < C; ++c) sum[r][c] = hn::MulAdd(row, columns[c], sum[r][c]);
      }
    }
    HWY_UNROLL(4)
    for (int r = 0; r < R; ++r) {
      HWY_UNROLL(4)
      for (int c = 0; c < C; ++c) {
        store_lanes(d, sum[r][c], lanes,
                    block.c + block.rows_c[i + r] + block.columns_c[j + c] + l);
      }
    }
  }
}

template <class T>
void multiply_lanes(const LaneBlock<T>& block) noexcept {
  using Tile = void (*)(const LaneBlock<T>&, std::int64_t, std::int64_t);
  constexpr Tile kTiles[4][4] = {
      {lane_tile<1, 1, T>, lane_tile<1, 2, T>, lane_tile<1, 3, T>, lane_tile<1, 4, T>},
      {lane_tile<2, 1, T>, lane_tile<2, 2, T>, lane_tile<2, 3, T>, lane_tile<2, 4, T>},
      {lane_tile<3, 1, T>, lane_tile<3, 2, T>, lane_tile<3, 3, T>, lane_tile<3, 4, T>},
      {lane_tile<4, 1, T>, lane_tile<4, 2, T>, lane_tile<4, 3, T>, lane_tile<4, 4, T>}};
  for (std::int64_t i = 0; i < block.row_count; i += 4) {
    const std::int64_t rows = std::min<std::int64_t>(4, block.row_count - i);
    for (std::int64_t j = 0; j < block.column_count; j += 4) {
      const std::int64_t columns = std::min<std::int64_t>(4, block.column_count - j);
      kTiles[rows - 1][columns - 1](block, i, j);
    }
  }
}

// Rows of a small product that are kept in registers at once.
inline constexpr int kSmallRows = 8;

template <int R, class D, class T>
void small_rows(const SmallBlock<T>& block, std::int64_t i, const T* a, const T* b, T* c) {
  using V = hn::VFromD<D>;
  const D d;
  for (std::int64_t j = 0; j < block.column_count; j += kLanesOf<D>) {
    const auto lanes = static_cast<std::size_t>(std::min(kLanesOf<D>, block.column_count - j));
    V sum[R];
    HWY_UNROLL(8)
    for (int r = 0; r < R; ++r) sum[r] = hn::Zero(d);
    for (std::int64_t p = 0; p < block.steps; ++p) {
      const V columns = load_lanes(d, b + block.steps_b[p] + j, lanes);
      const T* const column = a + block.steps_a[p];
      HWY_UNROLL(8)
      for (int r = 0; r < R; ++r) {
        sum[r] = hn::MulAdd(hn::Set(d, column[block.rows_a[i + r]]), columns, sum[r]);
      }
    }
    HWY_UNROLL(8)
    for (int r = 0; r < R; ++r) store_lanes(d, sum[r], lanes, c + block.rows_c[i + r] + j);
  }
}

template <class D, class T, int... R>
constexpr auto small_tiles(std::integer_sequence<int, R...>) {
  using Tile = void (*)(const SmallBlock<T>&, std::int64_t, const T*, const T*, T*);
  return std::array<Tile, sizeof...(R)>{small_rows<R + 1, D, T>...};
}

template <class D, class T>
void small_with(const SmallBlock<T>& block, const T* const* a, const T* const* b, T* const* c,
                std::int64_t count) {
  static constexpr auto kTiles = small_tiles<D, T>(std::make_integer_sequence<int, kSmallRows>());
  for (std::int64_t i = 0; i < block.row_count; i += kSmallRows) {
    const auto rows = std::min<std::int64_t>(kSmallRows, block.row_count - i);
    const auto tile = kTiles[static_cast<std::size_t>(rows - 1)];
    for (std::int64_t e = 0; e < count; ++e) tile(block, i, a[e], b[e], c[e]);
  }
}

template <class T>
void multiply_small(const SmallBlock<T>& block, const T* const* a, const T* const* b, T* const* c,
                    std::int64_t count) noexcept {
  using D = hn::ScalableTag<T>;
#if HWY_TARGET == HWY_AVX2 || HWY_TARGET == HWY_AVX3
  // No wider registers than the columns fill.
  using Narrow = hn::Half<D>;
  if (block.column_count <= kLanesOf<Narrow>) return small_with<Narrow>(block, a, b, c, count);
#endif
  small_with<D>(block, a, b, c, count);
}

template <class T>
void fill(MatmulFunctions<T>& functions) {
  functions.dot = dot<T>;
  functions.products = products<T>;
  functions.weighted_rows = weighted_rows<T>;
  functions.multiply_lanes = multiply_lanes<T>;
  functions.multiply_small = multiply_small<T>;
}

void FillMatmulDirect(MatmulKernels& kernels) {
  fill(kernels.f32);
  fill(kernels.f64);
}

}  // namespace
}  // namespace einkern::kernel::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace einkern::kernel {

HWY_EXPORT(FillMatmulDirect);

void fill_matmul_direct(MatmulKernels& kernels) { HWY_DYNAMIC_DISPATCH(FillMatmulDirect)(kernels); }

}  // namespace einkern::kernel
#endif  // HWY_ONCE
