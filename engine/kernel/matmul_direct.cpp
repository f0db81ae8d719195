// SPDX-License-Identifier: Apache-2.0
// Products of matrices too thin to pack: dots, weighted sums of rows, products without a sum.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "matmul_direct.cpp"
#include "hwy/foreach_target.h"
//
#include <algorithm>
#include <cstddef>
#include <cstdint>

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
void products(const ProductBlock<T>& block) noexcept {
  using D = hn::ScalableTag<T>;
  const D d;
  constexpr std::int64_t N = kLanesOf<D>;
  const auto fits = [](std::int64_t step) { return step == 0 || step == 1; };
  const bool vectors = fits(block.a_step) && fits(block.b_step);
  for (std::int64_t r = 0; r < block.rows; ++r) {
    const T* const a = block.a + r * block.a_row;
    const T* const b = block.b + r * block.b_row;
    T* const c = block.c + r * block.c_row;
    if (!vectors) {
      for (std::int64_t i = 0; i < block.columns; ++i) {
        c[i] = a[i * block.a_step] * b[i * block.b_step];
      }
      continue;
    }
    const auto all_a = hn::Set(d, *a), all_b = hn::Set(d, *b);
    std::int64_t i = 0;
    for (; i + N <= block.columns; i += N) {
      const auto x = block.a_step == 0 ? all_a : hn::LoadU(d, a + i);
      const auto y = block.b_step == 0 ? all_b : hn::LoadU(d, b + i);
      hn::StoreU(hn::Mul(x, y), d, c + i);
    }
    if (i == block.columns) continue;
    const auto lanes = static_cast<std::size_t>(block.columns - i);
    const auto x = block.a_step == 0 ? all_a : load_lanes(d, a + i, lanes);
    const auto y = block.b_step == 0 ? all_b : load_lanes(d, b + i, lanes);
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
    if (p == 0 && !block.add) {
      add_rows<true>(rows, x, block.weights, block.y, block.size);
    } else {
      add_rows<false>(rows, x, block.weights + p, block.y, block.size);
    }
  }
}

template <class T>
void fill(MatmulFunctions<T>& functions) {
  functions.dot = dot<T>;
  functions.products = products<T>;
  functions.weighted_rows = weighted_rows<T>;
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

void fill_matmul_direct(MatmulKernels& kernels) {
  HWY_DYNAMIC_DISPATCH(FillMatmulDirect)(kernels);
  fill_matmul_small(kernels);
  fill_matmul_lanes(kernels);
}

}  // namespace einkern::kernel
#endif  // HWY_ONCE
