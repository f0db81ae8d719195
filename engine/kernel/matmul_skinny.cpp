// SPDX-License-Identifier: Apache-2.0
// Products of a few rows and a large matrix that is read once, where it lies: dots of its rows, or
// weighted sums of them.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "matmul_skinny.cpp"
#include "hwy/foreach_target.h"
//
#include <algorithm>
#include <array>
#include <cstdint>
#include <utility>

#include "half-inl.h"
#include "hwy/cache_control.h"
#include "hwy/highway.h"
#include "lines_ahead-inl.h"
#include "matmul-inl.h"
#include "matmul.h"
#include "matmul_skinny.h"

HWY_BEFORE_NAMESPACE();
namespace einkern::kernel::HWY_NAMESPACE {
namespace {

// Rows of the few that a tile takes: with four of the many, as many sums as leave registers for a
// vector of each; with two vectors of columns, enough to hide the latency of multiply-adds.
inline constexpr int kDotRows = HWY_TARGET == HWY_AVX3 ? 6 : 3;
inline constexpr int kSumRows = HWY_TARGET == HWY_AVX3 ? 14 : HWY_TARGET == HWY_AVX2 ? 6 : 4;
inline constexpr int kDotColumns = 4;

template <class T>
using Tag = hn::ScalableTag<T>;
template <class T>
inline constexpr std::int64_t kLanes = hn::MaxLanes(Tag<T>());

/// The first `n` numbers at `from`, zeros behind.
template <class T, class S>
HWY_INLINE hn::VFromD<Tag<T>> load_first(const S* from, std::int64_t n) {
  if constexpr (std::is_same_v<S, T>) {
    return load_lanes(Tag<T>(), from, static_cast<std::size_t>(n));
  } else {
    return load_part_as(Tag<T>(), from, n);
  }
}

#if HWY_TARGET != HWY_SCALAR
// The sums of the 16-byte blocks of a vector, lane by lane.
template <class D>
HWY_INLINE void sum_of_blocks(D d, hn::VFromD<D> v, hn::TFromD<D>* to) {
  if constexpr (hn::MaxLanes(D()) * sizeof(hn::TFromD<D>) <= 16) {
    hn::StoreU(v, d, to);
  } else {
    const hn::Half<D> half;
    sum_of_blocks(half, hn::Add(hn::LowerHalf(half, v), hn::UpperHalf(half, v)), to);
  }
}
#endif

// to[i] = the sum of the lanes of v[i], i < 4. Vectors are added while they are turned: 13
// instructions where four separate sums are 32.
template <class T>
HWY_INLINE void sums_of_lanes(const hn::VFromD<Tag<T>>* v, T* to) {
#if HWY_TARGET == HWY_SCALAR
  for (int i = 0; i < 4; ++i) to[i] = hn::GetLane(v[i]);
#else
  const Tag<T> d;
  const auto pair = [d](auto x, auto y) HWY_ATTR {
    return hn::Add(hn::InterleaveLower(d, x, y), hn::InterleaveUpper(d, x, y));
  };
  const auto low = pair(v[0], v[1]), high = pair(v[2], v[3]);
  if constexpr (sizeof(T) == 8) {
    sum_of_blocks(d, low, to);
    sum_of_blocks(d, high, to + 2);
  } else {
    const hn::Repartition<double, Tag<T>> d64;
    const auto x = hn::BitCast(d64, low), y = hn::BitCast(d64, high);
    const auto sum = hn::Add(hn::BitCast(d, hn::InterleaveLower(d64, x, y)),
                             hn::BitCast(d, hn::InterleaveUpper(d64, x, y)));
    sum_of_blocks(d, sum, to);
  }
#endif
}

template <class T, class S>
struct DotTile {
  const T* few = nullptr;       // [step / lanes][row][step % lanes]
  std::int64_t few_stride = 0;  // from one step / lanes to the next
  const S* many[kDotColumns] = {};
  std::int64_t steps = 0;
  LinesAhead<S>* ahead = nullptr;
  std::int64_t lines_ahead = 0;  // a step
  T* sums = nullptr;             // [row][kDotColumns]
};

template <class T, class S, int R>
void dot_tile(const DotTile<T, S>& tile) {
  const Tag<T> d;
  constexpr std::int64_t N = kLanes<T>;
  using Vector = hn::VFromD<Tag<T>>;
  Vector sum[R][kDotColumns];
  HWY_UNROLL(8)
  for (int r = 0; r < R; ++r) {
    HWY_UNROLL(4)
    for (int j = 0; j < kDotColumns; ++j) sum[r][j] = hn::Zero(d);
  }
  const T* few = tile.few;
  const std::int64_t few_stride = tile.few_stride;
  const S* many[kDotColumns] = {tile.many[0], tile.many[1], tile.many[2], tile.many[3]};
  const auto step = [&](const auto& load) HWY_ATTR __attribute__((always_inline)) {
    HWY_UNROLL(4)
    for (int j = 0; j < kDotColumns; ++j) {
      const Vector in = load(many[j]);
      HWY_UNROLL(8)
      for (int r = 0; r < R; ++r) {
        sum[r][j] = hn::MulAdd(hn::Load(d, few + r * N), in, sum[r][j]);
      }
    }
    few += few_stride;
  };
  LinesAhead<S> ahead = *tile.ahead;
  const std::int64_t whole = tile.steps / N * N;
  for (std::int64_t s = 0; s < whole; s += N) {
    ahead.fetch(tile.lines_ahead);
    step([&](const S* from) HWY_ATTR { return load_as(d, from + s); });
  }
  *tile.ahead = ahead;
  if (whole < tile.steps) {
    step([&](const S* from) HWY_ATTR { return load_first<T>(from + whole, tile.steps - whole); });
  }
  HWY_UNROLL(8)
  for (int r = 0; r < R; ++r) sums_of_lanes<T>(sum[r], tile.sums + r * kDotColumns);
}

template <class T, class S>
struct SumTile {
  const T* few = nullptr;  // [step][row]
  const S* many = nullptr;
  const std::int64_t* at = nullptr;
  std::int64_t steps = 0;
  LinesAhead<S>* ahead = nullptr;
  T* const* rows = nullptr;
  bool add = false;
};

template <class T, class S, int R>
void sum_tile(const SumTile<T, S>& tile) {
  const Tag<T> d;
  constexpr std::int64_t N = kLanes<T>;
  using Vector = hn::VFromD<Tag<T>>;
  Vector sum[R][2];
  HWY_UNROLL(16)
  for (int r = 0; r < R; ++r) {
    HWY_UNROLL(2)
    for (int v = 0; v < 2; ++v) {
      sum[r][v] = tile.add ? hn::LoadU(d, tile.rows[r] + v * N) : hn::Zero(d);
    }
  }
  const T* few = tile.few;
  LinesAhead<S> ahead = *tile.ahead;
  for (std::int64_t s = 0; s < tile.steps; ++s) {
    ahead.template fetch_step<2 * N * sizeof(S)>(s);
    const S* const from = tile.many + tile.at[s];
    const Vector in[2] = {load_as(d, from), load_as(d, from + N)};
    HWY_UNROLL(16)
    for (int r = 0; r < R; ++r) {
      const Vector row = hn::Set(d, few[r]);
      HWY_UNROLL(2)
      for (int v = 0; v < 2; ++v) sum[r][v] = hn::MulAdd(row, in[v], sum[r][v]);
    }
    few += R;
  }
  *tile.ahead = ahead;
  HWY_UNROLL(16)
  for (int r = 0; r < R; ++r) {
    HWY_UNROLL(2)
    for (int v = 0; v < 2; ++v) hn::StoreU(sum[r][v], d, tile.rows[r] + v * N);
  }
}

template <class T, class S, int... R>
constexpr auto dot_tiles_of(std::integer_sequence<int, R...>) {
  return std::array{dot_tile<T, S, R + 1>...};
}
template <class T, class S, int... R>
constexpr auto sum_tiles_of(std::integer_sequence<int, R...>) {
  return std::array{sum_tile<T, S, R + 1>...};
}
// By rows - 1.
template <class T, class S>
inline constexpr auto kDotTiles = dot_tiles_of<T, S>(std::make_integer_sequence<int, kDotRows>());
template <class T, class S>
inline constexpr auto kSumTiles = sum_tiles_of<T, S>(std::make_integer_sequence<int, kSumRows>());

template <class T, class S>
void dots_of(const SkinnyDots<T>& b) {
  const Panels panels{.positions = b.few_count, .width = kDotRows};
  const S* const many = static_cast<const S*>(b.many.data) + b.first;
  HWY_ALIGN T sums[kDotRows * kDotColumns];
  for (std::int64_t j = 0; j < b.many_count; j += kDotColumns) {
    const std::int64_t columns = std::min<std::int64_t>(kDotColumns, b.many_count - j);
    DotTile<T, S> tile{.few_stride = b.few_count * kLanes<T>,
                       .steps = b.steps,
                       .lines_ahead = std::max<std::int64_t>(
                           1, kDotColumns * kLanes<T> * sizeof(S) / 64 / panels.count()),
                       .sums = sums};
    for (std::int64_t i = 0; i < kDotColumns; ++i) {
      tile.many[i] = many + b.many.at[j + std::min(i, columns - 1)];
    }
    // Memory is asked for the next rows, a few lines with every step of these tiles. All with the
    // first tile, 32 rows over 4096 x 4096 took 1.07 times as long.
    const StoredRows rows{many, b.many.dtype, b.many.at + j + columns};
    LinesAhead<S> ahead(rows, std::min<std::int64_t>(kDotColumns, b.many_count - j - columns),
                        b.steps, 0);
    tile.ahead = &ahead;
    for (std::int64_t p = 0; p < panels.count(); ++p) {
      const std::int64_t i = panels.start(p), height = panels.start(p + 1) - i;
      tile.few = b.few + b.first * b.few_count + i * kLanes<T>;
      kDotTiles<T, S>[static_cast<std::size_t>(height - 1)](tile);
      for (std::int64_t r = 0; r < height; ++r) {
        T* const c = b.c + b.few_at[i + r];
        for (std::int64_t k = 0; k < columns; ++k) {
          T& to = c[b.many_at[j + k]];
          to = b.add ? to + sums[r * kDotColumns + k] : sums[r * kDotColumns + k];
        }
      }
    }
  }
}

template <class T, class S>
class Sums {
 public:
  explicit Sums(const SkinnySums<T>& block)
      : b_(block),
        panels_{.positions = b_.few_count, .width = kSumRows},
        next_{b_.many.data, b_.many.dtype, b_.many.at + b_.steps},
        ahead_(next_, b_.ahead, b_.columns, 0) {}

