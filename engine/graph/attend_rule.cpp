// SPDX-License-Identifier: Apache-2.0
// Recognises the fused pair by its axes.
#include "attend_rule.h"

#include <algorithm>
#include <unordered_map>

#include "hidden_keys.h"
#include "score_axes.h"
#include "walk.h"

namespace einkern::graph {
namespace {

using Role = plan::ScoreAxis::Role;
using List = std::vector<std::int32_t>;

bool holds(const auto& list, const auto& value) {
  return std::find(list.begin(), list.end(), value) != list.end();
}

bool repeats(const List& labels) {
  List sorted = labels;
  std::sort(sorted.begin(), sorted.end());
  return std::adjacent_find(sorted.begin(), sorted.end()) != sorted.end();
}

/// What the rule has found of a candidate, before its axes are understood.
struct Candidate {
  NodePtr node;  // the weighted sum
  const Einsum* sum;
  std::size_t weights;             // operand of `sum`
  std::vector<const Node*> views;  // from the softmax outwards to that operand
  NodePtr softmax_node;
  const Softmax* softmax;
};

/// The dot products that scores are made of, and their axes.
struct FoundDot {
  NodePtr node;
  AxisMap axes;
};

/// Sizes of the labels of an einsum.
std::unordered_map<std::int32_t, std::int64_t> label_sizes(const Einsum& einsum,
                                                           const std::vector<NodePtr>& inputs) {
  std::unordered_map<std::int32_t, std::int64_t> sizes;
  for (std::size_t p = 0; p < einsum.inputs.size(); ++p) {
    for (std::size_t d = 0; d < einsum.inputs[p].size(); ++d) {
      std::int64_t& size = sizes.try_emplace(einsum.inputs[p][d], 1).first->second;
      if (inputs[p]->type.shape[d] != 1) size = inputs[p]->type.shape[d];
    }
  }
  return sizes;
}

class Matcher {
 public:
  explicit Matcher(const Candidate& candidate)
      : candidate_(candidate), axes_(candidate.softmax_node->inputs[0]->type.shape) {}

  /// The Attend node, or null.
  NodePtr match() {
    // Every cut makes some axis finer, so this ends.
    for (;;) {
      std::optional<Cut> wanted;
      if (NodePtr found = attempt(wanted)) return found;
      if (!wanted) return nullptr;
      axes_.cut(*wanted);
    }
  }

 private:
  const NodePtr& scores() const { return candidate_.softmax_node->inputs[0]; }

  NodePtr attempt(std::optional<Cut>& wanted) {
    op_ = Attend{};
    streamed_.assign(axes_.sizes().size(), false);
    for (const std::size_t axis : candidate_.softmax->axes) {
      for (const std::int32_t fine : axes_.scores()[axis])
        streamed_[static_cast<std::size_t>(fine)] = true;
    }
    const std::optional<FoundDot> dot = find_dot(wanted);
    if (!dot || !read_sum(wanted) || !read_dot(*dot)) return nullptr;
    return build(*dot);
  }

  /// Looks through elementwise nodes and views for the one contraction that has all streamed axes.
  std::optional<FoundDot> find_dot(std::optional<Cut>& wanted) const {
    struct Visit {
      NodePtr node;
      AxisMap axes;
    };
    std::optional<FoundDot> found;
    std::unordered_map<const Node*, AxisMap> seen;
    std::vector<Visit> pending{{scores(), axes_.scores()}};
    while (!pending.empty()) {
      Visit visit = std::move(pending.back());
      pending.pop_back();
      const Node& node = *visit.node;
      if (const auto [at, fresh] = seen.try_emplace(&node, visit.axes); !fresh) {
        if (at->second != visit.axes) return std::nullopt;  // one tensor in two orientations
        continue;
      }
      if (std::holds_alternative<Einsum>(node.op)) {
        List all;
        for (const List& list : visit.axes) all.insert(all.end(), list.begin(), list.end());
        bool complete = true;
        for (std::size_t a = 0; a < streamed_.size(); ++a) {
          complete &= !streamed_[a] || holds(all, static_cast<std::int32_t>(a));
        }
        if (!complete) continue;
        if (found) return std::nullopt;  // two products: talking heads, relative positions
        found = FoundDot{visit.node, std::move(visit.axes)};
      } else if (const auto* op = std::get_if<Elementwise>(&node.op)) {
        for (std::size_t i = 0; i < node.inputs.size(); ++i) {
          if (!node.inputs[i]->type.open.empty()) continue;
          AxisMap axes;
          for (std::size_t d = 0; d < op->alignment[i].axes.size(); ++d) {
            const auto axis = static_cast<std::size_t>(op->alignment[i].axes[d]);
            const bool stretched = node.inputs[i]->type.shape[d] != node.type.shape[axis];
            axes.push_back(stretched ? List{} : visit.axes[axis]);
          }
          pending.push_back({node.inputs[i], std::move(axes)});
        }
      } else if (is_view(node) && !std::holds_alternative<Slice>(node.op)) {
        const auto axes = axes_.inwards(node, visit.axes, wanted);
        if (!axes && wanted) return std::nullopt;
        if (axes) pending.push_back({node.inputs[0], *axes});
      }
    }
    return found;
  }

