// SPDX-License-Identifier: Apache-2.0
// Scores and weighted values of few rows, elements of keys and values in lanes.
#include "attend_decode.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "attend_decode.cpp"
#include <hwy/foreach_target.h>  // IWYU pragma: keep
#include <hwy/highway.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <limits>

#include "attend-inl.h"
#include "decode_keys-inl.h"
#include "flush_denormals.h"
#include "half-inl.h"
#include "lines_ahead-inl.h"

HWY_BEFORE_NAMESPACE();
namespace einkern::kernel::HWY_NAMESPACE {
namespace {

// Accumulators of a tile of scores: kVectors of rows for each of kKeys; of one of values: rows by
// vectors of columns. 16 on 32 registers, 8 on 16.
#if HWY_TARGET == HWY_AVX3
constexpr int kKeys = 8, kMostRows = 8;
#else
constexpr int kKeys = 4, kMostRows = 2;
#endif
constexpr int kVectors = 2;
static_assert(kDecodeKeys % kKeys == 0);
constexpr int kMostColumns = 4;  // vectors
constexpr int columns_beside(int rows) { return rows > 4 ? 2 : 4; }

// As few rows as fill one vector take two of half as many instead, since a load for every product
// is one too many: 43 cycles a key instead of 51 (d = 128).
#if HWY_TARGET == HWY_AVX3
constexpr bool kSplitFew = true;
#else
constexpr bool kSplitFew = false;
#endif

/// Calls f with the type of stored rows.
template <class T, class F>
HWY_INLINE void with_stored_type(const StoredRows& rows, const F& f) {
  if constexpr (std::is_same_v<T, float>) {
    if (rows.dtype == DType::f16) return f(std::type_identity<Float16>());
    if (rows.dtype == DType::bf16) return f(std::type_identity<BFloat16>());
  }
  f(std::type_identity<T>());
}

/// Do rows of `elements` lie one behind the other? A core's own prefetchers follow such a stream if
/// it is read as it lies, with few instructions a line: they ask for more lines at once than
/// prefetches by hand can (19 GB/s on a core of an EPYC 9004 that reads 34).
inline bool one_stream(const StoredRows& rows, std::int64_t count, std::int64_t elements) {
  std::int64_t gaps = 0;
  for (std::int64_t j = 1; j < count; ++j) gaps |= rows.at[j] - rows.at[j - 1] - elements;
  return count > 0 && gaps == 0;
}

/// Scores of V vectors of rows with kKeys keys, which may be the same. Split: the rows of one
/// vector in V. In order: key after key, as they lie, else the same elements of all keys.
template <class T, class S, int V, bool kSplit, bool kInOrder>
HWY_NOINLINE void score_tile(const DecodeScores<T>& block, std::int64_t row, std::int64_t key,
                             LinesAhead<S>& ahead) {
  const Tag<T> d;
  constexpr std::int64_t N = kLanes<T>, E = kElements<T> * (kSplit ? V : 1),
                         kStep = kParts<S, E> * E;
  const S* keys[kKeys];
  HWY_UNROLL(8)
  for (int j = 0; j < kKeys; ++j) {
    keys[j] = static_cast<const S*>(block.k.data) + block.k.at[HWY_MIN(key + j, block.keys - 1)];
  }
  Vector<T> sum[V][kKeys];
  HWY_UNROLL(2)
  for (int v = 0; v < V; ++v) {
    HWY_UNROLL(8)
    for (int j = 0; j < kKeys; ++j) sum[v][j] = hn::Zero(d);
  }
  const T* const queries = block.q + row * E;
  const std::int64_t rows = kInOrder ? kRowsOfVector<T> : block.rows;
  // A block of elements, from `i` on, of kCount keys from kFirst on.
  const auto add_part = [&]<int kFirst, int kCount, int kPart>(std::int64_t i, const auto& key_at)
      HWY_ATTR __attribute__((always_inline)) {
    const T* const q = queries + (i + kPart * E) * rows;
    Vector<T> query[V];
    HWY_UNROLL(2)
    for (int v = 0; v < V; ++v) query[v] = hn::Load(d, q + v * N);
    HWY_UNROLL(8)
    for (int j = kFirst; j < kFirst + kCount; ++j) {
      const auto x = load_keys<T, kSplit, kPart>(key_at(j));
      HWY_UNROLL(2)
      for (int v = 0; v < V; ++v) sum[v][j] = hn::MulAdd(query[v], x, sum[v][j]);
    }
  };
  const auto add_keys = [&]<int kFirst, int kCount>() HWY_ATTR __attribute__((always_inline)) {
    const auto add = [&](std::int64_t i, std::int64_t count, const auto& key_at) HWY_ATTR
        __attribute__((always_inline)) {
      if constexpr (!kInOrder) {
        if (row == 0) ahead.template fetch_step<kKeys * kStep * sizeof(S)>(i / kStep);
      }
      add_part.template operator()<kFirst, kCount, 0>(i, key_at);
      if constexpr (kParts<S, E> == 2) {
        if (count > E) add_part.template operator()<kFirst, kCount, 1>(i, key_at);
      }
    };
    std::int64_t i = 0;
    if constexpr (kInOrder) {
      // The fewer instructions a line takes, the more lines a core has in flight.
      for (; i + 8 * kStep <= block.inner; i += 8 * kStep) {
        HWY_UNROLL(8)
        for (int s = 0; s < 8; ++s) {
          add(i + s * kStep, kStep, [&](int j) HWY_ATTR { return keys[j] + i + s * kStep; });
        }
      }
    }
    for (; i + kStep <= block.inner; i += kStep) {
      add(i, kStep, [&](int j) HWY_ATTR { return keys[j] + i; });
    }
    if (i < block.inner) {
      const std::int64_t left = block.inner - i;
      HWY_ALIGN S rest[kKeys][kStep] = {};
      for (int j = kFirst; j < kFirst + kCount; ++j) std::copy_n(keys[j] + i, left, rest[j]);
      add(i, left, [&](int j) HWY_ATTR { return rest[j]; });
    }
  };
  if constexpr (kInOrder) {
    [&]<int... j>(std::integer_sequence<int, j...>) HWY_ATTR {
      (add_keys.template operator()<j, 1>(), ...);
    }
    (std::make_integer_sequence<int, kKeys>());
  } else {
    add_keys.template operator()<0, kKeys>();
  }
  const auto store = [&](const Vector<T>* sums, std::int64_t at) HWY_ATTR {
    constexpr int kTogether = static_cast<int>(kElements<T>);
    HWY_UNROLL(8)
    for (int j = 0; j < kKeys; j += kTogether) {
      store_transposed<T>(sums_of_blocks<T>(sums + j), block.out + (key + j) * block.rows + at,
                          block.rows);
    }
  };
  if constexpr (kSplit) {
    Vector<T> sums[kKeys];
    HWY_UNROLL(8)
    for (int j = 0; j < kKeys; ++j) sums[j] = sums_of_pairs<T>(sum[0][j], sum[1][j]);
    store(sums, row);
  } else {
    HWY_UNROLL(2)
    for (int v = 0; v < V; ++v) store(sum[v], row + v * kRowsOfVector<T>);
  }
}

template <class T, class S, int V, bool kSplit, bool kInOrder>
void score_tiles(const DecodeScores<T>& block) {
  constexpr std::int64_t kRows = (kSplit ? 1 : V) * kRowsOfVector<T>;
  LinesAhead<S> ahead(block.ahead, kInOrder ? 0 : block.ahead_rows, block.inner, 0);
  for (std::int64_t key = 0; key < block.keys; key += kKeys) {
    for (std::int64_t row = 0; row < block.rows; row += kRows) {
      score_tile<T, S, V, kSplit, kInOrder>(block, row, key, ahead);
    }
  }
}

template <class T>
void scores(const DecodeScores<T>& block) noexcept {
  const FlushDenormals mode;
  with_stored_type<T>(block.k, [&]<class S>(std::type_identity<S>) HWY_ATTR {
    if (block.rows == kRowsOfVector<T>) {
      constexpr int V = kSplitFew ? kVectors : 1;
      if constexpr (std::is_same_v<S, T>) {
        if (one_stream(block.k, block.keys, block.inner)) {
          return score_tiles<T, S, V, kSplitFew, true>(block);
        }
      }
      score_tiles<T, S, V, kSplitFew, false>(block);
    } else {
      score_tiles<T, S, kVectors, false, false>(block);
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
  const T* weights = block.weights + row;
  const std::int64_t stride = block.rows, rest = block.columns - column;
  LinesAhead<S> ahead(block.ahead, row == 0 ? block.ahead_rows : 0, block.columns,
                      column * static_cast<std::int64_t>(sizeof(S)) * block.keys / 64);
  for (std::int64_t j = 0; j < block.keys; ++j, weights += stride) {
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
    ahead.template fetch_step<C * N * sizeof(S)>(j);
    HWY_UNROLL(8)
    for (int r = 0; r < R; ++r) {
      const auto weight = hn::Set(d, weights[r]);
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

#if HWY_TARGET == HWY_AVX3
/// As value_tile, for all C vectors of columns of all R rows, of values in one stream. Sums take
/// all registers but one (one sum is spilt), since multiply-adds broadcast the weights out of
/// memory.
template <class T, int R, int C>
HWY_NOINLINE void value_stream(const DecodeValues<T>& block) {
  static_assert(R * C <= 32);
  const Tag<T> d;
  constexpr std::int64_t N = kLanes<T>;
  Vector<T> sum[R][C];
  HWY_UNROLL(8)
  for (int r = 0; r < R; ++r) {
    HWY_UNROLL(8)
    for (int c = 0; c < C; ++c) sum[r][c] = hn::Load(d, block.out + r * block.out_stride + c * N);
  }
  const T *weights = block.weights, *values = static_cast<const T*>(block.v.data) + block.v.at[0];
  for (std::int64_t j = 0; j < block.keys; ++j, weights += R, values += C * N) {
    HWY_UNROLL(8)
    for (int c = 0; c < C; ++c) {
      const auto x = hn::LoadU(d, values + c * N);
      asm volatile("" : "+r"(weights));  // or the compiler would keep them in registers
      HWY_UNROLL(8)
      for (int r = 0; r < R; ++r) sum[r][c] = hn::MulAdd(hn::Set(d, weights[r]), x, sum[r][c]);
    }
  }
  HWY_UNROLL(8)
  for (int r = 0; r < R; ++r) {
    HWY_UNROLL(8)
    for (int c = 0; c < C; ++c) hn::Store(sum[r][c], d, block.out + r * block.out_stride + c * N);
  }
}

/// Adds values in one stream whose rows one tile takes whole; else says no.
template <class T>
bool add_stream(const DecodeValues<T>& block) {
  constexpr int R = 4;
  constexpr std::int64_t N = kLanes<T>;
  if (block.rows != R || !one_stream(block.v, block.keys, block.columns)) return false;
  if (block.columns == 8 * N) return value_stream<T, R, 8>(block), true;
  if (block.columns == 4 * N) return value_stream<T, R, 4>(block), true;
  return false;
}
#else
template <class T>
bool add_stream(const DecodeValues<T>&) {
  return false;  // too few registers
}
#endif

/// The largest tile of R rows, a power of two, or fewer that divides the rows.
template <class T, class S, int R>
void value_rows(const DecodeValues<T>& block) {
  if constexpr (R > 1) {
    if (block.rows < R) return value_rows<T, S, R / 2>(block);
  }
  constexpr std::int64_t N = kLanes<T>;
  constexpr int C = columns_beside(R);
  std::int64_t column = 0;
  for (; block.columns - column >= kMostColumns * N; column += kMostColumns * N) {
    for (std::int64_t row = 0; row < block.rows; row += R) {
      for (int c = 0; c < kMostColumns; c += C) {
        value_tile<T, S, R, C>(block, row, column + c * N);
      }
    }
  }
  for (; column < block.columns; column += N) {
    for (std::int64_t row = 0; row < block.rows; row += R) {
      value_tile<T, S, R, 1>(block, row, column);
    }
  }
}

template <class T>
void values(const DecodeValues<T>& block) noexcept {
  const FlushDenormals mode;
  with_stored_type<T>(block.v, [&]<class S>(std::type_identity<S>) HWY_ATTR {
    // Narrower ones take more instructions a line: 1.15 to 1.25 of the time.
    if (std::is_same_v<S, T> && add_stream(block)) return;
    value_rows<T, S, kMostRows>(block);
  });
}

/// Calls f(first, step) for each vector of lanes that belong to the same rows: n elements of
/// [position][rows], of which the vectors at first, first + step ...
template <class T, class F>
HWY_INLINE void each_vector_of_rows(std::int64_t rows, const F& f) {
  const std::int64_t step = HWY_MAX(rows, kLanes<T>);
  for (std::int64_t first = 0; first < step; first += kLanes<T>) f(first, step);
}

template <class T>
void largest(const T* scores, std::int64_t n, std::int64_t rows, T* largest) noexcept {
  const Tag<T> d;
  each_vector_of_rows<T>(rows, [&](std::int64_t first, std::int64_t step) HWY_ATTR {
    auto most = hn::Set(d, -std::numeric_limits<T>::infinity());
    for (std::int64_t i = first; i < n; i += step) {
      const auto x = hn::Load(d, scores + i);
      most = hn::IfThenElse(hn::Gt(x, most), x, most);
    }
    HWY_ALIGN T lanes[kLanes<T>];
    hn::Store(most, d, lanes);
    for (std::int64_t r = 0; r < HWY_MIN(rows, kLanes<T>); ++r) {
      T all = lanes[r];
      for (std::int64_t i = r + rows; i < kLanes<T>; i += rows) all = HWY_MAX(all, lanes[i]);
      largest[first + r] = all;
    }
  });
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
void weigh(T* scores, std::int64_t n, std::int64_t rows, const T* reference, T* sums) noexcept {
  const FlushDenormals mode;
  const Tag<T> d;
  each_vector_of_rows<T>(rows, [&](std::int64_t first, std::int64_t step) HWY_ATTR {
    HWY_ALIGN T lanes[kLanes<T>];
    for (std::int64_t i = 0; i < kLanes<T>; ++i) lanes[i] = reference[first + i % rows];
    const auto least = hn::Load(d, lanes);
    auto sum = hn::Zero(d);
    for (std::int64_t i = first; i < n; i += step) {
      const auto weight = exp2_score(d, hn::Sub(hn::Load(d, scores + i), least));
      sum = hn::Add(sum, weight);
      hn::Store(weight, d, scores + i);
    }
    hn::Store(sum, d, lanes);
    for (std::int64_t r = 0; r < HWY_MIN(rows, kLanes<T>); ++r) {
      T all = lanes[r];
      for (std::int64_t i = r + rows; i < kLanes<T>; i += rows) all += lanes[i];
      sums[first + r] = all;
    }
  });
}

template <class T>
void set(DecodeFunctions<T>& functions) {
  functions = {.vector_rows = kRowsOfVector<T>,
               .together_of_few = kElements<T> * (kSplitFew ? kVectors : 1),
               .together_of_more = kElements<T>,
               .scores = scores<T>,
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
