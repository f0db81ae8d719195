// SPDX-License-Identifier: Apache-2.0
// Multiplies packed columns by packed rows; every step also writes a vector of the group before and
// fetches a line of the block after.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "matmul_stream.cpp"
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
#include "matmul_stream-inl.h"
#include "matmul_stream.h"

HWY_BEFORE_NAMESPACE();
namespace einkern::kernel::HWY_NAMESPACE {
namespace {

// Rows of the tallest tile of three vectors: as many as leave registers for them and a row.
#if HWY_TARGET == HWY_AVX3
inline constexpr int kStreamTile = 9;
#else
inline constexpr int kStreamTile = 4;
#endif

// What happens beside a product: the staged vectors of the group before leave for memory, lines of
// the block after come in.
template <class T>
struct Meanwhile {
  T* const* targets = nullptr;
  const T* stage = nullptr;
  std::int64_t count = 0;  // vectors still to be written
  bool stream = false;
  const char* const* lines = nullptr;  // to be fetched, one a step

  template <bool kStream>
  HWY_INLINE void write_one() {
    const hn::ScalableTag<T> d;
    const auto v = hn::Load(d, stage);
    stage += hn::Lanes(d);
    if constexpr (kStream) {
      hn::Stream(v, d, *targets++);
    } else {
      hn::StoreU(v, d, *targets++);
    }
  }
  HWY_INLINE void fetch_one() { hwy::Prefetch(*lines++); }
  void write_all() {
    for (; count > 0; --count) {
      if (stream) {
        write_one<true>();
      } else {
        write_one<false>();
      }
    }
  }
};

// Where the vectors of a tile are staged: vector v of row r at to[v] + r * stride[v].
template <class T>
struct TileStage {
  T* to[kStreamVectors];
  std::int64_t stride[kStreamVectors];
};

// staged[v][r][lane] = sum over steps of y[step][r] x[step][v][lane]; kFar: of y[r * y_stride +
// step].
template <class T, bool kFar, int R, int V>
void stream_tile(std::int64_t steps, const T* HWY_RESTRICT x, const T* HWY_RESTRICT y,
                 std::int64_t y_stride, Meanwhile<T>& meanwhile, const TileStage<T>& staged) {
  const hn::ScalableTag<T> d;
  constexpr std::int64_t N = hn::MaxLanes(d);
  using Vector = hn::VFromD<hn::ScalableTag<T>>;
  Vector sum[R][V];
  HWY_UNROLL(16)
  for (int r = 0; r < R; ++r) {
    HWY_UNROLL(4)
    for (int v = 0; v < V; ++v) sum[r][v] = hn::Zero(d);
  }
  const T* HWY_RESTRICT y3 = kFar ? y + 3 * y_stride : y;
  const T* HWY_RESTRICT y6 = kFar ? y + 6 * y_stride : y;
  const auto step = [&]() HWY_ATTR __attribute__((always_inline)) {
    Vector in[V];
    HWY_UNROLL(4)
    for (int v = 0; v < V; ++v) in[v] = hn::LoadU(d, x + v * N);
    HWY_UNROLL(16)
    for (int r = 0; r < R; ++r) {
      // Three pointers and one stride reach nine rows.
      const T* const near = kFar ? (r < 3 ? y : r < 6 ? y3 : y6) : y;
      const Vector row = hn::Set(d, kFar ? near[r % 3 * y_stride] : y[r]);
      HWY_UNROLL(4)
      for (int v = 0; v < V; ++v) sum[r][v] = hn::MulAdd(row, in[v], sum[r][v]);
    }
    x += V * N;
    y += kFar ? 1 : R;
    if constexpr (kFar) ++y3, ++y6;
  };
  Meanwhile<T> local = meanwhile;
  for (; local.count > steps; --local.count) local.template write_one<false>();
  std::int64_t left = steps - local.count;
  if (local.stream) {
    for (; local.count > 0; --local.count) {
      local.template write_one<true>();
      local.fetch_one();
      step();
    }
  } else {
    for (; local.count > 0; --local.count) {
      local.template write_one<false>();
      local.fetch_one();
      step();
    }
  }
  for (; left > 0; --left) {
    local.fetch_one();
    step();
  }
  meanwhile = local;
  HWY_UNROLL(4)
  for (int v = 0; v < V; ++v) {
    HWY_UNROLL(16)
    for (int r = 0; r < R; ++r) hn::StoreU(sum[r][v], d, staged.to[v] + r * staged.stride[v]);
  }
}

template <class T>
using StreamTileFunction = void (*)(std::int64_t, const T*, const T*, std::int64_t, Meanwhile<T>&,
                                    const TileStage<T>&);

template <class T>
using StreamTilesOfHeights = std::array<StreamTileFunction<T>, kStreamTile>;

template <class T, bool kFar, int V, int... R>
constexpr StreamTilesOfHeights<T> stream_tiles_of(std::integer_sequence<int, R...>) {
  return {stream_tile<T, kFar, R + 1, V>...};
}

template <class T, bool kFar, int... V>
constexpr std::array<StreamTilesOfHeights<T>, sizeof...(V)> all_stream_tiles(
    std::integer_sequence<int, V...>) {
  return {stream_tiles_of<T, kFar, V + 1>(std::make_integer_sequence<int, kStreamTile>())...};
}

// By vectors - 1 and rows - 1: packed rows, far rows.
template <class T>
inline constexpr std::array<StreamTilesOfHeights<T>, kStreamVectors> kStreamTiles[2] = {
    all_stream_tiles<T, false>(std::make_integer_sequence<int, kStreamVectors>()),
    all_stream_tiles<T, true>(std::make_integer_sequence<int, kStreamVectors>())};

template <class T>
class StreamProduct {
 public:
  explicit StreamProduct(const StreamBlock<T>& block) noexcept
      : b_(block),
        writer_(*block.writer),
        packer_(block.next ? *block.next : StreamPack<T>{}),
        jobs_(block.next ? packer_.jobs() : 0),
        ragged_(block.place.run % N != 0) {
    meanwhile_.lines = lines_;
    std::fill(lines_, lines_ + b_.step_count, reinterpret_cast<const char*>(writer_.stage[0]));
  }

