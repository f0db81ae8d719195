// SPDX-License-Identifier: Apache-2.0
// Assembles a plan: numbers its values, then finds estimates and lifetimes.
#include "builder.h"

#include <algorithm>
#include <utility>

#include "../base/error.h"
#include "epilogue.h"
#include "operands.h"

namespace einkern::plan {
namespace {

std::int64_t bytes_of(const Value& value) {
  return element_count(value.layout.shape, "plan") *
         static_cast<std::int64_t>(size_of(value.dtype));
}

/// Checks that every value is written before it is read and lists the temporaries that no later
/// step touches.
std::vector<std::vector<ValueId>> lifetimes(const Plan& plan) {
  constexpr std::size_t kNever = SIZE_MAX;
  std::vector<std::size_t> last(plan.values.size(), kNever);
  std::vector<bool> written(plan.values.size());
  for (std::size_t value = 0; value < plan.values.size(); ++value) {
    const Dims& shape = plan.values[value].layout.shape;
    written[value] = std::find(shape.begin(), shape.end(), 0) != shape.end();  // nothing to write
  }
  for (const ValueId input : plan.inputs) written[static_cast<std::size_t>(input)] = true;
  for (std::size_t i = 0; i < plan.steps.size(); ++i) {
    for (const Operand& operand : reads_of(plan.steps[i])) {
      const auto value = static_cast<std::size_t>(operand.value);
      EINKERN_CHECK(value < plan.values.size());
      EINKERN_CHECK(written[value]);
      last[value] = i;
    }
    for (const Operand& operand : writes_of(plan.steps[i])) {
      const auto value = static_cast<std::size_t>(operand.value);
      EINKERN_CHECK(value < plan.values.size());
      EINKERN_CHECK(plan.values[value].role != Value::Role::input);
      written[value] = true;
      last[value] = i;
    }
  }
  std::vector<std::vector<ValueId>> dead(plan.steps.size());
  for (std::size_t value = 0; value < plan.values.size(); ++value) {
    if (plan.values[value].role == Value::Role::temporary && last[value] != kNever) {
      dead[last[value]].push_back(static_cast<ValueId>(value));
    }
  }
  return dead;
}

}  // namespace

std::int64_t Plan::workspace_bytes() const {
  std::vector<bool> live(values.size());
  std::int64_t now = 0, most = 0;
  for (std::size_t i = 0; i < steps.size(); ++i) {
    for (const Operand& operand : writes_of(steps[i])) {
      const auto value = static_cast<std::size_t>(operand.value);
      if (values[value].role != Value::Role::temporary || live[value]) continue;
      live[value] = true;
      now += bytes_of(values[value]);
    }
    most = std::max(most, now);
    for (const ValueId gone : dead[i]) now -= bytes_of(values[static_cast<std::size_t>(gone)]);
  }
  return most;
}

Operand Builder::add_input(DType dtype, const Layout& layout, std::string note) {
  const auto id = static_cast<ValueId>(plan_.values.size());
  plan_.values.push_back({Value::Role::input, dtype, layout,
                          static_cast<std::int32_t>(plan_.inputs.size()), std::move(note)});
  plan_.inputs.push_back(id);
  return {id, dtype, layout};
}

Operand Builder::add_output(DType dtype, const Layout& layout, std::string note) {
  const auto id = static_cast<ValueId>(plan_.values.size());
  plan_.values.push_back({Value::Role::output, dtype, layout,
                          static_cast<std::int32_t>(plan_.outputs.size()), std::move(note)});
  plan_.outputs.push_back(id);
  return {id, dtype, layout};
}

Operand Builder::add_temporary(DType dtype, const Shape& shape, std::string note) {
  element_count(shape, "einsum");  // an intermediate too large to address is refused here
  const auto id = static_cast<ValueId>(plan_.values.size());
  plan_.values.push_back({Value::Role::temporary, dtype, contiguous(shape), -1, std::move(note)});
  return {id, dtype, plan_.values.back().layout};
}

void Builder::add(Step step, std::string note) {
  plan_.steps.push_back(std::move(step));
  plan_.notes.push_back(std::move(note));
}

std::int32_t Builder::add_constant(const map::Scalar& value) {
  const auto found = std::find(plan_.constants.begin(), plan_.constants.end(), value);
  const auto at = static_cast<std::int32_t>(found - plan_.constants.begin());
  if (found == plan_.constants.end()) plan_.constants.push_back(value);
  return plan_.scalars + at;
}

void Builder::append_path(const std::string& path) {
  if (path.empty()) return;
  if (!plan_.path.empty()) plan_.path += " | ";
  plan_.path += path;
}

void Builder::join_epilogues() { plan::join_epilogues(plan_); }

Plan Builder::finish() {
  plan_.dead = lifetimes(plan_);
  plan_.estimates.reserve(plan_.steps.size());
  for (const Step& step : plan_.steps) plan_.estimates.push_back(estimate(step, target_));
  return std::exchange(plan_, Plan{});
}

}  // namespace einkern::plan
