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
#include "flush_denormals.h"
#include "half-inl.h"
#include "lines_ahead-inl.h"

HWY_BEFORE_NAMESPACE();
namespace einkern::kernel::HWY_NAMESPACE {
namespace {

template <class T>
using Tag = hn::ScalableTag<T>;
template <class T>
using Vector = hn::Vec<Tag<T>>;
template <class T>
inline constexpr std::int64_t kLanes = hn::MaxLanes(Tag<T>());

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

/// Elements of a row that lie side by side in a vector of several rows: one block of 128 bits,
/// which keys are broadcast in as they lie.
#if HWY_TARGET == HWY_SCALAR
template <class T>
constexpr std::int64_t kElements = 1;
#else
template <class T>
constexpr std::int64_t kElements = 16 / sizeof(T);
#endif
template <class T>
constexpr std::int64_t kRowsOfVector = kLanes<T> / kElements<T>;

// As few rows as fill one vector take two of half as many instead, since a load for every product
// is one too many: 43 cycles a key instead of 51, 52 instead of 61 where keys are widened (d =
// 128).
#if HWY_TARGET == HWY_AVX3
constexpr bool kSplitFew = true;
#else
constexpr bool kSplitFew = false;
#endif

/// Lane `e` of block `g`: the sum of block `g` of x[e].
template <class T>
HWY_INLINE Vector<T> sums_of_blocks(const Vector<T>* x) {
  const Tag<T> d;
#if HWY_TARGET == HWY_SCALAR
  static_cast<void>(d);
  return x[0];
#else
  const auto pair = [d](Vector<T> a, Vector<T> b) HWY_ATTR {
    return hn::Add(hn::InterleaveLower(d, a, b), hn::InterleaveUpper(d, a, b));
  };
  if constexpr (sizeof(T) == 8) {
    return pair(x[0], x[1]);
  } else {
    const hn::Repartition<double, Tag<T>> wide;
    const auto ab = hn::BitCast(wide, pair(x[0], x[1])), cd = hn::BitCast(wide, pair(x[2], x[3]));
    const auto low = hn::BitCast(d, hn::InterleaveLower(wide, ab, cd));
    const auto high = hn::BitCast(d, hn::InterleaveUpper(wide, ab, cd));
    return hn::Add(low, high);
  }
#endif
}

/// A block of keys in all blocks of a vector; twice as wide a one where rows are split.
template <class T, bool kSplit>
HWY_INLINE Vector<T> load_broadcast(const T* from) {
  const Tag<T> d;
#if HWY_TARGET == HWY_AVX3
  if constexpr (kSplit) {
    if constexpr (sizeof(T) == 4) {
      return Vector<T>{_mm512_broadcast_f32x8(_mm256_loadu_ps(from))};
    } else {
      return Vector<T>{_mm512_broadcast_f64x4(_mm256_loadu_pd(from))};
    }
  }
#endif
  return hn::LoadDup128(d, from);
}

/// The sums of pairs of blocks: of a in the lower half, of b in the upper one.
template <class T>
HWY_INLINE Vector<T> sums_of_pairs(Vector<T> a, Vector<T> b) {
#if HWY_TARGET == HWY_AVX3
  constexpr int kEven = 0x88, kOdd = 0xdd;
  if constexpr (sizeof(T) == 4) {
    return hn::Add(Vector<T>{_mm512_shuffle_f32x4(a.raw, b.raw, kEven)},
                   Vector<T>{_mm512_shuffle_f32x4(a.raw, b.raw, kOdd)});
  } else {
    return hn::Add(Vector<T>{_mm512_shuffle_f64x2(a.raw, b.raw, kEven)},
                   Vector<T>{_mm512_shuffle_f64x2(a.raw, b.raw, kOdd)});
  }
#else
  return hn::Add(a, b);
#endif
}

/// out[e][g] = lane `e` of block `g`, with rows `stride` apart.
template <class T>
HWY_INLINE void store_transposed(Vector<T> x, T* out, std::int64_t stride) {
  const Tag<T> d;
  constexpr std::int64_t kG = kRowsOfVector<T>, kE = kElements<T>;
  HWY_ALIGN T lanes[kG * kE];
#if HWY_TARGET != HWY_SCALAR
  using Index = hn::TFromD<hn::RebindToSigned<Tag<T>>>;
  HWY_ALIGN static constexpr auto kFrom = [] {
    std::array<Index, kG * kE> from{};
    for (std::int64_t i = 0; i < kG * kE; ++i) {
      from[static_cast<std::size_t>(i)] = static_cast<Index>(i % kG * kE + i / kG);
    }
    return from;
  }();
  if constexpr (kG > 1) x = hn::TableLookupLanes(x, hn::SetTableIndices(d, kFrom.data()));
#endif
  hn::Store(x, d, lanes);
  HWY_UNROLL(4)
  for (std::int64_t e = 0; e < kE; ++e) {
    std::memcpy(out + e * stride, lanes + e * kG, sizeof(T) * static_cast<std::size_t>(kG));
  }
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

/// Keys of another type are widened in L1, by as many elements as there are steps for: while one
/// chunk is multiplied the next one is widened, a key a step.
template <class T>
struct WidenedKeys {
  static constexpr std::int64_t kChunk = kKeys * kElements<T>;
  HWY_ALIGN T chunks[2][kKeys][kChunk];
  int at = 0;  // the chunk that has been widened

  template <class S>
  HWY_INLINE void widen_next(const S* from, int key) {
    const hn::CappedTag<T, kChunk> d;
    HWY_UNROLL(4)
    for (std::int64_t c = 0; c < kChunk; c += static_cast<std::int64_t>(hn::MaxLanes(d))) {
      hn::Store(load_as(d, from + c), d, chunks[1 - at][key] + c);
    }
  }
};

/// Scores of V vectors of rows with kKeys keys, which may be the same. `next` are the keys of the
/// next tile. Split: the rows of one vector in V.
template <class T, class S, int V, bool kSplit>
HWY_NOINLINE void score_tile(const DecodeScores<T>& block, std::int64_t row, std::int64_t key,
                             std::int64_t next, LinesAhead<S>& ahead, WidenedKeys<T>& widened) {
  const Tag<T> d;
  constexpr std::int64_t N = kLanes<T>, E = kElements<T> * (kSplit ? V : 1),
                         kChunk = WidenedKeys<T>::kChunk;
  const auto row_of = [&](std::int64_t j) HWY_ATTR {
    return static_cast<const S*>(block.k.data) + block.k.at[HWY_MIN(j, block.keys - 1)];
  };
  const S* keys[kKeys];
  HWY_UNROLL(8)
  for (int j = 0; j < kKeys; ++j) keys[j] = row_of(key + j);
  Vector<T> sum[V][kKeys];
  HWY_UNROLL(2)
  for (int v = 0; v < V; ++v) {
    HWY_UNROLL(8)
    for (int j = 0; j < kKeys; ++j) sum[v][j] = hn::Zero(d);
  }
  const T* q = block.q + row * E;
  const std::int64_t q_step = block.rows * E;
  const auto add = [&](const auto& key_at) HWY_ATTR {
    Vector<T> query[V];
    HWY_UNROLL(2)
    for (int v = 0; v < V; ++v) query[v] = hn::Load(d, q + v * N);
    q += q_step;
    HWY_UNROLL(8)
    for (int j = 0; j < kKeys; ++j) {
      const auto x = load_broadcast<T, kSplit>(key_at(j));
      HWY_UNROLL(2)
      for (int v = 0; v < V; ++v) sum[v][j] = hn::MulAdd(query[v], x, sum[v][j]);
    }
  };
  constexpr std::int64_t kBytes = kKeys * E * sizeof(S);
  std::int64_t i = 0;
  if constexpr (std::is_same_v<S, T>) {
    for (; i + E <= block.inner; i += E) {
      if (row == 0) ahead.template fetch<kBytes>(i / E);
      add([&](int j) HWY_ATTR { return keys[j] + i; });
    }
  } else {
    const std::int64_t whole = block.inner / kChunk * kChunk;
    for (; i < whole; i += kChunk) {
      const bool last = i + kChunk == whole;
      const T(*const chunk)[kChunk] = widened.chunks[widened.at];
      HWY_UNROLL(8)
      for (int step = 0; step < kChunk / E; ++step) {
        if (row == 0) ahead.template fetch<kBytes>(step);
        constexpr int kAtOnce = static_cast<int>(kKeys * E / kChunk);
        HWY_UNROLL(2)
        for (int j = step * kAtOnce; j < (step + 1) * kAtOnce; ++j) {
          widened.widen_next(last ? row_of(next + j) : keys[j] + i + kChunk, j);
        }
        add([&](int j) HWY_ATTR { return chunk[j] + step * E; });
      }
      widened.at = 1 - widened.at;
    }
  }
  if (i < block.inner) {
    const std::int64_t left = block.inner - i;
    HWY_ALIGN T rest[kKeys][kChunk];
    for (int j = 0; j < kKeys; ++j) {
      for (std::int64_t c = 0; c < (left + E - 1) / E * E; ++c) {
        rest[j][c] = c < left ? static_cast<T>(widen(keys[j][i + c])) : T{0};
      }
    }
    for (std::int64_t c = 0; c < left; c += E) {
      if (row == 0) ahead.template fetch<kBytes>(c / E);
      add([&](int j) HWY_ATTR { return rest[j] + c; });
    }
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

template <class T, class S, int V, bool kSplit = false>
void score_tiles(const DecodeScores<T>& block) {
  constexpr std::int64_t kRows = (kSplit ? 1 : V) * kRowsOfVector<T>;
  LinesAhead<S> ahead(block.ahead, block.ahead_rows, block.inner, 0);
  WidenedKeys<T> widened;
  if constexpr (!std::is_same_v<S, T>) {
    if (block.inner >= WidenedKeys<T>::kChunk) {
      for (std::int64_t j = 0; j < HWY_MIN(block.keys, kKeys); ++j) {
        widened.widen_next(static_cast<const S*>(block.k.data) + block.k.at[j],
                           static_cast<int>(j));
      }
      widened.at = 1;
    }
  }
  for (std::int64_t key = 0; key < block.keys; key += kKeys) {
    for (std::int64_t row = 0; row < block.rows; row += kRows) {
      const std::int64_t next = row + kRows < block.rows ? key : key + kKeys;
      score_tile<T, S, V, kSplit>(block, row, key, next, ahead, widened);
    }
  }
}

template <class T>
void scores(const DecodeScores<T>& block) noexcept {
  const FlushDenormals mode;
  with_stored_type<T>(block.k, [&]<class S>(std::type_identity<S>) HWY_ATTR {
    if (block.rows == kRowsOfVector<T>) {
      score_tiles<T, S, kSplitFew ? kVectors : 1, kSplitFew>(block);
    } else {
      score_tiles<T, S, kVectors>(block);
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
    ahead.template fetch<C * N * sizeof(S)>(j);
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
  with_stored_type<T>(block.v, [&]<class S>(std::type_identity<S>)
                                   HWY_ATTR { value_rows<T, S, kMostRows>(block); });
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
