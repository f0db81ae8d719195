// SPDX-License-Identifier: Apache-2.0
// From the axes of an Attend node to the strides of its step.
#include "lower_attend.h"

#include <algorithm>
#include <limits>

#include "../base/error.h"
#include "lower_map.h"
#include "lower_visible.h"
#include "views.h"

namespace einkern::graph {
namespace {

/// Strides of an operand, whose axes are made of `lists`, along axes of these sizes; those along
/// other loops are set.
Dims spread_strides(const plan::Operand& operand, const AxisMap& lists, const Dims& sizes,
                    plan::Loops& loops, std::int64_t plan::Loop::*loop_stride) {
  Dims strides(sizes.size(), 0);
  for (std::size_t d = 0; d < lists.size(); ++d) {
    std::int64_t stride = operand.layout.strides[d];
    for (std::size_t i = lists[d].size(); i-- > 0;) {
      const std::int64_t axis = lists[d][i];
      if (axis < 0) {
        plan::Loop& loop = loops[static_cast<std::size_t>(~axis)];
        loop.*loop_stride = stride;
        stride *= loop.size;
      } else {
        strides[static_cast<std::size_t>(axis)] = stride;
        stride *= sizes[static_cast<std::size_t>(axis)];
      }
    }
  }
  return strides;
}

void set_strides(const Dims& strides, std::vector<plan::ScoreAxis>& axes,
                 std::int64_t plan::ScoreAxis::*stride_of) {
  for (std::size_t a = 0; a < axes.size(); ++a) axes[a].*stride_of = strides[a];
}

/// Keys or values, and the table that picks them.
struct TakenOperand {
  const plan::Operand &from, &table;
};

/// The rows that a table picks, and the strides of their tensor along axes that are not streamed.
plan::TakenRows take_rows(const TakenOperand& operand, const Attend::Taken& taken,
                          std::vector<plan::ScoreAxis>& axes,
                          std::int64_t plan::ScoreAxis::*stride_of, plan::Loops& loops) {
  Dims sizes;
  for (const Attend::Taken::Part& part : taken.parts) sizes.push_back(part.size);
  const Dims in = spread_strides(operand.from, taken.in, sizes, loops, &plan::Loop::b);
  const Dims at = spread_strides(operand.table, taken.at, sizes, loops, &plan::Loop::b);
  plan::TakenRows rows;
  rows.at = operand.table;
  rows.stride = operand.from.layout.strides[taken.axis];
  rows.batch = Dims(axes.size(), 0);
  for (std::size_t p = 0; p < sizes.size(); ++p) {
    const std::size_t axis = taken.parts[p].axis;
    if (axes[axis].role == plan::ScoreAxis::Role::streamed) {
      rows.parts.push_back({axis, sizes[p], in[p], at[p]});
    } else {
      axes[axis].*stride_of = in[p];
      rows.batch[axis] = at[p];
    }
  }
  return rows;
}

/// An operand over some axes of the scores, as one over all finest axes.
plan::Operand over_axes(const plan::Operand& operand, const AxisMap& lists, const Dims& sizes) {
  plan::Operand result{
      operand.value, operand.dtype, {sizes, Dims(sizes.size(), 0), operand.layout.offset}};
  for (std::size_t d = 0; d < lists.size(); ++d) {
    if (operand.layout.shape[d] == 1) continue;
    std::int64_t stride = operand.layout.strides[d];
    for (std::size_t i = lists[d].size(); i-- > 0;) {
      const auto axis = static_cast<std::size_t>(lists[d][i]);
      result.layout.strides[axis] = stride;
      stride *= sizes[axis];
    }
  }
  return result;
}

}  // namespace

plan::Attend lower_attend(plan::Builder& builder, const Node& node, const AttendPlaces& at,
                          const std::unordered_map<const Node*, plan::Operand>& places,
                          const std::unordered_map<const Node*, std::int32_t>& scalar_of) {
  const auto& op = std::get<Attend>(node.op);
  plan::Attend step;
  step.q = at.q;
  step.k = at.k;
  step.v = at.v;
  step.out = at.out;
  Dims sizes;
  for (const Attend::Axis& axis : op.axes) {
    sizes.push_back(axis.size);
    step.axes.push_back({axis.role, axis.size, 0, 0, 0, 0});
  }
  for (const std::int64_t size : op.inner) step.inner.push_back({size, 0, 0, 0});
  for (const std::int64_t size : op.columns) step.columns.push_back({size, 0, 0, 0});
  using plan::Loop;
  using plan::ScoreAxis;
  const auto spread = [&](const plan::Operand& operand, const AxisMap& lists,
                          std::int64_t ScoreAxis::*stride_of, plan::Loops& loops,
                          std::int64_t Loop::*loop_stride) {
    set_strides(spread_strides(operand, lists, sizes, loops, loop_stride), step.axes, stride_of);
  };
  spread(at.q, op.q, &ScoreAxis::q, step.inner, &Loop::a);
  spread(at.out, op.out, &ScoreAxis::out, step.columns, &Loop::c);
  if (op.k_taken) {
    step.k_taken = take_rows({at.k, at.k_table}, *op.k_taken, step.axes, &ScoreAxis::k, step.inner);
  } else {
    spread(at.k, op.k, &ScoreAxis::k, step.inner, &Loop::b);
  }
  if (op.v_taken) {
    step.v_taken =
        take_rows({at.v, at.v_table}, *op.v_taken, step.axes, &ScoreAxis::v, step.columns);
  } else {
    spread(at.v, op.v, &ScoreAxis::v, step.columns, &Loop::b);
  }

  const bool has_keys = std::none_of(step.axes.begin(), step.axes.end(), [](const ScoreAxis& axis) {
    return axis.role == ScoreAxis::Role::streamed && axis.size == 0;
  });
  step.normalise = op.normalise;
  // A sum over no keys at all is 0 however the weights are spelled.
  if (op.nan_when_empty && has_keys) step.empty_row = std::numeric_limits<double>::quiet_NaN();
  if (op.floor != nullptr) step.floor = scalar_of.at(op.floor.get());

  AxisMap rows;  // axes of the scores that remain after the softmax
  for (std::size_t d = 0; d < op.scores.size(); ++d) {
    if (!std::binary_search(op.normalised.begin(), op.normalised.end(), d)) {
      rows.push_back(op.scores[d]);
    }
  }
  if (at.logsumexp.value >= 0) step.logsumexp = over_axes(at.logsumexp, rows, sizes);
  if (at.sink.value >= 0) {
    AxisMap lists;
    for (const std::int32_t axis : op.sink.axes)
      lists.push_back(rows[static_cast<std::size_t>(axis)]);
    step.sink = over_axes(at.sink, lists, sizes);
  }

  MapEmitter emitter(builder, sizes, places, scalar_of, 1);
  std::size_t input = 3;
  const Node* scores = node.inputs[input++].get();
  step.scores = emitter.take_program(emitter.emit(scores, op.scores, node.type.dtype));
  if (op.has_factor) {
    const Node* factor = node.inputs[input++].get();
    step.factor = emitter.take_program(emitter.emit(factor, op.factor, node.type.dtype));
  }
  if (op.has_visible) {
    step.visible = emitter.take_program(emit_visible(emitter, *node.inputs[input], op.scores));
  }
  step.inputs = emitter.inputs();
  return step;
}

}  // namespace einkern::graph
