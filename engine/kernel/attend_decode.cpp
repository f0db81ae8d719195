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
#include "half-inl.h"

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

// Rows of a register tile: up to 16 accumulators on 32 registers, 8 on 16. All rows at once where
// that fits: what is stored narrower is widened once, and lines are asked for evenly.
#if HWY_TARGET == HWY_AVX3
constexpr int kMostRows = 8;
#else
constexpr int kMostRows = 2;
#endif
constexpr int kMostColumns = 4;  // vectors
/// Keys, or vectors of columns, of a tile of so many rows.
constexpr int beside(int rows) { return rows > 4 ? 2 : 4; }
static_assert(beside(1) == kKeys && beside(1) == kMostColumns);

/// Asks the lines of rows into L2, in order of address whatever order the tiles read in: memory and
/// its prefetchers follow that alone. Four rows side by side come at 4 GB/s on a core of an EPYC,
/// in order at 9, which is what it reads at.
template <class S>
class LinesAhead {
 public:
  /// `elements` of each of `count` rows, from line `first` of all of them on.
  HWY_INLINE LinesAhead(const StoredRows& rows, std::int64_t count, std::int64_t elements,
                        std::int64_t first)
      : rows_(rows), count_(count), lines_((elements * kSize + kLine - 1) / kLine) {
    if (count == 0 || lines_ == 0) return;
    row_ = first / lines_;
    if (row_ < count) begin_row(first % lines_);
  }

  /// The lines that tiles have read by the end of `step` where each step reads `kBytes`.
  template <std::int64_t kBytes>
  HWY_INLINE void fetch(std::int64_t step) {
    if constexpr (kBytes < kLine) {
      if (step % (kLine / kBytes) == 0) fetch_line();
    } else {
      HWY_UNROLL(8)
      for (std::int64_t i = 0; i < kBytes / kLine; ++i) fetch_line();
    }
  }

 private:
  static constexpr std::int64_t kLine = 64, kSize = sizeof(S);

  HWY_INLINE void begin_row(std::int64_t line) {
    left_ = lines_ - line;
    at_ = reinterpret_cast<const char*>(static_cast<const S*>(rows_.data) + rows_.at[row_]) +
          line * kLine;
  }
  HWY_INLINE void fetch_line() {
    if (left_ == 0) return;
    constexpr int kRead = 0, kSecondLevel = 2;
    __builtin_prefetch(at_, kRead, kSecondLevel);
    at_ += kLine;
    if (--left_ == 0 && ++row_ < count_) begin_row(0);
  }

  const StoredRows& rows_;
  const std::int64_t count_, lines_;
  std::int64_t row_ = 0, left_ = 0;
  const char* at_ = nullptr;
};

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

#if HWY_TARGET != HWY_SCALAR
/// The sums of the lanes of four vectors of f32, or of two of f64, in one block of 128 bits.
template <class T, class... V>
HWY_INLINE auto sums_of(Vector<T> a, Vector<T> b, V... others) {
  const Tag<T> d;
  const auto pair = [d](Vector<T> x, Vector<T> y) HWY_ATTR {
    return hn::Add(hn::InterleaveLower(d, x, y), hn::InterleaveUpper(d, x, y));
  };
  if constexpr (sizeof(T) == 4) {
    const hn::Repartition<double, Tag<T>> wide;
    const auto ab = hn::BitCast(wide, pair(a, b)), cd = hn::BitCast(wide, pair(others...));
    const auto low = hn::BitCast(d, hn::InterleaveLower(wide, ab, cd));
    const auto high = hn::BitCast(d, hn::InterleaveUpper(wide, ab, cd));
    return sum_of_blocks(d, hn::Add(low, high));
  } else {
    return sum_of_blocks(d, pair(a, b));
  }
}
#endif