  /// The weighted sum: which labels are streamed, kept or columns.
  bool read_sum(std::optional<Cut>& wanted) {
    AxisMap weights = axes_.scores();
    for (const Node* view : candidate_.views) {
      auto next = axes_.outwards(*view, weights, wanted);
      if (!next) return false;
      weights = std::move(*next);
    }
    const Einsum& sum = *candidate_.sum;
    const std::size_t w = candidate_.weights, v = 1 - w;
    if (repeats(sum.inputs[w]) || repeats(sum.inputs[v]) || repeats(sum.output)) return false;
    const auto sizes = label_sizes(sum, candidate_.node->inputs);
    const Dims& w_shape = candidate_.node->inputs[w]->type.shape;
    const Dims& v_shape = candidate_.node->inputs[v]->type.shape;
    std::unordered_map<std::int32_t, List> made_of;  // labels of the weights
    for (std::size_t d = 0; d < w_shape.size(); ++d) {
      const std::int32_t label = sum.inputs[w][d];
      if (w_shape[d] != sizes.at(label)) continue;  // broadcasts: the label is the values' own
      made_of[label] = weights[d];
      const bool kept = holds(sum.output, label);
      const bool in_values = holds(sum.inputs[v], label);
      for (const std::int32_t axis : weights[d]) {
        if (streamed_[static_cast<std::size_t>(axis)] == kept) return false;
        if (!kept && !in_values) return false;
      }
    }
    for (std::size_t d = 0; d < v_shape.size(); ++d) {
      const std::int32_t label = sum.inputs[v][d];
      if (const auto at = made_of.find(label); at != made_of.end()) {
        const bool alone = v_shape[d] != sizes.at(label);
        if (alone && !holds(sum.output, label)) return false;
        op_.v.push_back(alone ? List{} : at->second);
        continue;
      }
      if (!holds(sum.output, label)) return false;
      op_.v.push_back({~static_cast<std::int32_t>(op_.columns.size())});
      made_of[label] = op_.v.back();
      op_.columns.push_back(v_shape[d]);
    }
    for (const std::int32_t label : sum.output) op_.out.push_back(made_of.at(label));
    return true;
  }

  /// The first contraction: which operand holds the keys, and the roles of the remaining axes.
  bool read_dot(const FoundDot& dot) {
    const auto& einsum = std::get<Einsum>(dot.node->op);
    if (einsum.inputs.size() != 2 || repeats(einsum.output)) return false;
    if (dot.node->type.dtype != candidate_.node->type.dtype) return false;
    const auto sizes = label_sizes(einsum, dot.node->inputs);
    std::unordered_map<std::int32_t, List> made_of;
    for (std::size_t d = 0; d < einsum.output.size(); ++d) made_of[einsum.output[d]] = dot.axes[d];
    AxisMap operands[2];
    bool has_streamed[2] = {false, false};
    for (std::size_t p = 0; p < 2; ++p) {
      if (repeats(einsum.inputs[p])) return false;
      for (std::size_t d = 0; d < einsum.inputs[p].size(); ++d) {
        const std::int32_t label = einsum.inputs[p][d];
        const bool alone = dot.node->inputs[p]->type.shape[d] != sizes.at(label);
        if (!holds(einsum.output, label)) {
          const bool shared = holds(einsum.inputs[1 - p], label);
          if (alone || !shared) {
            if (sizes.at(label) != 1) return false;  // summed in one operand only
            operands[p].push_back({});
            continue;
          }
          auto [at, fresh] =
              made_of.try_emplace(label, List{~static_cast<std::int32_t>(op_.inner.size())});
          if (fresh) op_.inner.push_back(sizes.at(label));
          operands[p].push_back(at->second);
          continue;
        }
        operands[p].push_back(alone ? List{} : made_of.at(label));
        for (const std::int32_t axis : operands[p].back()) {
          has_streamed[p] |= streamed_[static_cast<std::size_t>(axis)];
        }
      }
    }
    // An inner label on which one operand broadcasts has been seen from the other side only.
    for (std::size_t i = 0; i < op_.inner.size(); ++i) {
      for (const AxisMap& operand : operands) {
        if (!holds(operand, List{~static_cast<std::int32_t>(i)})) return false;
      }
    }
    if (has_streamed[0] == has_streamed[1]) return false;
    keys_ = has_streamed[0] ? 0 : 1;
    op_.k = operands[keys_];
    op_.q = operands[1 - keys_];
    for (std::size_t a = 0; a < streamed_.size(); ++a) {
      const auto axis = static_cast<std::int32_t>(a);
      const auto in = [&](const AxisMap& map) {
        return std::any_of(map.begin(), map.end(),
                           [&](const List& list) { return holds(list, axis); });
      };
      // Keys that vary where the values do not are scores of another product: talking heads.
      if (!streamed_[a] && axes_.sizes()[a] != 1 && in(op_.k) && !in(op_.v)) return false;
      const Role role = streamed_[a]             ? Role::streamed
                        : in(op_.k) || in(op_.v) ? Role::batch
                                                 : Role::row;
      op_.axes.push_back({role, axes_.sizes()[a]});
    }
    return true;
  }

