// SPDX-License-Identifier: Apache-2.0
// Equations by their text and the ranks of their operands.
#include "named_equation.h"

#include <utility>
#include <vector>

#include "key.h"
#include "plan_cache.h"

namespace einkern::graph {
namespace {

Labels labels_of(const ResolvedEquation& equation) {
  std::vector<std::string> labels;
  for (const LabelId label : equation.output) {
    labels.push_back(equation.names[static_cast<std::size_t>(label)]);
  }
  return {std::move(labels)};
}

std::string key_of(const ResolvedEquation& equation) {
  Key key;
  key.put(equation.inputs);
  key.put(equation.output);
  key.put(equation.names);
  return std::string(key.view());
}

}  // namespace

NamedEquation::NamedEquation(ResolvedEquation resolved)
    : equation(std::move(resolved)), labels(labels_of(equation)), key(key_of(equation)) {}

std::shared_ptr<const NamedEquation> named_equation(std::string_view text,
                                                    std::span<const Expr> operands) {
  static PlanCache<NamedEquation> equations(512);
  Key key;
  for (const Expr& operand : operands) key.put(static_cast<std::int64_t>(operand.rank()));
  key.put(std::int64_t{-1});
  key.put(text);
  if (auto found = equations.find(key.view())) return found;
  std::vector<std::size_t> ranks;
  for (const Expr& operand : operands) ranks.push_back(operand.rank());
  return equations.insert(std::string(key.view()), std::make_shared<const NamedEquation>(
                                                       resolve(parse_equation(text), ranks)));
}

}  // namespace einkern::graph