  void run() {
    const std::int64_t panels = (b_.positions + W - 1) / W, tiles = panels * b_.groups;
    if (ragged_) list_pieces();
    // Jobs are spread evenly over the tiles.
    const std::int64_t jobs_per_tile = jobs_ / tiles, extra_jobs = jobs_ % tiles;
    std::int64_t owed = 0, job = 0;
    // Rows that stay in L1 meet all columns before the next ones do; far rows are met once.
    const std::int64_t block = std::max<std::int64_t>(
        1, kNearRows / (kStreamTile * b_.step_count * static_cast<std::int64_t>(sizeof(T))));
    for (std::int64_t row = 0; row < b_.groups; row += block) {
      const std::int64_t rows_end = std::min(row + block, b_.groups);
      for (std::int64_t first = 0; first < panels; first += b_.place.group_panels) {
        const std::int64_t end = std::min(first + b_.place.group_panels, panels);
        for (std::int64_t g = row; g < rows_end; ++g) {
          begin_group();
          for (std::int64_t p = first; p < end; ++p) {
            list_lines(job, g);
            multiply(p, first, g);
            std::int64_t due = jobs_per_tile;
            owed += extra_jobs;
            if (owed >= tiles) owed -= tiles, ++due;
            for (; due > 0; --due) packer_.run(job++);
          }
          end_group(first, end, g);
        }
      }
    }
  }

 private:
  using D = hn::ScalableTag<T>;
  static constexpr std::int64_t N = hn::MaxLanes(D()), W = kStreamVectors * N;
  static constexpr std::int64_t kLine = 64 / sizeof(T);
  static constexpr std::int64_t kNearRows = 24 << 10;
  // Jobs ahead of the one being packed that are fetched: more would push each other out of L1.
  static constexpr std::int64_t kAhead = 2;

  std::int64_t rows(std::int64_t g) const { return b_.first_row[g + 1] - b_.first_row[g]; }

  // Sees to it that there is a line to fetch in every step of the next tile: of the jobs behind
  // `job`, which is packed next, or of the far rows of the group behind `g`.
  void list_lines(std::int64_t job, std::int64_t g) {
    const bool far = b_.y_at != nullptr;
    if (jobs_ == 0 && !far) {
      meanwhile_.lines = lines_;
      return;
    }
    std::int64_t left = std::max<std::int64_t>(0, lines_ + line_count_ - meanwhile_.lines);
    if (left >= b_.step_count) return;
    if (left > 0) std::copy(meanwhile_.lines, meanwhile_.lines + left, lines_);
    meanwhile_.lines = lines_;
    fetched_ = std::max(fetched_, far ? g : job);
    const std::int64_t end = far ? std::min(g + 2, b_.groups) : std::min(job + kAhead, jobs_);
    while (left < b_.step_count && fetched_ < end) {
      const std::int64_t next = fetched_++;
      left += far ? list_rows(next, lines_ + left, kLines - left)
                  : packer_.list_lines(next, lines_ + left, kLines - left);
    }
    line_count_ = left;
    // Nothing to fetch: a line that is near.
    const auto* const near = reinterpret_cast<const char*>(writer_.stage[0]);
    for (; left < b_.step_count; ++left) lines_[left] = near;
  }

