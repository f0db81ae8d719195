// SPDX-License-Identifier: Apache-2.0
// Follows the views of an operand to a take, over axes that are cut for it alone.
#include "taken.h"

#include <algorithm>

#include "build.h"

namespace einkern::graph {
namespace {

/// The node behind views, if it takes elements.
const Node* take_behind(const Place& operand) {
  const Node* node = operand.node.get();
  while (is_view(*node) && !std::holds_alternative<Slice>(node->op)) node = node->inputs[0].get();
  return std::holds_alternative<Take>(node->op) ? node : nullptr;
}

/// The axes of an operand over finer ones: `parts` are the finer axes of each.
AxisMap over_parts(const AxisMap& axes, const AxisMap& parts) {
  AxisMap result;
  for (const std::vector<std::int32_t>& list : axes) {
    std::vector<std::int32_t>& finer = result.emplace_back();
    for (const std::int32_t axis : list) {
      if (axis < 0) {
        finer.push_back(axis);
        continue;
      }
      const std::vector<std::int32_t>& own = parts[static_cast<std::size_t>(axis)];
      finer.insert(finer.end(), own.begin(), own.end());
    }
  }
  return result;
}

/// The axes of what the operand is a view of.
std::optional<AxisMap> behind_all_views(const Place& operand, const ScoreAxes& parts,
                                        std::optional<Cut>& wanted) {
  std::optional<AxisMap> lists = over_parts(operand.axes, parts.scores());
  for (const Node* node = operand.node.get(); lists && is_view(*node);
       node = node->inputs[0].get()) {
    lists = parts.inwards(*node, *lists, wanted);
  }
  return lists;
}

}  // namespace

std::string position_message(std::size_t axis, std::int64_t size) {
  return "take: index {} is out of range for axis " + std::to_string(axis) + " of size " +
         std::to_string(size);
}

std::optional<TakenPlace> behind_take(const Place& operand, DType dtype, const ScoreAxes& axes,
                                      const std::vector<bool>& streamed,
                                      std::optional<Cut>& wanted) {
  const Node* const node = take_behind(operand);
  // Of another dtype, all that there is to take from would be converted.
  if (node == nullptr || (node->type.dtype != dtype && !is_half_float(node->type.dtype))) {
    return std::nullopt;
  }
  ScoreAxes parts(axes.sizes());
  std::optional<AxisMap> lists;
  for (;;) {
    std::optional<Cut> cut;
    lists = behind_all_views(operand, parts, cut);
    if (lists) break;
    if (!cut) return std::nullopt;
    for (std::size_t a = 0; a < streamed.size(); ++a) {
      const std::vector<std::int32_t>& own = parts.scores()[a];
      if (streamed[a] || std::find(own.begin(), own.end(), cut->axis) == own.end()) continue;
      wanted = Cut{static_cast<std::int32_t>(a), cut->outer};
      return std::nullopt;
    }
    parts.cut(*cut);
  }

  const NodePtr &from = node->inputs[0], &table = node->inputs[1];
  const std::size_t axis = std::get<Take>(node->op).axis, rank = table->type.shape.size();
  const auto first = lists->begin() + static_cast<std::ptrdiff_t>(axis);
  const auto last = first + static_cast<std::ptrdiff_t>(rank);
  TakenPlace result{from, nullptr, {}};
  Attend::Taken& taken = result.taken;
  taken.at.assign(first, last);
  for (const std::vector<std::int32_t>& list : taken.at) {
    // Elements of one key that lie here and there are gathered.
    if (std::any_of(list.begin(), list.end(), [](std::int32_t a) { return a < 0; }))
      return std::nullopt;
  }
  taken.axis = axis;
  taken.in.assign(lists->begin(), first);
  taken.in.emplace_back();
  taken.in.insert(taken.in.end(), last, lists->end());
  for (std::size_t a = 0; a < streamed.size(); ++a) {
    for (const std::int32_t part : parts.scores()[a]) {
      taken.parts.push_back({a, parts.sizes()[static_cast<std::size_t>(part)]});
    }
  }
  const std::int64_t size = from->type.shape[axis];
  result.table = bounded(Expr(table), 0, size - 1, position_message(axis, size)).node();
  return result;
}

}  // namespace einkern::graph
