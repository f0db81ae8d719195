// SPDX-License-Identifier: Apache-2.0
// The step that copies a view into another, converting and transposing on the way.
#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <optional>

#include "../base/error.h"
#include "elementwise.h"
#include "frame.h"
#include "parallel.h"
#include "parts.h"
#include "space.h"
#include "stores.h"

namespace einkern::exec {
namespace {

constexpr std::int64_t kCopyTaskBytes = 256 << 10;  // of one task: a part of L2
constexpr std::int64_t kMemcpyRun = 256;            // bytes for which a call of memcpy pays
constexpr std::int64_t kSide = 64;  // of a transposed tile: 256 or 512 bytes, whole lines

/// The views of a copy over common axes: 0 is the output, 1 the input.
struct Move {
  std::byte* out;
  const std::byte* in;
  std::int64_t element;  // bytes
  Space space;
  kernel::Stores stores;
  const kernel::CopyKernels& kernels;

  double work() const { return static_cast<double>(space.size()); }
  void finish() const {
    if (stores == kernel::Stores::streaming) kernels.fence();
  }
};

/// Orders the first `count` axes by the strides of the input, so that reads go on where they
/// stopped.
void follow_input(Space& space, std::size_t count) {
  for (std::size_t done = 0; done + 1 < count; ++done) {
    std::size_t farthest = done;
    for (std::size_t axis = done + 1; axis < count; ++axis) {
      if (std::abs(space.strides[1][axis]) > std::abs(space.strides[1][farthest])) farthest = axis;
    }
    space.move_axis(farthest, done);
  }
}

/// Both views dense along the last axis: runs of bytes, long ones in pieces. Lines that go around
/// the caches may be written in any order, so that reads alone go on: abcd->cabd of 64 x 64 x 64 x
/// 64 takes 3.3 ms on two cores of an EPYC 9004, 6.2 ms where writes go on too.
void copy_runs(Move& move) {
  const std::size_t stay = move.stores == kernel::Stores::streaming ? 1 : 2;
  if (move.space.rank() > stay + 1) follow_input(move.space, move.space.rank() - stay);
  const std::size_t last = move.space.rank() == 0 ? 0 : move.space.rank() - 1;
  const std::int64_t run = (move.space.rank() == 0 ? 1 : move.space.sizes[last]) * move.element;
  const std::int64_t runs = move.space.size() * move.element / run;
  const std::int64_t pieces = divide_up(run, kCopyTaskBytes);
  const std::int64_t group = std::max<std::int64_t>(1, kCopyTaskBytes / run);
  // The axis outside the runs, step by step: their offsets are sums, not divisions.
  const bool steps = last > 0;
  const std::int64_t near = steps ? move.space.sizes[last - 1] : 1;
  const std::int64_t out_step = steps ? move.space.strides[0][last - 1] * move.element : 0;
  const std::int64_t in_step = steps ? move.space.strides[1][last - 1] * move.element : 0;
  parallel_for(divide_up(runs, group) * pieces, move.work(), [&](std::int64_t task) {
    const std::int64_t begin = task % pieces * kCopyTaskBytes;
    const std::int64_t bytes = std::min(kCopyTaskBytes, run - begin);
    const std::int64_t first = task / pieces * group, end = std::min(runs, first + group);
    for (std::int64_t i = first; i < end;) {
      const std::int64_t place = i % near, outer = i / near;
      const std::int64_t count = std::min(near - place, end - i);
      std::byte* to = move.out + place * out_step + begin;
      const std::byte* from = move.in + place * in_step + begin;
      if (steps) {
        to += move.space.offset(0, outer, last - 1) * move.element;
        from += move.space.offset(1, outer, last - 1) * move.element;
      }
      for (std::int64_t r = 0; r < count; ++r, to += out_step, from += in_step) {
        if (move.stores == kernel::Stores::streaming) {
          move.kernels.stream(from, to, bytes);
        } else {
          std::memcpy(to, from, static_cast<std::size_t>(bytes));
        }
      }
      i += count;
    }
    move.finish();
  });
}

/// A tile of the input, rows of neighbours, and where its columns go.
struct TransposedTile {
  const std::byte* in;
  std::byte* out;
  std::int64_t rows, columns;
};

/// Asks for the rows of a tile into L2, in order of address: the one order that memory and all
/// prefetchers follow.
class TileAhead {
 public:
  TileAhead(const TransposedTile& tile, std::int64_t in_step, std::int64_t element)
      : from_(tile.in), rows_(tile.rows), in_step_(in_step), run_(tile.columns * element) {}

