// SPDX-License-Identifier: Apache-2.0
// Biases that depend on the difference of key and row: evaluated once per step, not once per box.
#include <algorithm>
#include <limits>

#include "../base/error.h"
#include "attend_scores.h"
#include "parallel.h"
#include "scratch.h"

namespace einkern::exec {
namespace {

// Beyond, boxes evaluate their own.
constexpr std::int64_t kMostBytes = std::int64_t{4} << 20;

}  // namespace

bool AttendScores::is_simple(const AttendBox& box) const noexcept {
  return box.row / rows_.run() == (box.row + box.rows - 1) / rows_.run() &&
         box.key / keys_.run() == (box.key + box.keys - 1) / keys_.run();
}

void AttendScores::evaluate_differences(const kernel::TileProgram& program, const AttendBox& box,
                                        std::int64_t most, std::int64_t count, std::byte* out,
                                        std::size_t bytes, std::byte* scratch) const noexcept {
  const std::size_t rank = step_.axes.size();
  Dims index(rank, 0);
  batch_.locate(box.batch, index);
  rows_.locate(box.row, index);
  keys_.locate(box.key, index);
  SmallVector<kernel::TileIndex, 6> indices(rank);
  for (std::size_t axis = 0; axis < rank; ++axis) indices[axis] = {index[axis], 0, 0};
  SmallVector<kernel::TileOperand, 6> operands(inputs_.size() + 1);
  for (std::size_t i = 0; i < inputs_.size(); ++i) {
    const Input& input = inputs_[i];
    std::int64_t offset = 0;
    for (std::size_t axis = 0; axis < rank; ++axis) offset += index[axis] * input.strides[axis];
    operands[i + 1] = {.data = const_cast<std::byte*>(input.data) +
                               offset * static_cast<std::int64_t>(size_of(input.dtype))};
  }
  // The row stays; the key falls.
  const std::int64_t row = index[static_cast<std::size_t>(rows_.innermost())];
  for (std::int64_t i = 0; i < count; i += program.capacity()) {
    indices[static_cast<std::size_t>(keys_.innermost())] = {row + most - i, 0, -1};
    program.run(
        {.columns = std::min(program.capacity(), count - i),
         .inputs = operands,
         .indices = indices,
         .out = {.data = out + i * static_cast<std::int64_t>(bytes), .row_stride = 0, .stride = 1}},
        scratch);
  }
}

/// Over what the segments need, for forms whose bias is the same along all but one axis of rows and
/// of keys.
void AttendScores::evaluate_all_differences() {
  if (rows_.count() < lanes_ || rows_.innermost() < 0 || keys_.innermost() < 0) return;
  const std::int64_t row_run = rows_.run(), key_run = keys_.run();
  for (const auto& [program, owned] : forms_) {
    ScoreForm& form = *owned;
    if (!form.by_difference || !form.same_outside) continue;
    std::int64_t least = std::numeric_limits<std::int64_t>::max();
    std::int64_t most = std::numeric_limits<std::int64_t>::lowest();
    for (std::size_t at = 0; at < segments_.size(); ++at) {
      // One list for all tiles stands for every row.
      const auto [row, rows] = one_list_
                                   ? RowTiles::Tile{0, rows_.count()}
                                   : tiles_.at(static_cast<std::int64_t>(at) % tiles_.count());
      const bool whole = row / row_run != (row + rows - 1) / row_run;
      const std::int64_t first_row = whole ? 0 : row % row_run;
      const std::int64_t last_row = whole ? row_run - 1 : first_row + rows - 1;
      for (const Segment& segment : segments_[at]) {
        if (segment.form != &form) continue;
        const bool split = segment.key / key_run != (segment.key + segment.keys - 1) / key_run;
        const std::int64_t first_key = split ? 0 : segment.key % key_run;
        const std::int64_t last_key = split ? key_run - 1 : first_key + segment.keys - 1;
        least = std::min(least, first_key - last_row);
        most = std::max(most, last_key - first_row);
      }
    }
    // Lanes beyond the last row read on.
    if (most >= least) evaluate_differences_of(form, least - tiles_.most(), most);
  }
}

void AttendScores::evaluate_differences_of(ScoreForm& form, std::int64_t least, std::int64_t most) {
  const bool batched = form.by_batch;
  const std::int64_t line = 64 / static_cast<std::int64_t>(dot_bytes_);
  const std::int64_t count = (most - least + 1 + line - 1) / line * line;
  const std::int64_t tables = batched ? batch_.count() : 1;
  const std::int64_t bytes = count * tables * static_cast<std::int64_t>(dot_bytes_);
  if (bytes > kMostBytes) return;
  auto values = allocate_scratch(static_cast<std::size_t>(bytes));
  const auto work = static_cast<double>(count * tables);
  parallel_for(tables, work, [&](std::int64_t batch) {
    const ScratchBlock scratch(form.program->scratch_bytes());
    form.program->prepare(scratch.data(), form.program->capacity());
    evaluate_differences(*form.program, {.batch = batch}, most, count,
                         static_cast<std::byte*>(values->data()) +
                             static_cast<std::size_t>(batch * count) * dot_bytes_,
                         dot_bytes_, scratch.data());
  });
  const auto moderate = [&]<class T>(std::type_identity<T>) {
    return frame_.kernels.attend.of<T>().moderate(static_cast<const T*>(values->data()),
                                                  count * tables);
  };
  const bool ordinary = step_.q.dtype == DType::f32 ? moderate(std::type_identity<float>())
                                                    : moderate(std::type_identity<double>());
  if (!ordinary) return;
  form.differences = {.values = std::move(values),
                      .most = most,
                      .count = count,
                      .batch_stride = batched ? count : 0};
}

}  // namespace einkern::exec