  void run() {
    std::int64_t j = 0;
    for (; j + kWidth <= b_.columns; j += kWidth) {
      SumTile<T, S> tile{.many = static_cast<const S*>(b_.many.data) + j,
                         .at = b_.many.at,
                         .steps = b_.steps,
                         .ahead = &ahead_,
                         .add = b_.add};
      each_panel([&](std::int64_t first, std::int64_t height, const T* few) {
        T* rows[kSumRows];
        for (std::int64_t r = 0; r < height; ++r) rows[r] = b_.c + b_.few_at[first + r] + j;
        tile.few = few;
        tile.rows = rows;
        kSumTiles<T, S>[static_cast<std::size_t>(height - 1)](tile);
      });
    }
    if (j < b_.columns) run_rest(j);
  }

 private:
  static constexpr std::int64_t kWidth = 2 * kLanes<T>;

  template <class F>
  void each_panel(const F& f) const {
    for (std::int64_t p = 0; p < panels_.count(); ++p) {
      const std::int64_t i = panels_.start(p), height = panels_.start(p + 1) - i;
      f(i, height, b_.few + i * b_.few_steps + b_.first * height);
    }
  }

  // Columns that fill no tile: a tile of copies.
  void run_rest(std::int64_t j) {
    const std::int64_t count = b_.columns - j;
    HWY_ALIGN T many[kSkinnySteps * kWidth] = {}, sums[kSumRows * kWidth] = {};
    std::int64_t at[kSkinnySteps];
    for (std::int64_t s = 0; s < b_.steps; ++s) {
      const S* const from = static_cast<const S*>(b_.many.data) + b_.many.at[s] + j;
      at[s] = s * kWidth;
      for (std::int64_t i = 0; i < count; ++i) many[at[s] + i] = widen(from[i]);
    }
    const StoredRows none{};
    LinesAhead<T> ahead(none, 0, 0, 0);
    SumTile<T, T> tile{.many = many, .at = at, .steps = b_.steps, .ahead = &ahead, .add = b_.add};
    T* rows[kSumRows];
    for (std::int64_t r = 0; r < kSumRows; ++r) rows[r] = sums + r * kWidth;
    each_panel([&](std::int64_t first, std::int64_t height, const T* few) {
      T* const c = b_.c + j;
      for (std::int64_t r = 0; b_.add && r < height; ++r) {
        std::copy_n(c + b_.few_at[first + r], count, rows[r]);
      }
      tile.few = few;
      tile.rows = rows;
      kSumTiles<T, T>[static_cast<std::size_t>(height - 1)](tile);
      for (std::int64_t r = 0; r < height; ++r) {
        std::copy_n(rows[r], count, c + b_.few_at[first + r]);
      }
    });
  }

