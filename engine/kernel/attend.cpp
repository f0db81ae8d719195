// SPDX-License-Identifier: Apache-2.0
// Register tiles of scores and of weighted values, rows in lanes.
#include "attend.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "attend.cpp"
#include <hwy/foreach_target.h>  // IWYU pragma: keep
#include <hwy/highway.h>

#include <array>
#include <limits>
#include <utility>

#include "attend-inl.h"
#include "flush_denormals.h"

HWY_BEFORE_NAMESPACE();
namespace einkern::kernel::HWY_NAMESPACE {
namespace {

// Height of a tile (keys or columns) by its width in vectors: as many accumulators as leave
// registers for the vectors of q, a broadcast and the exponential.
#if HWY_TARGET == HWY_AVX3
inline constexpr int kMostVectors = 4;
inline constexpr int kHeights[kMostVectors] = {12, 11, 8, 6};
#else
inline constexpr int kMostVectors = 2;
inline constexpr int kHeights[kMostVectors] = {8, 6};
#endif
inline constexpr int kTallest = 12;

template <class T>
using Tag = hn::ScalableTag<T>;
template <class T>
inline constexpr std::int64_t kLanes = hn::MaxLanes(Tag<T>());
/// Rows of a tile: from one position to the next.
template <class T>
inline constexpr std::int64_t kWidth = kMostVectors* kLanes<T>;

/// Elements of a cache line.
template <class T>
inline constexpr std::int64_t kLine = 64 / static_cast<std::int64_t>(sizeof(T));

/// Asks a line into L2. L1 is full of weights.
HWY_INLINE void fetch(const void* line) {
  constexpr int kRead = 0, kSecondLevel = 2;
  __builtin_prefetch(line, kRead, kSecondLevel);
}

/// x log2(e) - reference for any score. Rounded once where the scores decide; the product rounds
/// first where it is so large that its rest would, and never to infinity: a row of lowest() is
/// uniform.
template <class D>
HWY_INLINE hn::Vec<D> rebase(D d, hn::Vec<D> x, hn::Vec<D> log2_e, hn::Vec<D> minus_reference) {
  using T = hn::TFromD<D>;
  constexpr T kMost = std::numeric_limits<T>::max() / 2;
  const auto size = hn::Abs(x);
  const auto bounded = hn::Min(hn::Max(x, hn::Set(d, -kMost)), hn::Set(d, kMost));
  const auto number = hn::Lt(size, hn::Set(d, std::numeric_limits<T>::infinity()));
  const auto product = hn::Mul(hn::IfThenElse(number, bounded, x), log2_e);
  return hn::IfThenElse(hn::Lt(size, hn::Set(d, static_cast<T>(kMostBias))),
                        hn::MulAdd(x, log2_e, minus_reference), hn::Add(product, minus_reference));
}

template <class T, int H, int V>
HWY_NOINLINE void score_tile(const ScoreBlock<T>& block, std::int64_t first) {
  const Tag<T> d;
  using Vector = hn::Vec<Tag<T>>;
  constexpr std::int64_t N = kLanes<T>;
  const T* rows[H];
  HWY_UNROLL(16)
  for (int j = 0; j < H; ++j) rows[j] = block.k + block.k_at[first + j];

  Vector sum[H][V];
  HWY_UNROLL(4)
  for (int v = 0; v < V; ++v) {
    const Vector start =
        block.reference == nullptr ? hn::Zero(d) : hn::Neg(hn::Load(d, block.reference + v * N));
    HWY_UNROLL(16)
    for (int j = 0; j < H; ++j) sum[j][v] = start;
  }
  if (block.bias != nullptr) {
    const auto log2_e = hn::Set(d, static_cast<T>(0x1.71547652b82fep+0));
    const T* bias = block.bias + first * block.bias_step;
    HWY_UNROLL(16)
    for (int j = 0; j < H; ++j) {
      HWY_UNROLL(4)
      for (int v = 0; v < V; ++v) {
        const auto x = hn::LoadU(d, bias + j * block.bias_step + v * N);
        sum[j][v] =
            block.inner == 0 ? rebase(d, x, log2_e, sum[j][v]) : hn::MulAdd(x, log2_e, sum[j][v]);
      }
    }
  }
  const T* q = block.q;
  const std::int64_t inner = block.inner;
  const Ahead<T>& ahead = block.ahead;
  const bool fetches = first + H <= ahead.rows;
  for (std::int64_t i = 0; i < inner;) {
    if (fetches && i < ahead.elements) {
      HWY_UNROLL(16)
      for (int j = 0; j < H; ++j) fetch(ahead.data + ahead.at[first + j] + i);
    }
    const std::int64_t end = HWY_MIN(i + kLine<T>, inner);
    HWY_UNROLL(4)
    for (; i < end; ++i, q += kWidth<T>) {
      Vector columns[V];
      HWY_UNROLL(4)
      for (int v = 0; v < V; ++v) columns[v] = hn::Load(d, q + v * N);
      HWY_UNROLL(16)
      for (int j = 0; j < H; ++j) {
        const Vector key = hn::Set(d, rows[j][i]);
        HWY_UNROLL(4)
        for (int v = 0; v < V; ++v) sum[j][v] = hn::MulAdd(key, columns[v], sum[j][v]);
      }
    }
  }

  T* out = block.out + first * kWidth<T>;
  if (block.reference == nullptr) {
    HWY_UNROLL(16)
    for (int j = 0; j < H; ++j) {
      HWY_UNROLL(4)
      for (int v = 0; v < V; ++v) hn::Store(sum[j][v], d, out + j * kWidth<T> + v * N);
    }
    return;
  }
  Vector total[V];
  HWY_UNROLL(4)
  for (int v = 0; v < V; ++v) total[v] = hn::Load(d, block.sums + v * N);
  HWY_UNROLL(16)
  for (int j = 0; j < H; ++j) {
    HWY_UNROLL(4)
    for (int v = 0; v < V; ++v) {
      const Vector weight = exp2_score(d, sum[j][v]);
      total[v] = hn::Add(total[v], weight);
      hn::Store(weight, d, out + j * kWidth<T> + v * N);
    }
  }
  HWY_UNROLL(4)
  for (int v = 0; v < V; ++v) hn::Store(total[v], d, block.sums + v * N);
}

template <class T, int H, int V>
HWY_NOINLINE void value_tile(const ValueBlock<T>& block, std::int64_t first) {
  const Tag<T> d;
  using Vector = hn::Vec<Tag<T>>;
  constexpr std::int64_t N = kLanes<T>;
  T* out = block.out + first * kWidth<T>;
  Vector sum[H][V];
  HWY_UNROLL(16)
  for (int c = 0; c < H; ++c) {
    HWY_UNROLL(4)
    for (int v = 0; v < V; ++v) {
      sum[c][v] = block.first ? hn::Zero(d) : hn::Load(d, out + c * kWidth<T> + v * N);
    }
  }
  const T* weights = block.weights;
  const T* const values = block.v + first;
  const std::int64_t* at = block.v_at;
  const std::int64_t keys = block.keys;
  // Every tile fetches one line of each row ahead; the first tiles are enough for all lines.
  const std::int64_t line = first / H * kLine<T>;
  const T* const ahead = block.ahead.data + line;
  const std::int64_t* const ahead_at = block.ahead.at;
  const std::int64_t ahead_rows = line < block.ahead.elements ? HWY_MIN(block.ahead.rows, keys) : 0;
  const auto step = [&](std::int64_t j) HWY_ATTR __attribute__((always_inline)) {
    const T* const row = values + at[j];
    Vector columns[V];
    HWY_UNROLL(4)
    for (int v = 0; v < V; ++v) columns[v] = hn::Load(d, weights + v * N);
    HWY_UNROLL(16)
    for (int c = 0; c < H; ++c) {
      const Vector value = hn::Set(d, row[c]);
      HWY_UNROLL(4)
      for (int v = 0; v < V; ++v) sum[c][v] = hn::MulAdd(value, columns[v], sum[c][v]);
    }
    weights += kWidth<T>;
  };
  std::int64_t j = 0;
  for (; j < ahead_rows; ++j) {
    fetch(ahead + ahead_at[j]);
    step(j);
  }
  HWY_UNROLL(2)
  for (; j < keys; ++j) step(j);
  HWY_UNROLL(16)
  for (int c = 0; c < H; ++c) {
    HWY_UNROLL(4)
    for (int v = 0; v < V; ++v) hn::Store(sum[c][v], d, out + c * kWidth<T> + v * N);
  }
}

template <class Block>
using TileFunction = void (*)(const Block&, std::int64_t first);
template <class Block>
using TilesOfWidth = std::array<TileFunction<Block>, kTallest>;  // by height - 1

template <class T, int V, int... H>
constexpr TilesOfWidth<ScoreBlock<T>> score_tiles(std::integer_sequence<int, H...>) {
  return {score_tile<T, H + 1, V>...};
}
template <class T, int V, int... H>
constexpr TilesOfWidth<ValueBlock<T>> value_tiles(std::integer_sequence<int, H...>) {
  return {value_tile<T, H + 1, V>...};
}

// By vectors - 1.
template <class T, int... V>
constexpr std::array<TilesOfWidth<ScoreBlock<T>>, kMostVectors> all_score_tiles(
    std::integer_sequence<int, V...>) {
  return {score_tiles<T, V + 1>(std::make_integer_sequence<int, kHeights[V]>())...};
}
template <class T, int... V>
constexpr std::array<TilesOfWidth<ValueBlock<T>>, kMostVectors> all_value_tiles(
    std::integer_sequence<int, V...>) {
  return {value_tiles<T, V + 1>(std::make_integer_sequence<int, kHeights[V]>())...};
}
using Widths = std::make_integer_sequence<int, kMostVectors>;
template <class T>
inline constexpr auto kScoreTiles = all_score_tiles<T>(Widths());
template <class T>
inline constexpr auto kValueTiles = all_value_tiles<T>(Widths());

/// Cuts `positions` into tiles of even heights.
template <class Block>
HWY_INLINE void run_tiles(const TilesOfWidth<Block>& tiles, const Block& block,
                          std::int64_t positions, std::int64_t vectors) {
  const std::int64_t height = kHeights[vectors - 1];
  const std::int64_t count = (positions + height - 1) / height;
  const std::int64_t least = count == 0 ? 0 : positions / count;
  std::int64_t taller = count == 0 ? 0 : positions % count;
  for (std::int64_t first = 0; first < positions; --taller) {
    const std::int64_t size = least + (taller > 0 ? 1 : 0);
    tiles[static_cast<std::size_t>(size - 1)](block, first);
    first += size;
  }
}

/// Takes `keys` dot products, from `first` on, to capped scores or their exponentials.
template <class T>
void cap_scores(const ScoreBlock<T>& block, std::int64_t first, std::int64_t keys,
                std::int64_t vectors) {
  const Tag<T> d;
  constexpr std::int64_t N = kLanes<T>;
  const auto log2_e = hn::Set(d, static_cast<T>(0x1.71547652b82fep+0));
  const auto cap = hn::Set(d, block.cap);
  const bool weighs = block.reference != nullptr;
  for (std::int64_t v = 0; v < vectors; ++v) {
    const auto start = weighs ? hn::Neg(hn::Load(d, block.reference + v * N)) : hn::Zero(d);
    auto total = weighs ? hn::Load(d, block.sums + v * N) : hn::Zero(d);
    for (std::int64_t j = first; j < first + keys; ++j) {
      T* const at = block.out + j * kWidth<T> + v * N;
      auto bias = start;
      if (block.bias != nullptr) {
        bias = hn::MulAdd(hn::LoadU(d, block.bias + j * block.bias_step + v * N), log2_e, start);
      }
      auto score = hn::MulAdd(tanh_score(d, hn::Load(d, at)), cap, bias);
      if (weighs) {
        score = exp2_score(d, score);
        total = hn::Add(total, score);
      }
      hn::Store(score, d, at);
    }
    if (weighs) hn::Store(total, d, block.sums + v * N);
  }
}

template <class T>
void capped_scores(const ScoreBlock<T>& block, std::int64_t vectors) {
  constexpr std::int64_t kChunk = 24;  // stays in L1 beside the queries
  for (std::int64_t first = 0; first < block.keys; first += kChunk) {
    ScoreBlock<T> dots = block;
    dots.k_at += first;
    dots.keys = HWY_MIN(kChunk, block.keys - first);
    dots.bias = nullptr;
    dots.reference = nullptr;
    dots.out += first * kWidth<T>;
    if (dots.ahead.at != nullptr) dots.ahead.at += first;
    dots.ahead.rows -= first;
    run_tiles(kScoreTiles<T>[static_cast<std::size_t>(vectors - 1)], dots, dots.keys, vectors);
    cap_scores(block, first, dots.keys, vectors);
  }
}

template <class T>
void scores(const ScoreBlock<T>& block, std::int64_t vectors) noexcept {
  const FlushDenormals mode;
  if (block.cap != 0) return capped_scores(block, vectors);
  run_tiles(kScoreTiles<T>[static_cast<std::size_t>(vectors - 1)], block, block.keys, vectors);
}

template <class T>
void values(const ValueBlock<T>& block, std::int64_t vectors) noexcept {
  const FlushDenormals mode;
  run_tiles(kValueTiles<T>[static_cast<std::size_t>(vectors - 1)], block, block.columns, vectors);
}

template <class T>
void weigh(T* scores, std::int64_t keys, const T* reference, T* sums,
           std::int64_t vectors) noexcept {
  const FlushDenormals mode;
  const Tag<T> d;
  constexpr std::int64_t N = kLanes<T>;
  for (std::int64_t v = 0; v < vectors; ++v) {
    const auto subtracted = hn::Load(d, reference + v * N);
    auto total = hn::Load(d, sums + v * N);
    for (std::int64_t j = 0; j < keys; ++j) {
      T* const at = scores + j * kWidth<T> + v * N;
      const auto weight = exp2_score(d, hn::Sub(hn::Load(d, at), subtracted));
      total = hn::Add(total, weight);
      hn::Store(weight, d, at);
    }
    hn::Store(total, d, sums + v * N);
  }
}

template <class T>
void largest(const T* scores, std::int64_t keys, std::int64_t vectors, T* most) noexcept {
  const Tag<T> d;
  constexpr std::int64_t N = kLanes<T>;
  for (std::int64_t v = 0; v < vectors; ++v) {
    auto best = hn::Load(d, most + v * N);
    for (std::int64_t j = 0; j < keys; ++j) {
      const auto score = hn::Load(d, scores + j * kWidth<T> + v * N);
      best = hn::IfThenElse(hn::Gt(score, best), score, best);
    }
    hn::Store(best, d, most + v * N);
  }
}

template <class T>
bool moderate(const T* bias, std::int64_t n) noexcept {
  const Tag<T> d;
  const auto most = hn::Set(d, static_cast<T>(kMostBias)), least = hn::Neg(most);
  const auto hidden = hn::Set(d, -std::numeric_limits<T>::infinity());
  for (std::int64_t i = 0; i < n; i += kLanes<T>) {
    const auto x = hn::Load(d, bias + i);
    const auto above = hn::Or(hn::Ge(x, least), hn::Eq(x, hidden));
    if (!hn::AllTrue(d, hn::And(hn::Le(x, most), above))) return false;
  }
  return true;
}

template <class T>
Drift judge(const T* sums, std::int64_t vectors) noexcept {
  const Tag<T> d;
  constexpr std::int64_t N = kLanes<T>;
  const auto most = hn::Set(d, static_cast<T>(kMostSum)),
             huge = hn::Set(d, static_cast<T>(kHugeSum));
  Drift drift = Drift::none;
  for (std::int64_t v = 0; v < vectors; ++v) {
    const auto sum = hn::Load(d, sums + v * N);
    if (HWY_LIKELY(hn::AllTrue(d, hn::Le(sum, most)))) continue;
    if (!hn::AllFalse(d, hn::IsNaN(sum))) return Drift::invalid;
    const Drift worse = hn::AllTrue(d, hn::Le(sum, huge)) ? Drift::small : Drift::large;
    if (worse > drift) drift = worse;
  }
  return drift;
}

template <class T>
bool scale(T* x, std::int64_t columns, const T* factors, std::int64_t vectors) noexcept {
  const FlushDenormals mode;
  const Tag<T> d;
  constexpr std::int64_t N = kLanes<T>;
  auto probe = hn::Zero(d);  // 0 times a number is 0 unless it is not finite
  for (std::int64_t v = 0; v < vectors; ++v) {
    const auto factor = hn::Load(d, factors + v * N);
    for (std::int64_t c = 0; c < columns; ++c) {
      T* const at = x + c * kWidth<T> + v * N;
      const auto product = hn::Mul(hn::Load(d, at), factor);
      probe = hn::MulAdd(product, hn::Zero(d), probe);
      hn::Store(product, d, at);
    }
  }
  return hn::AllFalse(d, hn::IsNaN(probe));
}

template <class T>
void multiply(T* x, std::int64_t n, T factor) noexcept {
  const Tag<T> d;
  constexpr std::int64_t N = kLanes<T>;
  const auto factors = hn::Set(d, factor);
  std::int64_t i = 0;
  for (; i + N <= n; i += N) hn::StoreU(hn::Mul(hn::LoadU(d, x + i), factors), d, x + i);
  for (; i < n; ++i) x[i] *= factor;
}

template <class T>
void set(AttendFunctions<T>& functions) {
  functions = {.lanes = kLanes<T>,
               .most_vectors = kMostVectors,
               .scores = scores<T>,
               .weigh = weigh<T>,
               .largest = largest<T>,
               .moderate = moderate<T>,
               .judge = judge<T>,
               .values = values<T>,
               .scale = scale<T>,
               .multiply = multiply<T>};
}

void fill(AttendKernels& kernels) {
  set(kernels.f32);
  set(kernels.f64);
}

}  // namespace
}  // namespace einkern::kernel::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace einkern::kernel {

HWY_EXPORT(fill);
void fill_attend(AttendKernels& kernels) { HWY_DYNAMIC_DISPATCH(fill)(kernels); }

}  // namespace einkern::kernel
#endif
