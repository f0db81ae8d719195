// SPDX-License-Identifier: Apache-2.0
// Prepares the forms of a score program and evaluates them over boxes.
#include "attend_scores.h"

#include <algorithm>

#include "../base/error.h"
#include "attend_form.h"
#include "attend_weights.h"

namespace einkern::exec {
namespace {

using kernel::TileIndex;
using kernel::TileOperand;

std::int64_t stride_at(const Dims& strides, std::int64_t axis) {
  return axis < 0 ? 0 : strides[static_cast<std::size_t>(axis)];
}

}  // namespace

bool has_conditions(const map::Program& program) {
  return std::any_of(program.code.begin(), program.code.end(),
                     [](const map::Instruction& code) { return code.dtype == DType::boolean; });
}

AttendScores::AttendScores(const plan::Attend& step, const Frame& frame, const AttendAxes& batch,
                           const AttendAxes& rows, const AttendAxes& keys,
                           const RowTiles& row_tiles, std::int64_t lanes)
    : step_(step),
      frame_(frame),
      batch_(batch),
      rows_(rows),
      keys_(keys),
      scalars_(frame.scalars.begin(), frame.scalars.end()),
      dot_bytes_(size_of(step.q.dtype)),
      tiles_(row_tiles),
      lanes_(lanes) {
  EINKERN_CHECK(step.scores.dtype() == step.q.dtype);
  for (const plan::Operand& input : step.inputs) {
    EINKERN_CHECK(input.layout.rank() == step.axes.size());
    inputs_.push_back({.data = frame.address(input),
                       .dtype = input.dtype,
                       .strides = input.layout.strides,
                       .decides = false});
  }
  general_.program.emplace(step.scores, frame.scalars, frame.kernels.map);
  scratch_bytes_ = general_.program->scratch_bytes();
  if (!step.visible.code.empty()) {
    EINKERN_CHECK(step.visible.dtype() == DType::boolean);
    visible_.emplace(step.visible, frame.scalars, frame.kernels.map);
    scratch_bytes_ = std::max(scratch_bytes_, visible_->scratch_bytes());
  }
  if (!step.factor.code.empty()) {
    factor_.emplace(step.factor, frame.scalars, frame.kernels.map);
    scratch_bytes_ = std::max(scratch_bytes_, factor_->scratch_bytes());
  }
  // Nothing says that hidden keys contribute nothing: 0 times what v holds must be 0.
  skips_ = visible_ || !has_conditions(step.scores) || values_are_finite(step, frame);
  scalars_.push_back(map::Scalar::of(0.0));
  find_segments();
  for (const auto& [program, form] : forms_) {
    if (form->program) scratch_bytes_ = std::max(scratch_bytes_, form->program->scratch_bytes());
  }
  evaluate_all_differences();
}

/// Which other axes a bias depends on.
void AttendScores::note_axes(const map::Program& bias, ScoreForm& form) const {
  const auto reads = [&](std::int64_t axis) {
    return std::any_of(bias.code.begin(), bias.code.end(), [&](const map::Instruction& code) {
      if (code.op == map::Op::index) return code.arg == axis;
      return code.op == map::Op::load && code.arg > 0 &&
             stride_at(inputs_[static_cast<std::size_t>(code.arg) - 1].strides, axis) != 0;
    });
  };
  form.same_outside = true;
  for (const AttendAxes* axes : {&rows_, &keys_}) {
    axes->each([&](std::int64_t axis, std::int64_t) {
      form.same_outside &= axis == axes->innermost() || !reads(axis);
    });
  }
  batch_.each([&](std::int64_t axis, std::int64_t) { form.by_batch |= reads(axis); });
}

ScoreForm* AttendScores::form_for(const std::vector<map::Range>& ranges) {
  // A program is specialised by what its conditions are, nothing else.
  std::string decided;
  for (std::size_t i = 0; i < ranges.size(); ++i) {
    if (step_.scores.code[i].dtype != DType::boolean) continue;
    decided += map::is_surely_true(ranges[i]) ? 't' : map::is_surely_false(ranges[i]) ? 'f' : '?';
  }
  const std::lock_guard lock(mutex_);
  ScoreForm*& found = form_of_[decided];
  if (found != nullptr) return found;
  map::Program program = map::specialise(step_.scores, ranges);
  for (const auto& [known, form] : forms_) {
    if (known == program) return found = form.get();
  }
  auto form = std::make_unique<ScoreForm>();
  form->undecided = has_conditions(program);
  if (auto linear = linear_form(program, frame_.scalars, frame_.kernels.map)) {
    form->linear = true;
    form->factor = linear->factor;
    form->cap = linear->cap;
    if (linear->bias) {
      form->program.emplace(*linear->bias, scalars_, frame_.kernels.map);
      const std::int64_t row_axis = rows_.innermost(), key_axis = keys_.innermost();
      std::vector<bool> constant{false};
      for (const Input& input : inputs_) {
        constant.push_back(stride_at(input.strides, row_axis) == 0 &&
                           stride_at(input.strides, key_axis) == 0);
      }
      form->by_difference = row_axis >= 0 && key_axis >= 0 &&
                            depends_on_difference(*linear->bias, row_axis, key_axis, constant);
      note_axes(*linear->bias, *form);
    }
  } else {
    form->program.emplace(program, frame_.scalars, frame_.kernels.map);
  }
  forms_.emplace_back(std::move(program), std::move(form));
  return found = forms_.back().second.get();
}

bool AttendScores::may_skip(const map::Range& scores, std::span<const map::IndexRange> axes,
                            std::span<const map::Range> inputs) const {
  if (!skips_) return false;
  const auto is_zero = [](const map::Range& x) {
    return x.low == 0 && x.high == 0 && !x.maybe_nan;
  };
  if (!step_.normalise) return is_zero(scores);
  if (!map::is_minus_infinity(scores)) return false;
  if (!factor_ || visible_) return true;
  std::vector<map::Range> loads(inputs.begin(), inputs.end());
  loads[0] = {0, 0, false};
  return is_zero(map::evaluate_ranges(step_.factor, axes, loads, frame_.scalars).back());
}

std::span<const Segment> AttendScores::segments(std::int64_t batch, std::int64_t row_tile) const {
  const std::int64_t at =
      one_list_ ? 0 : class_of_[static_cast<std::size_t>(batch)] * tiles_.count() + row_tile;
  return segments_[static_cast<std::size_t>(at)];
}

void AttendScores::evaluate(const kernel::TileProgram& program, const AttendBox& box,
                            const std::byte* dots, const Steps& steps, std::byte* out,
                            std::size_t bytes, std::byte* scratch) const noexcept {
  const std::size_t rank = step_.axes.size();
  const std::int64_t row_axis = rows_.innermost(), key_axis = keys_.innermost();
  Dims index(rank, 0);
  batch_.locate(box.batch, index);
  SmallVector<TileOperand, 6> operands(inputs_.size() + 1);
  SmallVector<TileIndex, 6> indices(rank);

  for (std::int64_t row = 0; row < box.rows;) {
    const std::int64_t row_at = box.row + row;
    const std::int64_t columns = std::min(box.rows - row, rows_.run() - row_at % rows_.run());
    const std::int64_t most_keys = std::max<std::int64_t>(1, program.capacity() / columns);
    rows_.locate(row_at, index);
    for (std::int64_t key = 0; key < box.keys;) {
      const std::int64_t key_at = box.key + key;
      const std::int64_t count =
          std::min({box.keys - key, keys_.run() - key_at % keys_.run(), most_keys});
      keys_.locate(key_at, index);
      for (std::size_t axis = 0; axis < rank; ++axis) indices[axis] = {index[axis], 0, 0};
      if (row_axis >= 0) indices[static_cast<std::size_t>(row_axis)].step = 1;
      if (key_axis >= 0) indices[static_cast<std::size_t>(key_axis)].row_step = 1;
      const auto tile_at = [&](std::byte* data, std::size_t element) {
        const std::int64_t offset = key * steps.key + row * steps.row;
        return TileOperand{.data = data + offset * static_cast<std::int64_t>(element),
                           .row_stride = steps.key,
                           .stride = steps.row};
      };
      if (dots != nullptr) operands[0] = tile_at(const_cast<std::byte*>(dots), dot_bytes_);
      for (std::size_t i = 0; i < inputs_.size(); ++i) {
        const Input& input = inputs_[i];
        std::int64_t offset = 0;
        for (std::size_t axis = 0; axis < rank; ++axis) offset += index[axis] * input.strides[axis];
        operands[i + 1] = {.data = const_cast<std::byte*>(input.data) +
                                   offset * static_cast<std::int64_t>(size_of(input.dtype)),
                           .row_stride = stride_at(input.strides, key_axis),
                           .stride = stride_at(input.strides, row_axis)};
      }
      program.run({.rows = count,
                   .columns = columns,
                   .inputs = operands,
                   .indices = indices,
                   .out = tile_at(out, bytes)},
                  scratch);
      key += count;
    }
    row += columns;
  }
}

}  // namespace einkern::exec
