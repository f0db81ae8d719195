// SPDX-License-Identifier: Apache-2.0
// Multiplies packed panels: a register tile of c for every pair of panels, written through offsets.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "matmul.cpp"
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
#include "matmul_pack.h"

HWY_BEFORE_NAMESPACE();
namespace einkern::kernel::HWY_NAMESPACE {
namespace {

// Rows of the tallest tile: as many as leave registers for two vectors of b and one of a.
#if HWY_TARGET == HWY_AVX3
inline constexpr int kRows = 14;
#elif HWY_TARGET == HWY_AVX2
inline constexpr int kRows = 6;
#else
inline constexpr int kRows = 4;
#endif

// Steps taken at once, and whether operands are fetched to L1 by hand. With narrow vectors a step
// has few products for the instructions that steer it: two at once, without fetches that a core's
// own prefetchers make needless, are 22 instructions a step instead of 28. On cores of which
// another thread uses the other half they reached 0.73 to 0.88 of the peak instead of 0.57 to 0.83.
#if HWY_TARGET == HWY_AVX3
inline constexpr int kAtOnce = 1;
inline constexpr bool kFetchOperands = true;
#else
inline constexpr int kAtOnce = 2;
inline constexpr bool kFetchOperands = false;
#endif

// Steps before the end at which c is fetched. Earlier, its rows (often at a stride of 4 KiB, hence
// in one set of L1) are evicted again: 0.90 of peak against 0.93 at 1024^3 on AVX-512.
inline constexpr std::int64_t kFetchSteps = 40;

template <class T>
using Tag = hn::ScalableTag<T>;
template <class T>
inline constexpr std::int64_t kLanes = hn::MaxLanes(Tag<T>());

template <class T>
HWY_INLINE void fetch_row(const T* first, const T* last) {
  hwy::Prefetch(first);
  hwy::Prefetch(last);
}

// A tile that has been computed and is to be written around the caches.
template <class T>
struct Deferred {
  std::int64_t count = 0;  // vectors
  T* to[kRows * 2];
  HWY_ALIGN T vectors[kRows * 2 * kLanes<T>];