  // Lists the lines of the far rows of a group, at most `room` of them.
  std::int64_t list_rows(std::int64_t g, const char** to, std::int64_t room) const {
    std::int64_t count = 0;
    for (std::int64_t r = b_.first_row[g]; r < b_.first_row[g + 1]; ++r) {
      const auto* at = reinterpret_cast<const char*>(b_.y + b_.y_at[r]);
      const auto* const end = reinterpret_cast<const char*>(b_.y + b_.y_at[r] + b_.step_count);
      for (; at < end && count < room; at += 64) to[count++] = at;
    }
    return count;
  }

  void begin_group() {
    meanwhile_.targets = writer_.targets;
    meanwhile_.stage = writer_.stage[1 - writer_.filling];
    meanwhile_.count = writer_.count;
    meanwhile_.stream = writer_.stream;
  }

  void multiply(std::int64_t p, std::int64_t first, std::int64_t g) {
    const std::int64_t R = rows(g);
    const std::int64_t vectors = std::min(kStreamVectors, (b_.positions - p * W + N - 1) / N);
    const bool far = b_.y_at != nullptr;
    const auto tile = kStreamTiles<T>[far ? 1 : 0][static_cast<std::size_t>(vectors - 1)]
                                     [static_cast<std::size_t>(R - 1)];
    const T* x = b_.x + p * W * b_.step_count;
    const T* y = b_.y + (far ? b_.y_at[b_.first_row[g]] : b_.first_row[g] * b_.step_count);
    T* const stage = writer_.stage[writer_.filling];
    TileStage<T> staged;
    if (!ragged_) {
      for (std::int64_t v = 0; v < kStreamVectors; ++v) {
        staged.to[v] = stage + v * N;
        staged.stride[v] = vectors * N;
      }
      return tile(b_.step_count, x, y, b_.y_stride, meanwhile_, staged);
    }
    HWY_ALIGN T split[kStreamVectors][kStreamTile * N];
    const std::int64_t segment = segment_of(R), stride = row_stride();
    const Piece* const pieces = pieces_ + (p - first) * kStreamVectors;
    for (std::int64_t v = 0; v < vectors; ++v) {
      const bool whole = pieces[v].here == N;
      staged.to[v] = whole ? stage + pieces[v].run * segment + pieces[v].inside : split[v];
      staged.stride[v] = whole ? stride : N;
    }
    tile(b_.step_count, x, y, b_.y_stride, meanwhile_, staged);
    const D d;
    for (std::int64_t v = 0; v < vectors; ++v) {
      const Piece piece = pieces[v];
      if (piece.here == N) continue;
      const auto here = static_cast<std::size_t>(piece.here);
      const auto valid = static_cast<std::size_t>(std::min(N, b_.positions - p * W - v * N));
      T* to = stage + piece.run * segment + piece.inside;
      T* after = stage + (piece.run + 1) * segment - piece.here;
      if constexpr (kMaskedStores) {
        const auto begin = hn::FirstN(d, here), rest = hn::AndNot(begin, hn::FirstN(d, valid));
        for (std::int64_t r = 0; r < R; ++r) {
          const auto sum = hn::Load(d, split[v] + r * N);
          hn::BlendedStore(sum, begin, d, to + r * stride);
          hn::BlendedStore(sum, rest, d, after + r * stride);
        }
      } else {
        for (std::int64_t r = 0; r < R; ++r) {
          const T* const from = split[v] + r * N;
          const auto rest = valid - std::min(here, valid);
          store_lanes(d, hn::Load(d, from), here, to + r * stride);
          store_lanes(d, load_lanes(d, from + here, rest), rest, after + r * stride + here);
        }
      }
    }
  }

  // Where the vectors of a group of panels lie among its runs; all groups are alike.
  void list_pieces() {
    const std::int64_t run = b_.place.run;
    const std::int64_t positions = std::min(b_.place.group_panels * W, b_.positions);
    std::int64_t q = 0, inside = 0;
    for (std::int64_t at = 0, i = 0; at < positions; at += N, ++i) {
      pieces_[i] = {static_cast<std::int32_t>(q), static_cast<std::int32_t>(inside),
                    static_cast<std::int32_t>(std::min({N, run - inside, positions - at}))};
      inside += N;
      while (inside >= run) inside -= run, ++q;
    }
  }

  static std::int64_t whole_lines(std::int64_t n) { return (n + kLine - 1) / kLine * kLine; }
  // Elements between rows in the stage, and those of a run of all rows of a group.
  std::int64_t row_stride() const {
    return b_.place.joined ? b_.place.run : whole_lines(b_.place.run);
  }
  std::int64_t segment_of(std::int64_t rows) const { return whole_lines(rows * row_stride()); }

