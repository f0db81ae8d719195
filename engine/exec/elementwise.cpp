// SPDX-License-Identifier: Apache-2.0
// Cuts an index space into tiles and hands groups of them to threads.
#include "elementwise.h"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <cstdlib>

#include "../base/error.h"
#include "parallel.h"
#include "scratch.h"
#include "space.h"
#include "stores.h"

namespace einkern::exec {
namespace {

using kernel::Tile;
using kernel::TileFault;
using kernel::TileIndex;
using kernel::TileOperand;
using kernel::TileProgram;

constexpr std::int64_t kMapTaskElements = 32768;  // enough to pay for a task, few enough to balance

/// How a space is cut: its last two axes into tiles, the others one position at a time.
struct Tiling {
  std::int64_t rows = 1, columns = 1;  // of the last two axes
  std::int64_t tile_rows = 1, tile_columns = 1;
  std::int64_t row_tiles = 1, column_tiles = 1;
  std::int64_t outer = 1;  // positions of the other axes

  std::int64_t tiles() const noexcept { return outer * row_tiles * column_tiles; }
};

/// Makes the axis along which some input is dense the second last when the input is not dense along
/// the last one. Tiles are then square, so that both sides use whole cache lines.
bool prepare_transposes(Space& space) {
  const std::size_t last = space.rank() - 1;
  for (std::size_t v = 1; v < space.strides.size(); ++v) {
    if (std::abs(space.strides[v][last]) <= 1) continue;
    for (std::size_t axis = 0; axis < last; ++axis) {
      if (std::abs(space.strides[v][axis]) != 1) continue;
      space.move_axis(axis, last - 1);
      return true;
    }
  }
  return false;
}

Tiling tile_space(const Space& space, bool transposes, std::int64_t capacity) {
  Tiling result;
  const std::size_t rank = space.rank();
  if (rank > 0) result.columns = space.sizes[rank - 1];
  if (rank > 1) result.rows = space.sizes[rank - 2];
  for (std::size_t axis = 0; axis + 2 < rank; ++axis) result.outer *= space.sizes[axis];
  if (transposes) {
    result.tile_rows = std::min({result.rows, kTransposeSide, capacity / kTransposeSide});
    result.tile_columns = std::min(result.columns, kTransposeSide);
  } else {
    result.tile_columns = std::min(result.columns, capacity);
    result.tile_rows = std::min(result.rows, std::max<std::int64_t>(1, capacity / result.columns));
  }
  result.row_tiles = (result.rows + result.tile_rows - 1) / result.tile_rows;
  result.column_tiles = (result.columns + result.tile_columns - 1) / result.tile_columns;
  return result;
}

using TileOperands = SmallVector<TileOperand, 8>;
using TileIndices = SmallVector<TileIndex, 8>;

/// Everything that the tiles of one step share.
class Run {
 public:
  Run(const TileProgram& program, Space space, const Tiling& tiling, TileOperands operands,
      SmallVector<DType, 8> dtypes, std::size_t axes, const kernel::CopyKernels& copy)
      : program_(program),
        space_(std::move(space)),
        tiling_(tiling),
        operands_(std::move(operands)),
        dtypes_(std::move(dtypes)),
        axes_(axes),
        copy_(copy) {
    stores_ =
        stores_for(static_cast<double>(space_.size()) * static_cast<double>(size_of(dtypes_[0])));
  }

  TileFault run(std::int64_t first, std::int64_t last) const {
    const ScratchBlock memory(program_.scratch_bytes());
    TileOperands operands(operands_.size());  // the output, then the inputs
    TileIndices indices(axes_);
    TileFault fault = program_.prepare(memory.data(), tiling_.tile_rows * tiling_.tile_columns);
    for (std::int64_t tile = first; tile < last; ++tile) {
      fault = std::min(fault, run_tile(tile, operands, indices, memory.data()));
    }
    if (stores_ == kernel::Stores::streaming) copy_.fence();
    return fault;
  }