  HWY_INLINE void write(std::int64_t i) const {
    const Tag<T> d;
    hn::Stream(hn::Load(d, vectors + i * kLanes<T>), d, to[i]);
  }
};

// Operands of a tile: rows[r] + columns[v] + lane = (or +=) sum over steps of a[step][r]
// b[step][v][lane].
template <class T>
struct Tile {
  std::int64_t steps = 0;
  const T* a = nullptr;       // packed, or rows that are
  std::int64_t a_stride = 0;  // elements apart
  const T* b = nullptr;
  std::int64_t b_stride = 0;  // elements between steps
  T* const* rows = nullptr;
  const std::int64_t* columns = nullptr;
  Update update = Update::store;
  // Fetched to L2 in every step: this address, which then moves.
  const char* ahead = nullptr;
  std::int64_t ahead_stride = 0;
  Deferred<T>* deferred = nullptr;
};

template <class T, int R, int V, bool PlainA>
void multiply_tile(const Tile<T>& tile) {
  const Tag<T> d;
  constexpr std::int64_t N = kLanes<T>;
  using Vector = hn::VFromD<Tag<T>>;
  Vector sum[R][V];
  HWY_UNROLL(16)
  for (int r = 0; r < R; ++r) {
    HWY_UNROLL(2)
    for (int v = 0; v < V; ++v) sum[r][v] = hn::Zero(d);
  }
  const std::int64_t steps = tile.steps, b_stride = tile.b_stride, a_stride = tile.a_stride;
  const T* b = tile.b;
  // Rows of a plain a are addressed in threes: one pointer, and the stride once and twice.
  constexpr int kThrees = PlainA ? (R + 2) / 3 : 1;
  const T* a[kThrees];
  HWY_UNROLL(8)
  for (int t = 0; t < kThrees; ++t) a[t] = tile.a + 3 * t * a_stride;
  const auto step = [&]() HWY_ATTR __attribute__((always_inline)) {
    if constexpr (kFetchOperands) {
      if constexpr (!PlainA) hwy::Prefetch(a[0] + 16 * R);
      hwy::Prefetch(b + 8 * b_stride);
      if constexpr (V == 2 && sizeof(Vector) == 64) hwy::Prefetch(b + 8 * b_stride + N);
    }
    Vector in[V];
    HWY_UNROLL(2)
    for (int v = 0; v < V; ++v) in[v] = hn::LoadU(d, b + v * N);
    HWY_UNROLL(16)
    for (int r = 0; r < R; ++r) {
      const Vector row = hn::Set(d, PlainA ? a[r / 3][r % 3 * a_stride] : a[0][r]);
      HWY_UNROLL(2)
      for (int v = 0; v < V; ++v) {
        sum[r][v] = hn::MulAdd(row, in[v], sum[r][v]);
      }
    }
    HWY_UNROLL(8)
    for (int t = 0; t < kThrees; ++t) a[t] += PlainA ? 1 : R;
    b += b_stride;
    // Keeps the loads of the next step out of this one, where they would want its registers.
    if constexpr (kAtOnce > 1) asm volatile("" : "+r"(b));
  };
  const Update update = tile.update;
  T* const* const rows = tile.rows;
  const std::int64_t* const columns = tile.columns;
  std::int64_t s = 0;
  // The tile before this one goes out a vector a step: all at once would hold up these loads.
  Deferred<T>& deferred = *tile.deferred;
  for (; s < std::min(steps, deferred.count); ++s) {
    deferred.write(s);
    step();
  }
  for (std::int64_t i = s; i < deferred.count; ++i) deferred.write(i);
  deferred.count = 0;
  const std::int64_t fetch = update == Update::stream ? steps : steps - kFetchSteps;
  const char* ahead = tile.ahead;
  const std::int64_t ahead_stride = tile.ahead_stride;
  for (; s + kAtOnce <= fetch; s += kAtOnce) {
    fetch_to_l2(ahead);
    ahead += kAtOnce * ahead_stride;
    HWY_UNROLL(2)
    for (int i = 0; i < kAtOnce; ++i) step();
  }
  if constexpr (kAtOnce > 1) {
    if (s < steps && update != Update::stream) {
      for (int r = 0; r < R; ++r) fetch_row(rows[r] + columns[0], rows[r] + columns[V - 1] + N - 1);
    }
    for (; s + kAtOnce <= steps; s += kAtOnce) {
      HWY_UNROLL(2)
      for (int i = 0; i < kAtOnce; ++i) step();
    }
    for (; s < steps; ++s) step();
  }
  for (std::int64_t r = 0; s < steps; ++s, ++r) {
    if (r < R) fetch_row(rows[r] + columns[0], rows[r] + columns[V - 1] + N - 1);
    step();
  }
  HWY_UNROLL(16)
  for (int r = 0; r < R; ++r) {
    HWY_UNROLL(2)
    for (int v = 0; v < V; ++v) {
      T* to = rows[r] + columns[v];
      if (update == Update::add) {
        hn::StoreU(hn::Add(hn::LoadU(d, to), sum[r][v]), d, to);
      } else if (update == Update::stream) {
        hn::Store(sum[r][v], d, deferred.vectors + (r * V + v) * N);
        deferred.to[r * V + v] = to;
      } else {
        hn::StoreU(sum[r][v], d, to);
      }
    }
  }
  if (update == Update::stream) deferred.count = R * V;
}

template <class T>
using TileFunction = void (*)(const Tile<T>&);

template <class T, int V, bool PlainA, int... R>
constexpr std::array<TileFunction<T>, sizeof...(R)> tiles_of(std::integer_sequence<int, R...>) {
  return {multiply_tile<T, R + 1, V, PlainA>...};
}

// By whether a is plain, vectors - 1 and rows - 1.
using Heights = std::make_integer_sequence<int, kRows>;
template <class T>
inline constexpr std::array<TileFunction<T>, kRows> kTiles[2][2] = {
    {tiles_of<T, 1, false>(Heights()), tiles_of<T, 2, false>(Heights())},
    {tiles_of<T, 1, true>(Heights()), tiles_of<T, 2, true>(Heights())}};

// Are columns first .. first + count - 1 neighbours in c?
inline bool side_by_side(const std::int64_t* columns, std::int64_t count) {
  std::int64_t gaps = 0;
  for (std::int64_t j = 0; j < count; ++j) gaps |= columns[j] - columns[0] - j;
  return gaps == 0;
}

// The columns of one panel of b as they lie in c.
template <class T>
class Columns {
 public:
  Columns(const std::int64_t* at, std::int64_t count)
      : at_(at), count_(count), vectors_(count <= N ? 1 : 2), whole_(count == vectors_ * N) {
    for (int v = 0; whole_ && v < vectors_; ++v) {
      vector_at_[v] = at[v * N];
      whole_ = side_by_side(at + v * N, N);
    }
    if (!whole_) find_runs();
  }

  // Can tiles be written in place, vector by vector?
  bool whole() const { return whole_; }
  int vectors() const { return vectors_; }
  const std::int64_t* vector_at() const { return vector_at_; }

  // Writes one staged row.
  void write(const T* staged, T* row, Update update) const {
    const Tag<T> d;
    for (std::int64_t r = 0; r < runs_; ++r) {
      const std::int64_t first = run_starts_[r], length = run_starts_[r + 1] - first;
      const T* from = staged + first;
      T* to = row + at_[first];
      if (length == 1) {
        *to = update == Update::add ? *to + *from : *from;
        continue;
      }
      for (std::int64_t i = 0; i < length; i += N) {
        const std::size_t n = static_cast<std::size_t>(std::min(N, length - i));
        auto v = hn::LoadU(d, from + i);
        if (update == Update::add) v = hn::Add(load_lanes(d, to + i, n), v);
        store_lanes(d, v, n, to + i);
      }
    }
  }

 private:
  static constexpr std::int64_t N = kLanes<T>;

  void find_runs() {
    for (std::int64_t j = 0; j < count_; ++j) {
      if (j == 0 || at_[j] != at_[j - 1] + 1) run_starts_[runs_++] = j;
    }
    run_starts_[runs_] = count_;
  }

