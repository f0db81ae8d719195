// SPDX-License-Identifier: Apache-2.0
// Finds the selections of -inf among the scores of a softmax and turns them into a visibility
// tensor.
#include "hidden_keys.h"

#include <algorithm>
#include <cmath>
#include <optional>

#include "align.h"
#include "build.h"
#include "views.h"

namespace einkern::graph {
namespace {

bool is_minus_infinity(const NodePtr& node) {
  const auto* constant = std::get_if<Constant>(&node->op);
  return constant != nullptr && constant->value.dtype == DType::f64 &&
         constant->value.real == -HUGE_VAL;
}

struct Condition {
  NodePtr node;
  Alignment alignment;  // to the axes of the scores
  bool negated;
};

/// Every condition under which the scores are selected to be -inf. Sums and products keep -inf (or
/// make NaN of it), so selections are looked for behind them too.
std::vector<Condition> find_conditions(const NodePtr& scores) {
  std::vector<Condition> found;
  struct Visit {
    NodePtr node;
    Alignment alignment;
  };
  Alignment start;
  for (std::size_t d = 0; d < scores->type.shape.size(); ++d) {
    start.axes.push_back(static_cast<std::int32_t>(d));
  }
  std::vector<Visit> pending{{scores, start}};
  while (!pending.empty()) {
    const Visit visit = std::move(pending.back());
    pending.pop_back();
    const auto* op = std::get_if<Elementwise>(&visit.node->op);
    if (op == nullptr) continue;
    const auto input = [&](std::size_t i) {
      return Visit{visit.node->inputs[i], compose(op->alignment[i], visit.alignment)};
    };
    switch (op->op) {
      case map::Op::select: {
        const bool hides_false = is_minus_infinity(visit.node->inputs[2]);
        const bool hides_true = is_minus_infinity(visit.node->inputs[1]);
        if (hides_false || hides_true) {
          Visit condition = input(0);
          found.push_back({condition.node, condition.alignment, hides_true});
        }
        if (!hides_true) pending.push_back(input(1));
        if (!hides_false) pending.push_back(input(2));
        break;
      }
      case map::Op::add:
      case map::Op::sub:
      case map::Op::mul:
      case map::Op::div:
        pending.push_back(input(0));
        pending.push_back(input(1));
        break;
      case map::Op::cast:
        pending.push_back(input(0));
        break;
      default:
        break;
    }
  }
  return found;
}

/// The conditions as one boolean with the axes of the scores; axes that none depends on have size 1
/// unless `full`.
NodePtr make_visible(const NodePtr& scores, const std::vector<Condition>& conditions, bool full) {
  Visible op;
  std::vector<NodePtr> inputs;
  const std::size_t rank = scores->type.shape.size();
  Type type;
  type.dtype = DType::boolean;
  type.labels = scores->type.labels;
  type.shape = full ? scores->type.shape : Dims(rank, 1);
  for (const Condition& condition : conditions) {
    for (std::size_t d = 0; d < condition.alignment.axes.size(); ++d) {
      const auto axis = static_cast<std::size_t>(condition.alignment.axes[d]);
      if (condition.node->type.shape[d] != 1) type.shape[axis] = scores->type.shape[axis];
    }
    for (const std::int32_t axis : condition.alignment.open) {
      const auto at = static_cast<std::size_t>(axis);
      type.shape[at] = scores->type.shape[at];
    }
    op.alignment.push_back(condition.alignment);
    op.negated.push_back(condition.negated);
    inputs.push_back(condition.node);
  }
  return std::make_shared<const Node>(std::move(op), std::move(inputs), std::move(type));
}

/// The view `node` of weights, applied to their visibility (whose unused axes have size 1).
Expr follow_view(const Node& node, const Expr& visible) {
  if (const auto* permuted = std::get_if<Permute>(&node.op)) {
    return permute("permute", visible, permuted->order);
  }
  if (const auto* sliced = std::get_if<Slice>(&node.op)) {
    const bool unused = visible.shape()[sliced->axis] != node.inputs[0]->type.shape[sliced->axis];
    return unused
               ? visible
               : slice("slice", visible, sliced->axis, sliced->start, sliced->stop, sliced->step);
  }
  if (const auto* parts = std::get_if<Split>(&node.op)) {
    const bool unused = visible.shape()[parts->axis] != node.inputs[0]->type.shape[parts->axis];
    return split("split", visible, parts->axis, parts->labels,
                 unused ? std::vector<std::int64_t>(parts->sizes.size(), 1) : parts->sizes);
  }
  if (const auto* joined = std::get_if<Merge>(&node.op)) {
    return merge("merge", visible, joined->first, joined->count, joined->label);
  }
  if (const auto* grown = std::get_if<Expand>(&node.op)) {
    return expand("expand", visible, grown->at, grown->label, 1);
  }
  return visible;  // Relabel: axes stay
}

/// Are some of the softmax's normalised axes, followed through the views, contracted by the einsum?
bool contracts_normalised(const Einsum& einsum, std::size_t operand, const Node& weights,
                          const std::vector<const Node*>& views, const Softmax& softmax) {
  std::vector<bool> normalised(weights.type.shape.size());
  for (const std::size_t axis : softmax.axes) normalised[axis] = true;
  for (const Node* view : views) {
    std::vector<bool> next;
    if (const auto* permuted = std::get_if<Permute>(&view->op)) {
      for (const std::size_t axis : permuted->order) next.push_back(normalised[axis]);
    } else if (const auto* parts = std::get_if<Split>(&view->op)) {
      for (std::size_t d = 0; d < normalised.size(); ++d) {
        next.insert(next.end(), d == parts->axis ? parts->sizes.size() : 1, normalised[d]);
      }
    } else if (const auto* joined = std::get_if<Merge>(&view->op)) {
      for (std::size_t d = 0; d < normalised.size(); ++d) {
        if (d > joined->first && d < joined->first + joined->count) {
          next.back() = next.back() || normalised[d];
        } else {
          next.push_back(normalised[d]);
        }
      }
    } else if (const auto* grown = std::get_if<Expand>(&view->op)) {
      next = normalised;
      next.insert(next.begin() + static_cast<std::ptrdiff_t>(grown->at), false);
    } else {
      next = normalised;
    }
    normalised = std::move(next);
  }
  for (std::size_t d = 0; d < normalised.size(); ++d) {
    const std::int32_t label = einsum.inputs()[operand][d];
    const bool kept =
        std::find(einsum.output().begin(), einsum.output().end(), label) != einsum.output().end();
    if (normalised[d] && !kept) return true;
  }
  return false;
}

}  // namespace

NodePtr visible_part(const NodePtr& scores, bool full) {
  const std::vector<Condition> conditions = find_conditions(scores);
  return conditions.empty() ? nullptr : make_visible(scores, conditions, full);
}

NodePtr hidden_keys(const Site& site) {
  const NodePtr& node = site.node;
  const auto* einsum = std::get_if<Einsum>(&node->op);
  if (einsum == nullptr || einsum->inputs().size() < 2) return nullptr;
  for (std::size_t p = 0; p < einsum->inputs().size(); ++p) {
    std::vector<const Node*> views;  // from the softmax outwards
    NodePtr weights = node->inputs[p];
    while (is_view(*weights)) {
      views.insert(views.begin(), weights.get());
      weights = weights->inputs[0];
    }
    const auto* softmax = std::get_if<Softmax>(&weights->op);
    if (softmax == nullptr || softmax->kind != plan::SoftmaxKind::softmax) continue;
    if (!contracts_normalised(*einsum, p, *weights, views, *softmax)) continue;
    const bool merged = std::any_of(views.begin(), views.end(), [](const Node* view) {
      return std::holds_alternative<Merge>(view->op);
    });
    const NodePtr part = visible_part(weights->inputs[0], merged);
    if (part == nullptr) continue;
    Expr visible(part);
    for (const Node* view : views) visible = follow_view(*view, visible);
    std::vector<NodePtr> inputs = node->inputs;
    inputs.push_back(visible.node());
    return std::make_shared<const Node>(SelectEinsum{*einsum, p}, std::move(inputs), node->type);
  }
  return nullptr;
}

}  // namespace einkern::graph