  /// What is left of the first `rows` rows.
  void fetch(std::int64_t rows) {
    constexpr int kRead = 0, kSecondLevel = 2;
    for (const std::int64_t end = std::min(rows, rows_); done_ < end; ++done_) {
      for (std::int64_t at = 0; at < run_; at += kLineBytes) {
        __builtin_prefetch(from_ + done_ * in_step_ + at, kRead, kSecondLevel);
      }
    }
  }

 private:
  const std::byte* from_;
  std::int64_t rows_, in_step_, run_;  // bytes
  std::int64_t done_ = 0;
};

/// The output dense along its last axis, the input along another one: moves tiles of the two.
class Transposing {
 public:
  Transposing(const Move& move, std::int64_t in_stride, std::int64_t out_stride)
      : transpose_(move.element == 4 ? move.kernels.transpose_4 : move.kernels.transpose_8),
        stores_(move.stores),
        element_(move.element),
        block_(kLineBytes / move.element),
        in_stride_(in_stride),
        out_stride_(out_stride),
        meet_(in_stride * move.element % kSameSet == 0) {}

  /// What fits the caches.
  void run(const TransposedTile& tile) const {
    transpose_(tile.in, in_stride_, tile.out, out_stride_, tile.rows, tile.columns, stores_);
  }

  /// While `next` is asked for: its 64 rows are more streams than the hardware follows. abcd->dcba
  /// of 64 x 64 x 64 x 64 takes 4.3 ms so on two cores of an EPYC 9004, 8.9 ms with the blocks
  /// themselves asked for ahead, and abcd->abdc 3.4 ms, 7.1 ms without.
  void run(const TransposedTile& tile, const TransposedTile& next) const {
    TileAhead ahead(next, in_stride_ * element_, element_);
    if (!meet_) return run_blocks(tile, in_stride_, ahead, 0);
    // Rows that meet in one set of the caches push each other out: they are copied first.
    alignas(kLineBytes) std::byte stage[kSide * kStageStep];
    const std::int64_t stage_stride = kSide + block_;
    const auto run = static_cast<std::size_t>(tile.columns * element_);
    for (std::int64_t row = 0; row < tile.rows; ++row) {
      ahead.fetch((row + 1) / 2);
      std::memcpy(stage + row * stage_stride * element_, tile.in + row * in_stride_ * element_,
                  run);
    }
    run_blocks({stage, tile.out, tile.rows, tile.columns}, stage_stride, ahead, tile.rows / 2);
  }

 private:
  static constexpr std::int64_t kSameSet = 4096;
  static constexpr std::int64_t kStageStep = kSide * 8 + kLineBytes;  // an odd number of lines

  /// Blocks of whole lines, down the rows, so that writes go on; `fetched` rows of the next tile
  /// are asked for already.
  void run_blocks(const TransposedTile& tile, std::int64_t in_stride, TileAhead& ahead,
                  std::int64_t fetched) const {
    const std::int64_t blocks = divide_up(tile.rows, block_) * divide_up(tile.columns, block_);
    std::int64_t done = 0;
    for (std::int64_t c = 0; c < tile.columns; c += block_) {
      for (std::int64_t r = 0; r < tile.rows; r += block_) {
        ++done;
        ahead.fetch(fetched + (kSide - fetched) * done / blocks);
        transpose_(tile.in + (r * in_stride + c) * element_, in_stride,
                   tile.out + (c * out_stride_ + r) * element_, out_stride_,
                   std::min(block_, tile.rows - r), std::min(block_, tile.columns - c), stores_);
      }
    }
  }