 private:
  TileFault run_tile(std::int64_t tile, TileOperands& operands, TileIndices& indices,
                     std::byte* scratch) const {
    const std::int64_t column = tile % tiling_.column_tiles * tiling_.tile_columns;
    const std::int64_t row = tile / tiling_.column_tiles % tiling_.row_tiles * tiling_.tile_rows;
    std::int64_t outer = tile / tiling_.column_tiles / tiling_.row_tiles;
    const std::size_t rank = space_.rank();
    const std::size_t outer_axes = rank > 2 ? rank - 2 : 0;
    for (std::size_t v = 0; v < operands.size(); ++v) {
      const std::int64_t at = space_.offset(v, outer, outer_axes) + row * operands_[v].row_stride +
                              column * operands_[v].stride;
      operands[v] = operands_[v];
      operands[v].data += at * static_cast<std::int64_t>(size_of(dtypes_[v]));
    }
    for (std::size_t axis = rank; axis-- > 0;) {
      TileIndex index;
      if (axis + 1 == rank) {
        index = {column, 0, 1};
      } else if (axis + 2 == rank) {
        index = {row, 1, 0};
      } else {
        index = {outer % space_.sizes[axis], 0, 0};
        outer /= space_.sizes[axis];
      }
      if (const std::int64_t origin = space_.origins[axis]; origin >= 0) {
        indices[static_cast<std::size_t>(origin)] = index;
      }
    }
    return program_.run({.rows = std::min(tiling_.tile_rows, tiling_.rows - row),
                         .columns = std::min(tiling_.tile_columns, tiling_.columns - column),
                         .inputs = std::span(operands).subspan(1),
                         .indices = indices,
                         .out = operands[0],
                         .stores = stores_},
                        scratch);
  }

  const TileProgram& program_;
  Space space_;
  Tiling tiling_;
  TileOperands operands_;  // at the first element, with the steps of a tile
  SmallVector<DType, 8> dtypes_;
  std::size_t axes_;
  const kernel::CopyKernels& copy_;
  kernel::Stores stores_ = kernel::Stores::cached;
};

}  // namespace

TileFault run_elementwise(const map::Program& program, std::span<const plan::Operand> inputs,
                          const plan::Operand& out, std::span<const map::Scalar> scalars,
                          const Frame& frame) {
  const Dims& shape = out.layout.shape;
  SmallVector<bool, 8> pinned(shape.size());
  for (const map::Instruction& code : program.code) {
    if (code.op == map::Op::index) pinned[static_cast<std::size_t>(code.arg)] = true;
  }
  SmallVector<const Dims*, 8> views{&out.layout.strides};
  TileOperands operands{{frame.address(out)}};
  SmallVector<DType, 8> dtypes{out.dtype};
  for (const plan::Operand& input : inputs) {
    views.push_back(&input.layout.strides);
    operands.push_back({frame.address(input)});
    dtypes.push_back(input.dtype);
  }

  Space space = make_space(shape, views, pinned);
  const std::int64_t size = space.size();
  if (size == 0) return kernel::kNoFault;
  const std::size_t rank = space.rank();
  const bool transposes = rank > 1 && prepare_transposes(space);
  for (std::size_t v = 0; v < operands.size(); ++v) {
    if (rank > 0) operands[v].stride = space.strides[v][rank - 1];
    if (rank > 1) operands[v].row_stride = space.strides[v][rank - 2];
  }

  const TileProgram tiles(program, scalars, frame.kernels.map);
  const Tiling tiling = tile_space(space, transposes, tiles.capacity());
  const Run run(tiles, std::move(space), tiling, std::move(operands), std::move(dtypes),
                shape.size(), frame.kernels.copy);
  const std::int64_t group =
      std::max<std::int64_t>(1, kMapTaskElements / (tiling.tile_rows * tiling.tile_columns));
  const std::int64_t tasks = (tiling.tiles() + group - 1) / group;
  const double work = static_cast<double>(size) * static_cast<double>(program.code.size());
  std::atomic<TileFault> least = kernel::kNoFault;
  parallel_for(tasks, work, [&](std::int64_t task) {
    keep_least(least, run.run(task * group, std::min(tiling.tiles(), (task + 1) * group)));
  });
  return least;
}

void keep_least(std::atomic<TileFault>& least, TileFault fault) noexcept {
  TileFault seen = least.load(std::memory_order_relaxed);
  while (fault < seen && !least.compare_exchange_weak(seen, fault, std::memory_order_relaxed)) {
  }
}

void raise_fault(const map::Program& program, kernel::TileFault fault) {
  const map::Instruction& code = program.code[kernel::instruction_of(fault)];
  const std::string_view op = map::name_of(code.op);
  switch (kernel::reason_of(fault)) {
    case kernel::MapFault::none:
      break;
    case kernel::MapFault::overflow:
      fail<ValueError>(fmt::format("{}: integer overflow", op));
    case kernel::MapFault::division_by_zero:
      fail<ValueError>(fmt::format("{}: division by zero", op));
    case kernel::MapFault::negative_power:
      fail<ValueError>(fmt::format("{}: negative integer power", op));
    case kernel::MapFault::out_of_range:
      fail<ValueError>(fmt::format("astype: a value does not fit {}", name_of(code.dtype)));
  }
  fail_check("a fault has a reason", __FILE__, __LINE__);
}

}  // namespace einkern::exec
