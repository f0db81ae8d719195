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
// is one too many: 43 cycles a key instead of 51 (d = 128).
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

// A byte shuffle within blocks of 128 bits widens bf16 and puts elements where those of f32 lie.
// With AVX-512 on Zen 4 it waits for the multiply-adds' ports: 54 cycles a key of 128 for four
// rows, where a conversion and a shift take 43.
constexpr bool kShufflesBytes = HWY_TARGET != HWY_AVX3 && HWY_TARGET != HWY_SCALAR;

/// Parts of E elements each that one load has.
template <class S, std::int64_t E>
constexpr int kParts = std::is_same_v<S, BFloat16>&& kShufflesBytes ? 8 / E : 1;

/// Elements of part `kPart` of the keys at `from`, as load_broadcast has them: bits are those of
/// f32 copies.
template <class T, bool kSplit, int kPart, class S>
HWY_INLINE Vector<T> load_keys(const S* from) {
  const Tag<T> d;
  if constexpr (std::is_same_v<S, T>) {
    return load_broadcast<T, kSplit>(from);
#if HWY_TARGET != HWY_SCALAR
  } else if constexpr (std::is_same_v<S, BFloat16> && kShufflesBytes) {
    const hn::Repartition<std::uint8_t, Tag<T>> bytes;
    HWY_ALIGN static constexpr auto kFrom = [] {
      std::array<std::uint8_t, sizeof(T) * kLanes<T>> places{};
      for (std::size_t i = 0; i < places.size(); ++i) {
        const std::size_t element = i / sizeof(T) % 4 + 4 * kPart, byte = i % sizeof(T);
        places[i] = static_cast<std::uint8_t>(byte < 2 ? 0x80 : 2 * element + byte - 2);
      }
      return places;
    }();
    const auto all = hn::LoadDup128(bytes, reinterpret_cast<const std::uint8_t*>(from));
    return hn::BitCast(d, hn::TableLookupBytesOr0(all, hn::Load(bytes, kFrom.data())));
  } else {
    const hn::Rebind<std::uint16_t, Tag<T>> words;
    if constexpr (kSplit) return widened<S>(d, hn::LoadDup128(words, words_of(from)));
    const hn::Repartition<std::uint64_t, decltype(words)> blocks;
    std::uint64_t block = 0;
    std::memcpy(&block, from, sizeof(block));
    return widened<S>(d, hn::BitCast(words, hn::Set(blocks, block)));
#else
  } else {
    return load_as(d, from);
#endif
  }
}

/// Scores of V vectors of rows with kKeys keys, which may be the same. Split: the rows of one
/// vector in V.
template <class T, class S, int V, bool kSplit>
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
  const T* q = block.q + row * E;
  const std::int64_t q_step = block.rows * E;
  const auto add_part = [&]<int kPart>(const auto& key_at) HWY_ATTR {
    Vector<T> query[V];
    HWY_UNROLL(2)
    for (int v = 0; v < V; ++v) query[v] = hn::Load(d, q + v * N);
    q += q_step;
    HWY_UNROLL(8)
    for (int j = 0; j < kKeys; ++j) {
      const auto x = load_keys<T, kSplit, kPart>(key_at(j));
      HWY_UNROLL(2)
      for (int v = 0; v < V; ++v) sum[v][j] = hn::MulAdd(query[v], x, sum[v][j]);
    }
  };
  const auto add = [&](std::int64_t i, std::int64_t count, const auto& key_at) HWY_ATTR {
    if (row == 0) ahead.template fetch<kKeys * kStep * sizeof(S)>(i / kStep);
    add_part.template operator()<0>(key_at);
    if constexpr (kParts<S, E> == 2) {
      if (count > E) add_part.template operator()<1>(key_at);
    }
  };
  std::int64_t i = 0;
  for (; i + kStep <= block.inner; i += kStep) {
    add(i, kStep, [&](int j) HWY_ATTR { return keys[j] + i; });
  }
  if (i < block.inner) {
    const std::int64_t left = block.inner - i;
    HWY_ALIGN S rest[kKeys][kStep] = {};
    for (int j = 0; j < kKeys; ++j) std::copy_n(keys[j] + i, left, rest[j]);
    add(i, left, [&](int j) HWY_ATTR { return rest[j]; });
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
  for (std::int64_t key = 0; key < block.keys; key += kKeys) {
    for (std::int64_t row = 0; row < block.rows; row += kRows) {
      score_tile<T, S, V, kSplit>(block, row, key, ahead);
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
