// SPDX-License-Identifier: Apache-2.0
// Asks the ranges of every program that computes with integers.
#include "may_fail.h"

#include <algorithm>
#include <vector>

#include "../map/interval.h"
#include "operands.h"

namespace einkern::plan {
namespace {

/// A plan and the scalars of its caller.
struct Bound {
  const Plan& plan;
  std::span<const map::Scalar> scalars;
};

/// Whether the program may fault where axis d has positions 0 .. sizes[d] - 1.
bool program_may_fault(const map::Program& program, const Dims& sizes, std::size_t loads,
                       const Bound& bound) {
  const bool integers =
      std::any_of(program.code.begin(), program.code.end(), [](const map::Instruction& code) {
        return is_integer(code.dtype) && map::arity(code.op) > 0;
      });
  if (!integers || std::find(sizes.begin(), sizes.end(), 0) != sizes.end()) return false;
  std::vector<map::IndexRange> axes;
  for (const std::int64_t size : sizes) axes.push_back({0, size - 1});
  const std::vector<map::Range> inputs(loads, map::kAnything);
  std::vector<map::Scalar> scalars(bound.scalars.begin(), bound.scalars.end());
  scalars.insert(scalars.end(), bound.plan.constants.begin(), bound.plan.constants.end());
  return map::may_fault(program, map::evaluate_ranges(program, axes, inputs, scalars));
}

bool step_may_fail(const Map& step, const Bound& bound) {
  return program_may_fault(step.program, step.out.layout.shape, step.inputs.size(), bound);
}
bool step_may_fail(const Contract& step, const Bound& bound) {
  return is_integer(step.c.dtype) || (step.epilogue && step_may_fail(*step.epilogue, bound));
}
bool step_may_fail(const SelectContract& step, const Bound& bound) {
  return step_may_fail(step.contract, bound);
}
/// Has it no value over nothing?
bool is_extreme(ReduceOp op) { return op == ReduceOp::max || op == ReduceOp::min; }
bool step_may_fail(const Reduce& step, const Bound& /*bound*/) {
  const bool empty = std::any_of(step.reduced.begin(), step.reduced.end(),
                                 [](const Loop& loop) { return loop.size == 0; });
  return is_integer(step.out.dtype) || (empty && is_extreme(step.op));
}
bool step_may_fail(const Copy& step, const Bound& /*bound*/) {
  return is_integer(step.out.dtype) && step.in.dtype != step.out.dtype;
}
bool step_may_fail(const Attend& step, const Bound& bound) {
  Dims sizes;
  for (const ScoreAxis& axis : step.axes) sizes.push_back(axis.size);
  const auto may_fault = [&](const map::Program& program) {
    return program_may_fault(program, sizes, step.inputs.size() + 1, bound);
  };
  return may_fault(step.scores) || may_fault(step.visible) || may_fault(step.factor);
}
bool step_may_fail(const Check& /*step*/, const Bound& /*bound*/) { return true; }
bool step_may_fail(const Softmax& /*step*/, const Bound& /*bound*/) { return false; }
bool step_may_fail(const Fill& /*step*/, const Bound& /*bound*/) { return false; }
bool step_may_fail(const Take& /*step*/, const Bound& /*bound*/) { return false; }
bool step_may_fail(const Scan& /*step*/, const Bound& /*bound*/) { return false; }

}  // namespace

bool may_fail_half_way(const Plan& plan, std::span<const map::Scalar> scalars) {
  const auto is_output = [&](const Operand& operand) {
    const auto value = static_cast<std::size_t>(operand.value);
    return plan.values[value].role == Value::Role::output;
  };
  bool writes = false;
  for (const Step& step : plan.steps) {
    each_written(step, [&](const Operand& operand) { writes |= is_output(operand); });
    const bool fails = std::visit(
        [&](const auto& kind) {
          return step_may_fail(kind, {plan, scalars});
        },
        step);
    if (writes && fails) return true;
  }
  return false;
}

}  // namespace einkern::plan