/// out[r, j] = sum of the lanes of x[r][j]; K is 4, or 2 in tiles of more rows.
template <class T, int R, int K>
HWY_INLINE void store_sums(const Vector<T> (&x)[R][K], T* out, std::int64_t stride) {
#if HWY_TARGET == HWY_SCALAR
  for (int r = 0; r < R; ++r) {
    for (int j = 0; j < K; ++j) out[r * stride + j] = hn::GetLane(x[r][j]);
  }
#else
  const hn::CappedTag<T, 2> two;
  if constexpr (sizeof(T) == 8) {
    HWY_UNROLL(8)
    for (int r = 0; r < R; ++r) {
      HWY_UNROLL(2)
      for (int j = 0; j < K; j += 2) {
        hn::StoreU(sums_of<T>(x[r][j], x[r][j + 1]), two, out + r * stride + j);
      }
    }
  } else if constexpr (K == 4) {
    const hn::CappedTag<T, 4> four;
    HWY_UNROLL(4)
    for (int r = 0; r < R; ++r) {
      hn::StoreU(sums_of<T>(x[r][0], x[r][1], x[r][2], x[r][3]), four, out + r * stride);
    }
  } else {
    HWY_UNROLL(4)
    for (int r = 0; r < R; r += 2) {
      const int next = r + 1 < R ? r + 1 : r;
      const auto sums = sums_of<T>(x[r][0], x[r][1], x[next][0], x[next][1]);
      hn::StoreU(hn::LowerHalf(two, sums), two, out + r * stride);
      hn::StoreU(hn::UpperHalf(two, sums), two, out + next * stride);
    }
  }
#endif
}

/// Calls f with the type of stored rows.
template <class T, class F>
HWY_INLINE void with_stored_type(const StoredRows& rows, const F& f) {
  if constexpr (std::is_same_v<T, float>) {
    if (rows.dtype == DType::f16) return f(std::type_identity<Float16>());
    if (rows.dtype == DType::bf16) return f(std::type_identity<BFloat16>());
  }
  f(std::type_identity<T>());
}

/// Scores of R rows with K keys, which may be the same.
template <class T, class S, int R, int K>
HWY_INLINE void score_tile(const DecodeScores<T>& block, std::int64_t row, std::int64_t key,
                           LinesAhead<S>& ahead) {
  const Tag<T> d;
  constexpr std::int64_t N = kLanes<T>;
  const S* keys[K];
  HWY_UNROLL(4)
  for (int j = 0; j < K; ++j) {
    keys[j] = static_cast<const S*>(block.k.data) + block.k.at[HWY_MIN(key + j, block.keys - 1)];
  }
  Vector<T> sum[R][K];
  HWY_UNROLL(8)
  for (int r = 0; r < R; ++r) {
    HWY_UNROLL(4)
    for (int j = 0; j < K; ++j) sum[r][j] = hn::Zero(d);
  }
  const T* const q = block.q + row * block.q_stride;
  const std::int64_t q_stride = block.q_stride;
  const auto add = [&](std::int64_t i, const Vector<T>(&x)[K]) HWY_ATTR {
    HWY_UNROLL(8)
    for (int r = 0; r < R; ++r) {
      const auto query = hn::Load(d, q + r * q_stride + i);
      HWY_UNROLL(4)
      for (int j = 0; j < K; ++j) sum[r][j] = hn::MulAdd(query, x[j], sum[r][j]);
    }
  };
  std::int64_t i = 0;
  for (; i + N <= block.inner; i += N) {
    Vector<T> x[K];
    HWY_UNROLL(4)
    for (int j = 0; j < K; ++j) x[j] = load_as(d, keys[j] + i);
    if (row == 0) ahead.template fetch<K * N * sizeof(S)>(i / N);
    add(i, x);
  }
  if (i < block.inner) {
    Vector<T> x[K];
    for (int j = 0; j < K; ++j) x[j] = load_part_as(d, keys[j] + i, block.inner - i);
    if (row == 0) ahead.template fetch<K * N * sizeof(S)>(i / N);
    add(i, x);
  }
  store_sums<T>(sum, block.out + row * block.out_stride + key, block.out_stride);
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
  with_stored_type<T>(block.k, [&]<class S>(std::type_identity<S>) HWY_ATTR {
    LinesAhead<S> ahead(block.ahead, block.ahead_rows, block.inner, 0);
    for (std::int64_t key = 0; key < block.keys; key += kKeys) {
      each_rows(block.rows, [&](auto count, std::int64_t row) HWY_ATTR {
        constexpr int R = decltype(count)::value, K = beside(R);
        for (std::int64_t k = key; k < HWY_MIN(key + kKeys, block.keys); k += K) {
          score_tile<T, S, R, K>(block, row, k, ahead);
        }
      });
    }
  });
}