  kernel::CopyKernels::Transpose transpose_;
  kernel::Stores stores_;
  std::int64_t element_, block_, in_stride_, out_stride_;
  bool meet_;
};

/// The output dense along its last axis, the input along `dense`: square tiles of the two.
void copy_transposed(Move& move, std::size_t dense) {
  Space& space = move.space;
  const std::size_t last = space.rank() - 1;
  space.move_axis(dense, last - 1);
  follow_input(space, last - 1);
  const std::int64_t rows = space.sizes[last], columns = space.sizes[last - 1];
  const std::int64_t in_stride = space.strides[1][last], out_stride = space.strides[0][last - 1];
  const std::int64_t row_tiles = divide_up(rows, kSide), column_tiles = divide_up(columns, kSide);
  const std::int64_t tiles = space.size() / (rows * columns) * row_tiles * column_tiles;
  const std::int64_t group = std::max<std::int64_t>(
      1, kCopyTaskBytes / (std::min(rows, kSide) * std::min(columns, kSide) * move.element));
  const bool ahead = move.stores == kernel::Stores::streaming;
  const auto tile_at = [&](std::int64_t tile) {
    // Asked for ahead, reads had better go on where they stopped; else writes.
    const std::int64_t row = (ahead ? tile / column_tiles % row_tiles : tile % row_tiles) * kSide;
    const std::int64_t column =
        (ahead ? tile % column_tiles : tile / row_tiles % column_tiles) * kSide;
    const std::int64_t outer = tile / row_tiles / column_tiles;
    return TransposedTile{
        move.in + (space.offset(1, outer, last - 1) + row * in_stride + column) * move.element,
        move.out + (space.offset(0, outer, last - 1) + column * out_stride + row) * move.element,
        std::min(kSide, rows - row), std::min(kSide, columns - column)};
  };
  const Transposing transposing(move, in_stride, out_stride);
  parallel_for(divide_up(tiles, group), move.work(), [&](std::int64_t task) {
    for (std::int64_t tile = task * group; tile < std::min(tiles, (task + 1) * group); ++tile) {
      if (ahead) {
        transposing.run(tile_at(tile), tile_at(std::min(tile + 1, tiles - 1)));
      } else {
        transposing.run(tile_at(tile));
      }
    }
    move.finish();
  });
}

/// The axis along which the input is dense while the output is dense along the last one; none when
/// a tile in registers would not help.
std::optional<std::size_t> transposed_axis(const Space& space, std::int64_t element) {
  constexpr std::int64_t kLeastSide = 4;
  if (space.rank() < 2 || element < 4) return {};
  const std::size_t last = space.rank() - 1;
  if (space.strides[0][last] != 1 || space.strides[1][last] == 0) return {};
  if (space.sizes[last] < kLeastSide) return {};
  for (std::size_t axis = 0; axis < last; ++axis) {
    if (space.strides[1][axis] == 1 && space.sizes[axis] >= kLeastSide) return axis;
  }
  return {};
}

/// Everything else: a program that loads, and converts when the dtypes differ.
void copy_elements(const plan::Copy& step, const Frame& frame) {
  map::Program program;
  const std::int32_t value = program.emit({.op = map::Op::load, .dtype = step.in.dtype});
  if (step.in.dtype != step.out.dtype) {
    program.emit({.op = map::Op::cast, .dtype = step.out.dtype, .a = value});
  }
  const kernel::TileFault fault =
      run_elementwise(program, std::span(&step.in, 1), step.out, {}, frame);
  if (fault != kernel::kNoFault) {
    fail<ValueError>(fmt::format("astype: a value does not fit {}", name_of(step.out.dtype)));
  }
}

}  // namespace

void run(const plan::Copy& step, const Frame& frame) {
  EINKERN_CHECK(step.in.layout.shape == step.out.layout.shape);
  if (step.in.dtype != step.out.dtype) return copy_elements(step, frame);
  const auto element = static_cast<std::int64_t>(size_of(step.out.dtype));
  Move move{.out = frame.address(step.out),
            .in = frame.address(step.in),
            .element = element,
            .space = make_space(step.out.layout.shape,
                                {&step.out.layout.strides, &step.in.layout.strides}),
            .stores = kernel::Stores::cached,  // until the size is known
            .kernels = frame.kernels.copy};
  const Space& space = move.space;
  const std::int64_t size = space.size();
  if (size == 0) return;
  move.stores = stores_for(static_cast<double>(size * element));

  const bool dense =
      space.rank() == 0 || (space.strides[0].back() == 1 && space.strides[1].back() == 1);
  if (dense && (space.rank() <= 1 || space.sizes.back() * element >= kMemcpyRun)) {
    copy_runs(move);
  } else if (const auto axis = transposed_axis(space, element); axis && !dense) {
    copy_transposed(move, *axis);
  } else {
    copy_elements(step, frame);
  }
}

}  // namespace einkern::exec