  const std::int64_t* at_;
  std::int64_t count_;
  int vectors_;
  bool whole_;
  std::int64_t vector_at_[2] = {};
  std::int64_t runs_ = 0;
  std::int64_t run_starts_[2 * N + 1];
};

// Does a tile in place consist of whole lines?
template <class T>
bool lines(T* const* rows, std::int64_t count, const Columns<T>& columns) {
  std::uintptr_t misaligned = 0;
  for (std::int64_t r = 0; r < count; ++r) {
    for (int v = 0; v < columns.vectors(); ++v) {
      misaligned |= reinterpret_cast<std::uintptr_t>(rows[r] + columns.vector_at()[v]);
    }
  }
  return misaligned % 64 == 0;
}

template <class T>
void multiply(const MultiplyBlock<T>& block) noexcept {
  constexpr std::int64_t kWidth = 2 * kLanes<T>, kBytes = sizeof(T);
  constexpr std::int64_t kStagedAt[2] = {0, kLanes<T>};
  if (block.row_count == 0) return;
  const std::int64_t count = Panels{.positions = block.row_count, .width = kRows}.count();
  const std::int64_t quotient = block.row_count / count, remainder = block.row_count % count;
  // A vector more: a run at the end of the last row is loaded whole.
  HWY_ALIGN T stage[(kRows + 1) * kWidth];
  T* rows[kRows];
  Deferred<T> deferred;
  for (std::int64_t j = 0; j < block.column_count; j += kWidth) {
    const Columns<T> columns(block.columns + j, std::min(kWidth, block.column_count - j));
    const bool packed_b = block.b_stride == 0, plain_a = block.a_stride != 0;
    Tile<T> tile{.steps = block.steps,
                 .a_stride = block.a_stride,
                 .b = block.b + (packed_b ? j * block.steps : j),
                 .b_stride = packed_b ? kWidth : block.b_stride,
                 .rows = rows,
                 .deferred = &deferred};
    // The next panel of b comes to L2 while this one is used: of a packed one a part in every tile,
    // of rows a line of each in the first tile, then the other. What is near already is not asked
    // for again: requests that L1 does not answer compete with the tile's own. With the last panel
    // comes the next block of a, a line a step: more than a tile of floats has.
    const bool more = j + kWidth < block.column_count;
    const T* const next = tile.b + (packed_b ? kWidth * block.steps : kWidth);
    const auto* const tiles = kTiles<T>[plain_a][columns.vectors() - 1].data();
    const std::int64_t part = more && packed_b ? (kWidth * kBytes + count - 1) / count : 0;
    std::int64_t rest = 0;
    for (std::int64_t p = 0, i = 0, height; p < count; ++p, i += height) {
      // As Panels::start(p + 1) - Panels::start(p), without dividing.
      height = quotient;
      if ((rest += remainder) >= count) {
        rest -= count;
        ++height;
      }
      tile.a = block.a + i * (plain_a ? block.a_stride : block.steps);
      if (part > 0) {
        tile.ahead_stride = part;
        tile.ahead = reinterpret_cast<const char*>(next) + p * block.steps * part;
      } else if (!more && block.next_a != nullptr) {
        tile.ahead_stride = 64;
        tile.ahead = reinterpret_cast<const char*>(block.next_a + i * block.steps);
      } else if (more && p < 2) {
        tile.ahead_stride = block.b_stride * kBytes;
        tile.ahead = reinterpret_cast<const char*>(next + p * kLanes<T>);
      } else {
        tile.ahead_stride = 0;
        tile.ahead = reinterpret_cast<const char*>(tile.b);
      }
      const auto multiply = tiles[height - 1];
      if (columns.whole()) {
        for (std::int64_t r = 0; r < height; ++r) rows[r] = block.c + block.rows[i + r];
        tile.columns = columns.vector_at();
        tile.update = block.update;
        if (block.update == Update::stream && !lines(rows, height, columns)) {
          tile.update = Update::store;
        }
        multiply(tile);
        continue;
      }
      for (std::int64_t r = 0; r < height; ++r) rows[r] = stage + r * kWidth;
      tile.columns = kStagedAt;
      tile.update = Update::store;
      multiply(tile);
      for (std::int64_t r = 0; r < height; ++r) {
        columns.write(rows[r], block.c + block.rows[i + r], block.update);
      }
    }
  }
  for (std::int64_t i = 0; i < deferred.count; ++i) deferred.write(i);
  if (block.update == Update::stream) hwy::FlushStream();
}

void FillMatmul(MatmulKernels& kernels) {
  kernels.f32.multiply = multiply<float>;
  kernels.f64.multiply = multiply<double>;
}

}  // namespace
}  // namespace einkern::kernel::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace einkern::kernel {

HWY_EXPORT(FillMatmul);

void fill_matmul(MatmulKernels& kernels) {
  HWY_DYNAMIC_DISPATCH(FillMatmul)(kernels);
  fill_matmul_pack(kernels);
  fill_matmul_direct(kernels);
}

}  // namespace einkern::kernel
#endif  // HWY_ONCE
