// SPDX-License-Identifier: Apache-2.0
// Softmax of one row in three passes: maximum, exponentials and their sum, division.
#include "softmax.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "softmax.cpp"
#include <hwy/foreach_target.h>  // IWYU pragma: keep
#include <hwy/highway.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "math-inl.h"
#include "pairwise-inl.h"

HWY_BEFORE_NAMESPACE();
namespace einkern::kernel::HWY_NAMESPACE {

template <class T>
constexpr T kMinusInfinity = -std::numeric_limits<T>::infinity();

/// Largest element; any number when the row holds NaN, since the sum of exponentials is NaN then.
template <class T>
T row_maximum(const T* x, std::int64_t n) {
  const hn::ScalableTag<T> d;
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
  auto m0 = hn::Set(d, kMinusInfinity<T>), m1 = m0, m2 = m0, m3 = m0;
  std::int64_t i = 0;
  for (; i + 4 * lanes <= n; i += 4 * lanes) {
    m0 = hn::Max(m0, hn::LoadU(d, x + i));
    m1 = hn::Max(m1, hn::LoadU(d, x + i + lanes));
    m2 = hn::Max(m2, hn::LoadU(d, x + i + 2 * lanes));
    m3 = hn::Max(m3, hn::LoadU(d, x + i + 3 * lanes));
  }
  for (; i + lanes <= n; i += lanes) m0 = hn::Max(m0, hn::LoadU(d, x + i));
  if (i < n) m1 = hn::Max(m1, load_part(d, x + i, n - i, kMinusInfinity<T>));
  return hn::GetLane(hn::MaxOfLanes(d, hn::Max(hn::Max(m0, m1), hn::Max(m2, m3))));
}

/// What is subtracted from a row, and the sum of the exponentials of the rest.
template <class T>
struct RowSum {
  T shift;  // the maximum, 0 for a row that is -inf everywhere
  T sum;    // 0 for such a row, NaN for one that holds NaN or +inf
};

/// Calls `keep(position, exponentials, count)` for every vector.
template <class T, class Keep>
HWY_INLINE RowSum<T> sum_exponentials(const T* x, const T* sink, std::int64_t n, Keep&& keep) {
  const hn::ScalableTag<T> d;
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
  T maximum = row_maximum(x, n);
  if (sink != nullptr && !(*sink <= maximum)) maximum = *sink;
  const T shift = maximum == kMinusInfinity<T> ? T{0} : maximum;
  const auto shifts = hn::Set(d, shift);

  const auto sum_block = [&](std::int64_t first, std::int64_t end) {
    auto sum = hn::Zero(d);
    std::int64_t i = first;
    for (; i + lanes <= end; i += lanes) {
      const auto e = exp(d, hn::Sub(hn::LoadU(d, x + i), shifts));
      sum = hn::Add(sum, e);
      keep(i, e, lanes);
    }
    if (i < end) {
      const auto part = load_part(d, x + i, end - i, kMinusInfinity<T>);
      const auto e = exp(d, hn::Sub(part, shifts));
      sum = hn::Add(sum, e);  // lanes beyond the row are exp(-inf) = 0
      keep(i, e, end - i);
    }
    return sum;
  };
  const std::int64_t block = kBlockVectors * lanes;
  auto sums = sum_block(0, std::min(n, block));
  if (n > block) {
    Pairwise<SumFold, decltype(d)> tree;
    tree.push(d, sums);
    for (std::int64_t i = block; i < n; i += block) {
      tree.push(d, sum_block(i, std::min(n, i + block)));
    }
    sums = tree.finish(d);
  }
  T sum = fold_lanes<SumFold>(d, sums);
  if (sink != nullptr) sum += hn::GetLane(exp(d, hn::Set(d, *sink - shift)));
  return {shift, sum};
}

template <class T>
HWY_INLINE T log_of(T x) {
  const hn::ScalableTag<T> d;
  return hn::GetLane(log(d, hn::Set(d, x)));
}

/// out[i] = f(in[i]) over whole vectors and a padded tail.
template <class T, class F>
HWY_INLINE void each(const T* in, std::int64_t n, T* out, F&& f) {
  const hn::ScalableTag<T> d;
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
  std::int64_t i = 0;
  for (; i + lanes <= n; i += lanes) hn::StoreU(f(hn::LoadU(d, in + i)), d, out + i);
  if (i < n) store_part(d, f(load_part(d, in + i, n - i, T{0})), out + i, n - i);
}

template <class T>
void softmax_row(const T* in, const T* sink, std::int64_t n, T* out) noexcept {
  const hn::ScalableTag<T> d;
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
  const RowSum<T> row =
      sum_exponentials(in, sink, n, [&](std::int64_t i, auto e, std::int64_t count) {
        if (count == lanes) {
          hn::StoreU(e, d, out + i);
        } else {
          store_part(d, e, out + i, count);
        }
      });
  const auto sums = hn::Set(d, row.sum == 0 ? T{1} : row.sum);
  each(out, n, out, [&](auto e) { return hn::Div(e, sums); });
}

template <class T>
void log_softmax_row(const T* in, const T* sink, std::int64_t n, T* out) noexcept {
  const hn::ScalableTag<T> d;
  const RowSum<T> row = sum_exponentials(in, sink, n, [](auto...) {});
  const auto shifts = hn::Set(d, row.shift);
  const auto logs = hn::Set(d, row.sum == 0 ? T{0} : log_of(row.sum));
  each(in, n, out, [&](auto x) { return hn::Sub(hn::Sub(x, shifts), logs); });
}

template <class T>
void logsumexp_row(const T* in, const T* sink, std::int64_t n, T* out) noexcept {
  const RowSum<T> row = sum_exponentials(in, sink, n, [](auto...) {});
  *out = row.shift + log_of(row.sum);
}

template <class T>
void set(SoftmaxKernels::Rows<T>& rows) {
  rows = {softmax_row<T>, log_softmax_row<T>, logsumexp_row<T>};
}

void fill_rows(SoftmaxKernels& kernels) {
  set(kernels.f32);
  set(kernels.f64);
}

}  // namespace einkern::kernel::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace einkern::kernel {

HWY_EXPORT(fill_rows);
void fill_softmax(SoftmaxKernels& kernels) { HWY_DYNAMIC_DISPATCH(fill_rows)(kernels); }

}  // namespace einkern::kernel
#endif
