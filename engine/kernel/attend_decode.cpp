// SPDX-License-Identifier: Apache-2.0
// Scores and weighted values of few rows, elements of keys and values in lanes.
#include "attend_decode.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "attend_decode.cpp"
#include <hwy/foreach_target.h>  // IWYU pragma: keep
#include <hwy/highway.h>

#include <algorithm>
#include <limits>

#include "attend-inl.h"
#include "flush_denormals.h"

HWY_BEFORE_NAMESPACE();
namespace einkern::kernel::HWY_NAMESPACE {
namespace {

template <class T>
using Tag = hn::ScalableTag<T>;
template <class T>
using Vector = hn::Vec<Tag<T>>;
template <class T>
inline constexpr std::int64_t kLanes = hn::MaxLanes(Tag<T>());
constexpr int kKeys = static_cast<int>(kDecodeKeys);

// Rows of a register tile: with four keys, or four vectors of columns, 16 accumulators.
#if HWY_TARGET == HWY_AVX3
constexpr int kMostRows = 4;
#else
constexpr int kMostRows = 2;
#endif
constexpr int kMostColumns = 4;  // vectors

/// Asks a line into L2: a block ahead is more than L1 holds.
HWY_INLINE void fetch(const void* line) {
  constexpr int kRead = 0, kSecondLevel = 2;
  __builtin_prefetch(line, kRead, kSecondLevel);
}

#if HWY_TARGET != HWY_SCALAR
/// Adds the upper halves to the lower ones down to one block of 128 bits.
template <class D>
HWY_INLINE auto sum_of_blocks(D d, hn::Vec<D> x) {
  if constexpr (hn::MaxLanes(D()) * sizeof(hn::TFromD<D>) <= 16) {
    static_cast<void>(d);
    return x;
  } else {
    const hn::Half<D> half;
    return sum_of_blocks(half, hn::Add(hn::LowerHalf(half, x), hn::UpperHalf(half, x)));
  }
}

#endif

/// to[j] = sum of the lanes of x[j].
template <class T>
HWY_INLINE void store_sums(const Vector<T> (&x)[kKeys], T* to) {
  const Tag<T> d;
#if HWY_TARGET == HWY_SCALAR
  for (int j = 0; j < kKeys; ++j) to[j] = hn::GetLane(x[j]);
  static_cast<void>(d);
#else
  const auto pair = [d](Vector<T> a, Vector<T> b) HWY_ATTR {
    return hn::Add(hn::InterleaveLower(d, a, b), hn::InterleaveUpper(d, a, b));
  };
  if constexpr (sizeof(T) == 4) {
    const hn::Repartition<double, Tag<T>> wide;
    const auto ab = hn::BitCast(wide, pair(x[0], x[1])), cd = hn::BitCast(wide, pair(x[2], x[3]));
    const auto low = hn::BitCast(d, hn::InterleaveLower(wide, ab, cd));
    const auto high = hn::BitCast(d, hn::InterleaveUpper(wide, ab, cd));
    const hn::CappedTag<T, 4> block;
    hn::StoreU(sum_of_blocks(d, hn::Add(low, high)), block, to);
  } else {
    const hn::CappedTag<T, 2> block;
    hn::StoreU(sum_of_blocks(d, pair(x[0], x[1])), block, to);
    hn::StoreU(sum_of_blocks(d, pair(x[2], x[3])), block, to + 2);
  }
#endif
}

/// What a group of rows asks for of the vectors that all groups pass: its share, so that requests
/// come as evenly as there is time for them (8 rows over 32768 keys, cold: 1.85 ms, now 1.74).
struct Share {
  std::int64_t first, last;