  // What is staged becomes what waits to be written; elements that fill no vector go at once.
  void end_group(std::int64_t first, std::int64_t end, std::int64_t g) {
    meanwhile_.write_all();
    const std::int64_t R = rows(g);
    const std::int64_t* row_at = b_.place.row_at + b_.first_row[g];
    const std::int64_t begin = first * W, positions = std::min(end * W, b_.positions) - begin;
    std::int64_t count = 0;
    T* const stage = writer_.stage[writer_.filling];
    if (b_.complete != nullptr) {
      const std::int64_t width = (positions + N - 1) / N * N;
      b_.complete(b_.caller, {.stage = stage,
                              .first_row = b_.first_row[g],
                              .rows = R,
                              .first_position = begin,
                              .positions = positions,
                              .run = ragged_ ? b_.place.run : positions,
                              .segment = ragged_ ? segment_of(R) : 0,
                              .row_stride = ragged_ ? row_stride() : width});
    }
    if (ragged_) {
      const std::int64_t run = b_.place.run;
      const std::int64_t segment = segment_of(R), stride = row_stride();
      const std::int64_t length = b_.place.joined ? R * run : run;
      const bool later = segment == length;  // all of it is whole lines
      for (std::int64_t q = 0; q * run < positions; ++q) {
        T* const column = b_.c + b_.place.run_at[begin / run + q];
        for (std::int64_t r = 0; r < (b_.place.joined ? 1 : R); ++r) {
          T* const to = column + row_at[r];
          if (later) {
            for (std::int64_t i = 0; i < length; i += N) writer_.targets[count++] = to + i;
          } else {
            const T* const from = stage + q * segment + r * stride;
            std::copy(from, from + length, to);
          }
        }
      }
    } else {
      // Neighbours one after another: the lines of a run leave together.
      T* to[kStreamVectors] = {b_.c, b_.c, b_.c};
      const std::int64_t vectors = (positions + N - 1) / N;
      for (std::int64_t v = 0; v < vectors; ++v) {
        to[v] = b_.c + b_.place.vector_at[begin / N + v];
      }
      T** target = writer_.targets;
      for (std::int64_t r = 0; r < R; ++r) {
        const std::int64_t row = row_at[r];
        HWY_UNROLL(4)
        for (std::int64_t v = 0; v < kStreamVectors; ++v) target[v] = to[v] + row;
        target += vectors;
      }
      count = R * vectors;
    }
    writer_.count = count;
    writer_.filling = 1 - writer_.filling;
  }

  // A vector of a group: how many of its lanes belong to the run it begins in, from `inside` on.
  struct Piece {
    std::int32_t run, inside, here;
  };

  const StreamBlock<T>& b_;
  StreamWriter<T>& writer_;
  const Packer<T> packer_;
  const std::int64_t jobs_;
  const bool ragged_;
  // Lines of jobs ahead, and those of a whole tile beyond them.
  static constexpr std::int64_t kLines = 1024;
  const char* lines_[kLines + kStreamSteps];
  std::int64_t fetched_ = 0, line_count_ = 0;
  Meanwhile<T> meanwhile_;
  Piece pieces_[StreamWriter<T>::kMostElements / N];
};

template <class T>
void multiply_stream(const StreamBlock<T>& block) noexcept {
  StreamProduct<T>(block).run();
}

template <class T>
void pack_stream(const StreamPack<T>& block) noexcept {
  const Packer<T> packer(block);
  for (std::int64_t job = 0; job < packer.jobs(); ++job) packer.run(job);
}

template <class T>
void finish_stream(StreamWriter<T>& writer) noexcept {
  const hn::ScalableTag<T> d;
  const T* const stage = writer.stage[1 - writer.filling];
  for (std::int64_t i = 0; i < writer.count; ++i) {
    hn::StoreU(hn::Load(d, stage + i * static_cast<std::int64_t>(hn::Lanes(d))), d,
               writer.targets[i]);
  }
  writer.count = 0;
  hwy::FlushStream();
}

void FillStream(StreamKernels& kernels) {
  kernels.f32 = {pack_stream<float>, multiply_stream<float>, finish_stream<float>, kStreamTile};
  kernels.f64 = {pack_stream<double>, multiply_stream<double>, finish_stream<double>, kStreamTile};
}

}  // namespace
}  // namespace einkern::kernel::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace einkern::kernel {

HWY_EXPORT(FillStream);

void fill_stream(StreamKernels& kernels) { HWY_DYNAMIC_DISPATCH(FillStream)(kernels); }

}  // namespace einkern::kernel
#endif  // HWY_ONCE