/// C vectors of columns of R rows, and as many bytes of the rows ahead.
template <class T, class S, int R, int C>
HWY_NOINLINE void value_tile(const DecodeValues<T>& block, std::int64_t row, std::int64_t column) {
  const Tag<T> d;
  constexpr std::int64_t N = kLanes<T>;
  T* const out = block.out + row * block.out_stride + column;
  Vector<T> sum[R][C];
  HWY_UNROLL(8)
  for (int r = 0; r < R; ++r) {
    HWY_UNROLL(4)
    for (int c = 0; c < C; ++c) sum[r][c] = hn::Load(d, out + r * block.out_stride + c * N);
  }
  const T* const weights = block.weights + row * block.weights_stride;
  const std::int64_t stride = block.weights_stride, rest = block.columns - column;
  LinesAhead<S> ahead(block.ahead, row == 0 ? block.ahead_rows : 0, block.columns,
                      column * static_cast<std::int64_t>(sizeof(S)) * block.keys / 64);
  for (std::int64_t j = 0; j < block.keys; ++j) {
    const S* const values = static_cast<const S*>(block.v.data) + block.v.at[j] + column;
    Vector<T> x[C];
    if (HWY_LIKELY(rest >= C * N)) {
      HWY_UNROLL(4)
      for (int c = 0; c < C; ++c) x[c] = load_as(d, values + c * N);
    } else {
      HWY_ALIGN S tail[C * N] = {};
      std::copy_n(values, rest, tail);
      HWY_UNROLL(4)
      for (int c = 0; c < C; ++c) x[c] = load_as(d, tail + c * N);
    }
    ahead.template fetch<C * N * sizeof(S)>(j);
    HWY_UNROLL(8)
    for (int r = 0; r < R; ++r) {
      const auto weight = hn::Set(d, weights[r * stride + j]);
      HWY_UNROLL(4)
      for (int c = 0; c < C; ++c) sum[r][c] = hn::MulAdd(weight, x[c], sum[r][c]);
    }
  }
  HWY_UNROLL(8)
  for (int r = 0; r < R; ++r) {
    HWY_UNROLL(4)
    for (int c = 0; c < C; ++c) hn::Store(sum[r][c], d, out + r * block.out_stride + c * N);
  }
}

template <class T>
void values(const DecodeValues<T>& block) noexcept {
  const FlushDenormals mode;
  constexpr std::int64_t N = kLanes<T>;
  with_stored_type<T>(block.v, [&]<class S>(std::type_identity<S>) HWY_ATTR {
    for (std::int64_t column = 0; column < block.columns;) {
      const bool wide = block.columns - column >= kMostColumns * N;
      each_rows(block.rows, [&](auto count, std::int64_t row) HWY_ATTR {
        constexpr int R = decltype(count)::value;
        if (wide) {
          constexpr int C = beside(R);
          for (int c = 0; c < kMostColumns; c += C) {
            value_tile<T, S, R, C>(block, row, column + c * N);
          }
        } else {
          value_tile<T, S, R, 1>(block, row, column);
        }
      });
      column += wide ? kMostColumns * N : N;
    }
  });
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