  const SkinnySums<T>& b_;
  const Panels panels_;
  const StoredRows next_;
  LinesAhead<S> ahead_;
};

/// Calls `f(S{})` with the type that rows of products of T are stored in.
template <class T, class F>
void with_stored(DType dtype, const F& f) {
  if constexpr (std::is_same_v<T, float>) {
    if (dtype == DType::f16) return f(Float16{});
    if (dtype == DType::bf16) return f(BFloat16{});
  }
  f(T{});
}

template <class T>
void dots(const SkinnyDots<T>& block) noexcept {
  with_stored<T>(block.many.dtype, [&]<class S>(S) { dots_of<T, S>(block); });
}

template <class T>
void sums(const SkinnySums<T>& block) noexcept {
  with_stored<T>(block.many.dtype, [&]<class S>(S) { Sums<T, S>(block).run(); });
}

void FillSkinny(SkinnyKernels& kernels) {
  kernels.f32 = {kSumRows, kLanes<float>, dots<float>, sums<float>};
  kernels.f64 = {kSumRows, kLanes<double>, dots<double>, sums<double>};
}

}  // namespace
}  // namespace einkern::kernel::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace einkern::kernel {

HWY_EXPORT(FillSkinny);

void fill_skinny(SkinnyKernels& kernels) { HWY_DYNAMIC_DISPATCH(FillSkinny)(kernels); }

}  // namespace einkern::kernel
#endif  // HWY_ONCE
