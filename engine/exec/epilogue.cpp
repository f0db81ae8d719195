// SPDX-License-Identifier: Apache-2.0
// Cuts boxes of sums into rectangles that are evenly spaced in every tensor of the program.
#include "epilogue.h"

#include <algorithm>
#include <cstdlib>

#include "elementwise.h"

namespace einkern::exec {
namespace {

Space space_of(const plan::Map& map) {
  SmallVector<bool, 8> pinned(map.out.layout.rank());
  for (const map::Instruction& code : map.program.code) {
    if (code.op == map::Op::index) pinned[static_cast<std::size_t>(code.arg)] = true;
  }
  SmallVector<const Dims*, 8> views{&map.out.layout.strides};
  for (const plan::Operand& input : map.inputs) views.push_back(&input.layout.strides);
  return make_space(map.out.layout.shape, views, pinned);
}

}  // namespace

Epilogue::Epilogue(const plan::Contract& step, const Frame& frame)
    : map_(*step.epilogue),
      copy_(frame.kernels.copy),
      program_(map_.program, frame.scalars, frame.kernels.map),
      space_(space_of(map_)) {
  const auto add = [&](const plan::Operand& operand) {
    data_.push_back(frame.address(operand));
    bytes_.push_back(static_cast<std::int64_t>(size_of(operand.dtype)));
    is_sum_.push_back(operand.value == step.c.value);
  };
  add(map_.out);
  for (const plan::Operand& input : map_.inputs) add(input);
}

void Epilogue::finish() const {
  if (fault_ != kernel::kNoFault) raise_fault(map_.program, fault_);
}

Epilogue::Task::Task(const Epilogue& epilogue, std::byte* scratch)
    : epilogue_(epilogue),
      scratch_(scratch),
      operands_(epilogue.data_.size()),
      tile_(epilogue.data_.size()),
      indices_(epilogue.map_.out.layout.rank()),
      tile_indices_(epilogue.map_.out.layout.rank()),
      fault_(epilogue.program_.prepare(scratch, epilogue.program_.capacity())) {}

Epilogue::Task::~Task() {
  if (streamed_) epilogue_.copy_.fence();
  keep_least(epilogue_.fault_, fault_);
}

/// The longest run from entry `first` of a list on, whose first entry is at `place` of c without
/// the other list. Digits nest (plan/epilogue.h), so that what one list does to the digits of a
/// position does not depend on the entry of the other.
Epilogue::Task::Run Epilogue::Task::run_at(const std::int64_t* list, std::int64_t count,
                                           std::int64_t first, std::int64_t place) const noexcept {
  Run run{first};
  if (first + 1 >= count) return run;
  const Space& space = epilogue_.space_;
  const Dims& places = space.strides[0];
  const std::int64_t step = list == nullptr ? 1 : list[first + 1] - list[first];
  std::size_t axis = 0;
  while (axis < space.rank() && places[axis] > step) ++axis;
  if (axis == space.rank() || step % places[axis] != 0) return run;
  run.axis = axis;
  run.step = step / places[axis];
  const std::int64_t digit = place / places[axis] % space.sizes[axis];
  const std::int64_t most = std::min(count - first, (space.sizes[axis] - 1 - digit) / run.step + 1);
  if (list == nullptr) {
    run.count = most;
    return run;
  }
  while (run.count < most && list[first + run.count] - list[first + run.count - 1] == step) {
    ++run.count;
  }
  return run;
}

void Epilogue::Task::apply(const SumBox& box) noexcept {
  for (std::int64_t r = 0; r < box.row_count;) {
    const Run rows = run_at(box.rows, box.row_count, r, box.first + box.rows[r]);
    for (std::int64_t s = 0; s < box.column_count;) {
      const std::int64_t column = box.columns == nullptr ? s : box.columns[s];
      const Run columns = run_at(box.columns, box.column_count, s, box.first + column);
      apply_runs(box, rows, columns, box.first + box.rows[r] + column);
      s += columns.count;
    }
    r += rows.count;
  }
}

void Epilogue::Task::apply_runs(const SumBox& box, const Run& rows, const Run& columns,
                                std::int64_t place) noexcept {
  const Space& space = epilogue_.space_;
  for (std::size_t v = 0; v < operands_.size(); ++v) operands_[v] = {epilogue_.data_[v]};
  for (std::size_t axis = 0; axis < space.rank(); ++axis) {
    const std::int64_t digit = place / space.strides[0][axis];
    place -= digit * space.strides[0][axis];
    const std::int64_t row_step = axis == rows.axis ? rows.step : 0;
    const std::int64_t step = axis == columns.axis ? columns.step : 0;
    for (std::size_t v = 0; v < operands_.size(); ++v) {
      const std::int64_t stride = space.strides[v][axis];
      operands_[v].data += digit * stride * epilogue_.bytes_[v];
      operands_[v].row_stride += row_step * stride;
      operands_[v].stride += step * stride;
    }
    if (const std::int64_t origin = space.origins[axis]; origin >= 0) {
      indices_[static_cast<std::size_t>(origin)] = {digit, row_step, step};
    }
  }
  for (std::size_t v = 0; box.staged != nullptr && v < operands_.size(); ++v) {
    if (!epilogue_.is_sum_[v] || (v == 0 && !box.stay)) continue;
    const std::int64_t first = rows.first * box.stride + columns.first;
    operands_[v] = {static_cast<std::byte*>(box.staged) + first * epilogue_.bytes_[v], box.stride,
                    1};
  }
  run_tiles(rows.count, columns.count, box.stores);
}

void Epilogue::Task::run_tiles(std::int64_t rows, std::int64_t columns,
                               kernel::Stores stores) noexcept {
  const std::int64_t capacity = epilogue_.program_.capacity();
  const bool across = std::any_of(operands_.begin(), operands_.end(),
                                  [](const auto& operand) { return std::abs(operand.stride) > 1; });
  const std::int64_t tile_columns =
      std::min({columns, capacity, across ? kTransposeSide : columns});
  const std::int64_t tile_rows = std::clamp<std::int64_t>(
      across ? std::min(kTransposeSide, capacity / tile_columns) : capacity / tile_columns, 1,
      rows);
  for (std::int64_t r = 0; r < rows; r += tile_rows) {
    for (std::int64_t s = 0; s < columns; s += tile_columns) {
      for (std::size_t v = 0; v < operands_.size(); ++v) {
        tile_[v] = operands_[v];
        tile_[v].data +=
            (r * operands_[v].row_stride + s * operands_[v].stride) * epilogue_.bytes_[v];
      }
      for (std::size_t i = 0; i < indices_.size(); ++i) {
        tile_indices_[i] = indices_[i];
        tile_indices_[i].start += r * indices_[i].row_step + s * indices_[i].step;
      }
      fault_ = std::min(
          fault_,
          epilogue_.program_.run({.rows = std::min(tile_rows, rows - r),
                                  .columns = std::min(tile_columns, columns - s),
                                  .inputs = std::span<const kernel::TileOperand>(tile_).subspan(1),
                                  .indices = tile_indices_,
                                  .out = tile_[0],
                                  .stores = stores},
                                 scratch_));
    }
  }
  streamed_ |= stores == kernel::Stores::streaming;
}

void run_epilogue(const plan::Contract& step, const Frame& frame) {
  if (step.epilogue) run(*step.epilogue, frame);
}

}  // namespace einkern::exec