  NodePtr build(const FoundDot& dot) {
    const NodePtr placeholder =
        std::make_shared<const Node>(Dot{}, std::vector<NodePtr>{}, dot.node->type);
    const NodePtr parted = transform({scores()}, [&](const NodePtr& node, const Node& original) {
      return &original == dot.node.get() ? placeholder : node;
    })[0];
    const Softmax& softmax = *candidate_.softmax;
    op_.scores = axes_.scores();
    op_.normalised = softmax.axes;
    op_.sink = softmax.sink;
    op_.replaced = scores();
    std::vector<NodePtr> inputs{dot.node->inputs[1 - keys_], dot.node->inputs[keys_],
                                candidate_.node->inputs[1 - candidate_.weights], parted};
    if (std::holds_alternative<SelectEinsum>(candidate_.node->op)) {
      if (NodePtr visible = visible_part(parted, false)) {
        op_.has_visible = true;
        inputs.push_back(std::move(visible));
      }
    }
    if (candidate_.softmax_node->inputs.size() > 1) {
      op_.has_sink = true;
      inputs.push_back(candidate_.softmax_node->inputs[1]);
    }
    return std::make_shared<const Node>(std::move(op_), std::move(inputs), candidate_.node->type);
  }

  const Candidate& candidate_;
  ScoreAxes axes_;
  std::vector<bool> streamed_;  // by finer axis
  std::size_t keys_ = 1;        // operand of the first contraction
  Attend op_;
};

/// The softmax behind operand `p`, when nobody else uses it or a view on the way.
bool find_softmax(const Site& site, const Einsum& sum, std::size_t p, Candidate& candidate) {
  NodePtr node = site.node->inputs[p];
  const Node* original = site.original.inputs[p].get();
  candidate = {site.node, &sum, p, {}, nullptr, nullptr};
  for (;;) {
    const auto users = site.users.find(original);
    if (users == site.users.end() || users->second != 1) return false;
    if (const auto* softmax = std::get_if<Softmax>(&node->op)) {
      candidate.softmax_node = node;
      candidate.softmax = softmax;
      return softmax->kind == plan::SoftmaxKind::softmax;
    }
    if (!is_view(*node)) return false;
    candidate.views.insert(candidate.views.begin(), node.get());
    node = node->inputs[0];
    original = original->inputs[0].get();
  }
}

}  // namespace

NodePtr attend_rule(const Site& site) {
  const auto* select = std::get_if<SelectEinsum>(&site.node->op);
  const auto* sum = select != nullptr ? &select->einsum : std::get_if<Einsum>(&site.node->op);
  if (sum == nullptr || sum->inputs.size() != 2 || !is_float(site.node->type.dtype)) return nullptr;
  for (std::size_t p = 0; p < 2; ++p) {
    if (select != nullptr && select->weights != p) continue;
    Candidate candidate;
    if (!find_softmax(site, *sum, p, candidate)) continue;
    const DType dtype = site.node->type.dtype;
    if (candidate.softmax_node->type.dtype != dtype ||
        candidate.softmax_node->inputs[0]->type.dtype != dtype) {
      continue;
    }
    if (NodePtr found = Matcher(candidate).match()) return found;
  }
  return nullptr;
}

std::vector<NodePtr> share_logsumexp(const std::vector<NodePtr>& roots) {
  std::vector<NodePtr> attends;
  for (const NodePtr& node : topological_order(roots)) {
    if (std::holds_alternative<Attend>(node->op)) attends.push_back(node);
  }
  return transform(roots, [&](const NodePtr& node, const Node&) {
    const auto* softmax = std::get_if<Softmax>(&node->op);
    if (softmax == nullptr || softmax->kind != plan::SoftmaxKind::logsumexp) return node;
    for (const NodePtr& attend : attends) {
      const auto& op = std::get<Attend>(attend->op);
      const NodePtr sink = node->inputs.size() > 1 ? node->inputs[1] : nullptr;
      const NodePtr theirs = op.has_sink ? attend->inputs.back() : nullptr;
      if (op.replaced == node->inputs[0] && op.normalised == softmax->axes && sink == theirs) {
        return std::make_shared<const Node>(AttendLogsumexp{}, std::vector<NodePtr>{attend},
                                            node->type);
      }
    }
    return node;
  });
}

}  // namespace einkern::graph
