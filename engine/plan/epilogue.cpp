// SPDX-License-Identifier: Apache-2.0
// Finds contractions whose only reader is an elementwise step over the same elements.
#include "epilogue.h"

#include <algorithm>
#include <optional>

#include "operands.h"

namespace einkern::plan {
namespace {

/// Which steps touch a value.
struct Uses {
  std::size_t readers = 0, writers = 0, writer = 0;
};

std::vector<Uses> uses_of(const Plan& plan) {
  std::vector<Uses> uses(plan.values.size());
  for (std::size_t i = 0; i < plan.steps.size(); ++i) {
    std::vector<ValueId> read;
    for (const Operand& operand : reads_of(plan.steps[i])) read.push_back(operand.value);
    std::sort(read.begin(), read.end());
    read.erase(std::unique(read.begin(), read.end()), read.end());
    for (const ValueId value : read) ++uses[static_cast<std::size_t>(value)].readers;
    each_written(plan.steps[i], [&](const Operand& operand) {
      Uses& use = uses[static_cast<std::size_t>(operand.value)];
      ++use.writers;
      use.writer = i;
    });
  }
  return uses;
}

bool reads(const Step& step, ValueId value) {
  const std::vector<Operand> operands = reads_of(step);
  return std::any_of(operands.begin(), operands.end(),
                     [&](const Operand& operand) { return operand.value == value; });
}

/// Do both views of the same shape step alike?
bool same_steps(const Layout& x, const Layout& y) {
  for (std::size_t axis = 0; axis < x.rank(); ++axis) {
    if (x.shape[axis] != 1 && x.strides[axis] != y.strides[axis]) return false;
  }
  return x.shape == y.shape;
}

/// Can a position of c be taken apart into digits that each belong to one loop and one axis? The
/// places where loops and axes begin must divide one another: an axis that was merged from labels
/// and split elsewhere has digits that no loop has.
bool digits_nest(const Contract& contract, const Layout& space) {
  std::vector<std::int64_t> places;
  for (const Loops* loops : {&contract.batch, &contract.m, &contract.n}) {
    for (const Loop& loop : *loops) places.push_back(loop.c);
  }
  for (std::size_t axis = 0; axis < space.rank(); ++axis) {
    if (space.shape[axis] != 1) places.push_back(space.strides[axis]);
  }
  std::sort(places.begin(), places.end());
  for (std::size_t i = 0; i < places.size(); ++i) {
    if (places[i] <= 0 || (i > 0 && places[i] % places[i - 1] != 0)) return false;
  }
  return true;
}

bool fits(const Plan& plan, const Contract& contract, const Map& map) {
  const Value& sums = plan.values[static_cast<std::size_t>(contract.c.value)];
  const Layout& out = map.out.layout;
  if (contract.epilogue || !is_float(contract.c.dtype) || contract.c.dtype != map.out.dtype ||
      contract.c.layout.offset != 0 || reads(Step(contract), map.out.value)) {
    return false;
  }
  // All elements of the temporary are written, and read exactly once each.
  const std::int64_t count = element_count(sums.layout.shape);
  if (element_count(contract.c.layout.shape) != count || element_count(out.shape) != count) {
    return false;
  }
  for (const Operand& input : map.inputs) {
    if (input.value == map.out.value) return false;
    if (input.value != contract.c.value) continue;
    if (input.layout.offset != 0 || !same_steps(input.layout, out)) return false;
  }
  return count > 0 && digits_nest(contract, out);
}

/// The latest contraction that the map can be the epilogue of.
std::optional<std::size_t> contraction_before(const Plan& plan, const std::vector<Uses>& uses,
                                              const Map& map) {
  std::optional<std::size_t> latest;
  for (const Operand& input : map.inputs) {
    const auto value = static_cast<std::size_t>(input.value);
    if (plan.values[value].role != Value::Role::temporary || uses[value].writers != 1 ||
        uses[value].readers != 1) {
      continue;
    }
    const auto* contract = std::get_if<Contract>(&plan.steps[uses[value].writer]);
    if (contract == nullptr || !fits(plan, *contract, map)) continue;
    if (!latest || uses[value].writer > *latest) latest = uses[value].writer;
  }
  return latest;
}

Contract joined(Contract contract, Map map) {
  const ValueId sums = contract.c.value;
  for (Operand& input : map.inputs) {
    if (input.value == sums) input = {map.out.value, map.out.dtype, map.out.layout};
  }
  contract.c.value = map.out.value;
  contract.c.layout.offset = map.out.layout.offset;
  contract.epilogue = std::move(map);
  return contract;
}

}  // namespace

void join_epilogues(Plan& plan) {
  const std::vector<Uses> uses = uses_of(plan);
  std::vector<bool> gone(plan.steps.size());
  for (std::size_t i = 0; i < plan.steps.size(); ++i) {
    const auto* map = std::get_if<Map>(&plan.steps[i]);
    if (map == nullptr) continue;
    const auto before = contraction_before(plan, uses, *map);
    if (!before) continue;
    // Other inputs may be made between the two: the joined step takes the later place.
    plan.steps[i] = joined(std::get<Contract>(plan.steps[*before]), *map);
    plan.notes[i] = plan.notes[*before];
    gone[*before] = true;
  }
  std::size_t kept = 0;
  for (std::size_t i = 0; i < plan.steps.size(); ++i) {
    if (gone[i]) continue;
    if (kept != i) {
      plan.steps[kept] = std::move(plan.steps[i]);
      plan.notes[kept] = std::move(plan.notes[i]);
    }
    ++kept;
  }
  plan.steps.resize(kept, Fill{});
  plan.notes.resize(kept);
}

}  // namespace einkern::plan