  Share(std::int64_t vectors, std::int64_t row, std::int64_t rows) {
    const std::int64_t groups = (rows + kMostRows - 1) / kMostRows, group = row / kMostRows;
    first = vectors * group / groups;
    last = vectors * (group + 1) / groups;
  }
};

/// Scores of R rows with kKeys keys, which may be the same.
template <class T, int R>
HWY_INLINE void score_tile(const DecodeScores<T>& block, std::int64_t row, std::int64_t key) {
  const Tag<T> d;
  constexpr std::int64_t N = kLanes<T>;
  const T* keys[kKeys];
  const T* ahead[kKeys];
  const bool fetches = key + kKeys <= block.ahead.rows;
  const Share share(fetches ? block.inner / N : 0, row, block.rows);
  HWY_UNROLL(4)
  for (int j = 0; j < kKeys; ++j) {
    keys[j] = block.k + block.k_at[HWY_MIN(key + j, block.keys - 1)];
    ahead[j] = fetches ? block.ahead.data + block.ahead.at[key + j] : nullptr;
  }
  Vector<T> sum[R][kKeys];
  HWY_UNROLL(4)
  for (int r = 0; r < R; ++r) {
    HWY_UNROLL(4)
    for (int j = 0; j < kKeys; ++j) sum[r][j] = hn::Zero(d);
  }
  const T* const q = block.q + row * block.q_stride;
  const std::int64_t q_stride = block.q_stride;
  const auto add = [&](std::int64_t i, const Vector<T>(&x)[kKeys]) HWY_ATTR {
    HWY_UNROLL(4)
    for (int r = 0; r < R; ++r) {
      const auto query = hn::Load(d, q + r * q_stride + i);
      HWY_UNROLL(4)
      for (int j = 0; j < kKeys; ++j) sum[r][j] = hn::MulAdd(query, x[j], sum[r][j]);
    }
  };
  std::int64_t i = 0;
  for (; i + N <= block.inner; i += N) {
    Vector<T> x[kKeys];
    HWY_UNROLL(4)
    for (int j = 0; j < kKeys; ++j) {
      x[j] = hn::LoadU(d, keys[j] + i);
      if (i >= share.first * N && i < share.last * N) fetch(ahead[j] + i);
    }
    add(i, x);
  }
  if (i < block.inner) {
    Vector<T> x[kKeys];
    for (int j = 0; j < kKeys; ++j) {
      HWY_ALIGN T tail[N] = {};
      std::copy_n(keys[j] + i, block.inner - i, tail);
      x[j] = hn::Load(d, tail);
    }
    add(i, x);
  }
  HWY_UNROLL(4)
  for (int r = 0; r < R; ++r) {
    store_sums<T>(sum[r], block.out + (row + r) * block.out_stride + key);
  }
}

/// Calls f<R>(row) for groups of at most kMostRows rows.
template <int R, class F>
HWY_INLINE void last_rows(std::int64_t row, std::int64_t rows, const F& f) {
  if constexpr (R > 0) {
    if (rows == R) return f(std::integral_constant<int, R>(), row);
    last_rows<R - 1>(row, rows, f);
  }
}
template <class F>
HWY_INLINE void each_rows(std::int64_t rows, const F& f) {
  for (std::int64_t row = 0; row < rows; row += kMostRows) {
    last_rows<kMostRows>(row, HWY_MIN(rows - row, std::int64_t{kMostRows}), f);
  }
}

template <class T>
void scores(const DecodeScores<T>& block) noexcept {
  const FlushDenormals mode;
  for (std::int64_t key = 0; key < block.keys; key += kKeys) {
    each_rows(block.rows, [&](auto count, std::int64_t row)
                              HWY_ATTR { score_tile<T, decltype(count)::value>(block, row, key); });
  }
}

/// C vectors of columns of R rows. A line of the row ahead for each vector that is one.
template <class T, int R, int C>
HWY_NOINLINE void value_tile(const DecodeValues<T>& block, std::int64_t row, std::int64_t column) {
  const Tag<T> d;
  constexpr std::int64_t N = kLanes<T>;
  T* const out = block.out + row * block.out_stride + column;
  Vector<T> sum[R][C];
  HWY_UNROLL(4)
  for (int r = 0; r < R; ++r) {
    HWY_UNROLL(4)
    for (int c = 0; c < C; ++c) sum[r][c] = hn::Load(d, out + r * block.out_stride + c * N);
  }
  const T* const weights = block.weights + row * block.weights_stride;
  const std::int64_t stride = block.weights_stride, rest = block.columns - column;
  const Share share(C, row, block.rows);
  for (std::int64_t j = 0; j < block.keys; ++j) {
    const T* const values = block.v + block.v_at[j] + column;
    Vector<T> x[C];
    if (HWY_LIKELY(rest >= C * N)) {
      HWY_UNROLL(4)
      for (int c = 0; c < C; ++c) x[c] = hn::LoadU(d, values + c * N);
    } else {
      HWY_ALIGN T tail[C * N] = {};
      std::copy_n(values, rest, tail);
      HWY_UNROLL(4)
      for (int c = 0; c < C; ++c) x[c] = hn::Load(d, tail + c * N);
    }
    if (j < block.ahead.rows) {
      const T* const ahead = block.ahead.data + block.ahead.at[j] + column;
      HWY_UNROLL(4)
      for (int c = 0; c < C; ++c) {
        if (c >= share.first && c < share.last) fetch(ahead + c * N);
      }
    }
    HWY_UNROLL(4)
    for (int r = 0; r < R; ++r) {
      const auto weight = hn::Set(d, weights[r * stride + j]);
      HWY_UNROLL(4)
      for (int c = 0; c < C; ++c) sum[r][c] = hn::MulAdd(weight, x[c], sum[r][c]);
    }
  }
  HWY_UNROLL(4)
  for (int r = 0; r < R; ++r) {
    HWY_UNROLL(4)
    for (int c = 0; c < C; ++c) hn::Store(sum[r][c], d, out + r * block.out_stride + c * N);
  }
}

template <class T>
void values(const DecodeValues<T>& block) noexcept {
  const FlushDenormals mode;
  constexpr std::int64_t N = kLanes<T>;
  for (std::int64_t column = 0; column < block.columns;) {
    const bool wide = block.columns - column >= kMostColumns * N;
    each_rows(block.rows, [&](auto count, std::int64_t row) HWY_ATTR {
      constexpr int R = decltype(count)::value;
      if (wide) {
        value_tile<T, R, kMostColumns>(block, row, column);
      } else {
        value_tile<T, R, 1>(block, row, column);
      }
    });
    column += wide ? kMostColumns * N : N;
  }
}

template <class T>
T largest(const T* scores, std::int64_t n) noexcept {
  const Tag<T> d;
  auto most = hn::Set(d, -std::numeric_limits<T>::infinity());
  for (std::int64_t i = 0; i < n; i += kLanes<T>) {
    const auto x = hn::Load(d, scores + i);
    most = hn::IfThenElse(hn::Gt(x, most), x, most);
  }
  return hn::GetLane(hn::MaxOfLanes(d, most));
}

template <class T>
void to_base_2(T* scores, std::int64_t n) noexcept {
  const Tag<T> d;
  constexpr T kMost = std::numeric_limits<T>::max() / 2;
  const auto log2_e = hn::Set(d, static_cast<T>(0x1.71547652b82fep+0));
  const auto infinity = hn::Set(d, std::numeric_limits<T>::infinity());
  for (std::int64_t i = 0; i < n; i += kLanes<T>) {
    const auto x = hn::Load(d, scores + i);
    const auto bounded = hn::Min(hn::Max(x, hn::Set(d, -kMost)), hn::Set(d, kMost));
    const auto finite = hn::Lt(hn::Abs(x), infinity);
    hn::Store(hn::Mul(hn::IfThenElse(finite, bounded, x), log2_e), d, scores + i);
  }
}

template <class T>
T weigh(T* scores, std::int64_t n, T reference) noexcept {
  const FlushDenormals mode;
  const Tag<T> d;
  const auto least = hn::Set(d, reference);
  auto sum = hn::Zero(d);
  for (std::int64_t i = 0; i < n; i += kLanes<T>) {
    const auto weight = exp2_score(d, hn::Sub(hn::Load(d, scores + i), least));
    sum = hn::Add(sum, weight);
    hn::Store(weight, d, scores + i);
  }
  return hn::GetLane(hn::SumOfLanes(d, sum));
}

template <class T>
void set(DecodeFunctions<T>& functions) {
  functions = {.scores = scores<T>,
               .largest = largest<T>,
               .to_base_2 = to_base_2<T>,
               .weigh = weigh<T>,
               .values = values<T>};
}

void fill(DecodeKernels& kernels) {
  set(kernels.f32);
  set(kernels.f64);
}

}  // namespace
}  // namespace einkern::kernel::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace einkern::kernel {

HWY_EXPORT(fill);
void fill_decode(DecodeKernels& kernels) { HWY_DYNAMIC_DISPATCH(fill)(kernels); }

}  // namespace einkern::kernel
#endif
