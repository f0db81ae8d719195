// SPDX-License-Identifier: Apache-2.0
// Walks from the scores of an Attend node to what they are made of, over its finest axes.
#include "tiled.h"

#include <algorithm>
#include <optional>
#include <utility>
#include <vector>

#include "score_axes.h"
#include "views.h"

namespace einkern::graph {
namespace {

using Role = plan::ScoreAxis::Role;

Dims sizes_of(const Attend& op) {
  Dims sizes;
  for (const Attend::Axis& axis : op.axes) sizes.push_back(axis.size);
  return sizes;
}

class Walk {
 public:
  explicit Walk(const Node& attend)
      : op_(std::get<Attend>(attend.op)), axes_(sizes_of(std::get<Attend>(attend.op))) {
    std::size_t input = 3;
    enter(attend.inputs[input++].get(), op_.scores);
    if (op_.has_factor) enter(attend.inputs[input++].get(), op_.factor);
    if (op_.has_visible) {
      const Node& visible = *attend.inputs[input];
      const auto& conditions = std::get<Visible>(visible.op).alignment;
      for (std::size_t i = 0; i < visible.inputs.size(); ++i) {
        enter(visible.inputs[i].get(),
              behind(conditions[i], visible.inputs[i]->type.shape, op_.scores, {}));
      }
    }
    while (!pending_.empty()) {
      const auto [node, axes] = std::move(pending_.back());
      pending_.pop_back();
      visit(*node, axes);
    }
  }

  std::unordered_set<const Node*> take() {
    for (const Node* node : refused_) tiled_.erase(node);
    return std::move(tiled_);
  }

 private:
  void enter(const Node* node, AxisMap axes) {
    if (seen_.insert(node).second) pending_.emplace_back(node, std::move(axes));
  }

  void consider(const Node& node, AxisMap axes) {
    if (belongs(node, axes)) {
      enter(&node, std::move(axes));
    } else if (is_view(node)) {
      refused_.insert(&node);  // in this orientation, and so in every one
    }
  }

  /// The axes of an operand; `shape` is the result's, where an axis of size 1 may be stretched.
  static AxisMap behind(const Alignment& alignment, const Dims& operand, const AxisMap& axes,
                        const Dims& shape) {
    AxisMap result;
    for (std::size_t d = 0; d < alignment.axes.size(); ++d) {
      const auto axis = static_cast<std::size_t>(alignment.axes[d]);
      const bool stretched = shape.empty() ? operand[d] == 1 : operand[d] != shape[axis];
      result.push_back(stretched ? std::vector<std::int32_t>{} : axes[axis]);
    }
    return result;
  }

  /// Has it an axis of rows and a streamed one?
  bool spans(const AxisMap& axes) const {
    const auto has = [&](Role role) {
      return std::any_of(axes.begin(), axes.end(), [&](const std::vector<std::int32_t>& list) {
        return std::any_of(list.begin(), list.end(), [&](std::int32_t a) {
          const Attend::Axis& axis = op_.axes[static_cast<std::size_t>(a)];
          return axis.role == role && axis.size > 1;
        });
      });
    };
    return has(Role::row) && has(Role::streamed);
  }

  void visit(const Node& node, const AxisMap& axes) {
    if (const auto* op = std::get_if<Elementwise>(&node.op)) {
      tiled_.insert(&node);
      for (std::size_t i = 0; i < node.inputs.size(); ++i) {
        const Node& input = *node.inputs[i];
        AxisMap inner = behind(op->alignment[i], input.type.shape, axes, node.type.shape);
        consider(input, std::move(inner));
      }
    } else if (is_view(node)) {
      tiled_.insert(&node);
      std::optional<Cut> wanted;
      if (auto inner = axes_.inwards(node, axes, wanted)) {
        consider(*node.inputs[0], std::move(*inner));
      }
    }
  }

  /// Is it computed with the scores?
  bool belongs(const Node& node, const AxisMap& axes) const {
    if (std::holds_alternative<Elementwise>(node.op)) {
      return !node.type.open.empty() || spans(axes);
    }
    if (!is_view(node) || !spans(axes)) return false;
    // Down to what is viewed, as far as the axes allow; a step that they do not is computed.
    bool merges = false;
    const Node* at = &node;
    AxisMap inner = axes;
    while (is_view(*at)) {
      std::optional<Cut> wanted;
      auto next = axes_.inwards(*at, inner, wanted);
      if (!next) return false;
      merges |= std::holds_alternative<Merge>(at->op);
      inner = std::move(*next);
      at = at->inputs[0].get();
    }
    return merges || (std::holds_alternative<Elementwise>(at->op) && spans(inner));
  }

  const Attend& op_;
  const ScoreAxes axes_;
  std::vector<std::pair<const Node*, AxisMap>> pending_;
  std::unordered_set<const Node*> seen_, tiled_, refused_;
};

}  // namespace

std::unordered_set<const Node*> tiled_nodes(const Node& attend) { return Walk(attend).take(); }

}  // namespace einkern::graph
