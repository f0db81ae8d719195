// SPDX-License-Identifier: Apache-2.0
// Graph to plan: which nodes get memory, and the steps that fill it.
#include "lower.h"

#include <algorithm>
#include <unordered_set>

#include "../base/error.h"
#include "../plan/builder.h"
#include "einsum_node.h"
#include "lower_attend.h"
#include "lower_map.h"
#include "lower_select.h"
#include "lower_visible.h"
#include "promote.h"
#include "views.h"
#include "walk.h"

namespace einkern::graph {
namespace {

bool is_elementwise(const Node& node) {
  return std::holds_alternative<Elementwise>(node.op) || std::holds_alternative<Visible>(node.op);
}

bool is_source(const Node& node) {
  return std::holds_alternative<Constant>(node.op) || std::holds_alternative<Index>(node.op) ||
         std::holds_alternative<Dot>(node.op);
}

/// Nodes whose value must lie in memory.
std::unordered_set<const Node*> find_placed(const std::vector<NodePtr>& order,
                                            const std::vector<NodePtr>& roots, bool fuse) {
  // Programs beyond this length gain nothing more from merging and cost registers.
  constexpr std::int64_t kMostMerged = 64;
  std::unordered_map<const Node*, std::int64_t> uses, merged;
  for (const NodePtr& node : order) {
    for (const NodePtr& input : node->inputs) ++uses[input.get()];
  }
  std::unordered_set<const Node*> placed;
  std::unordered_set<const Node*> of_dot;  // known only tile by tile, like the dot products in them
  for (const NodePtr& root : roots) placed.insert(root.get());
  for (const NodePtr& node : order) {
    std::int64_t length = 1;
    if (std::holds_alternative<Dot>(node->op)) of_dot.insert(node.get());
    for (const NodePtr& input : node->inputs) {
      if (of_dot.contains(input.get())) {
        if (!std::holds_alternative<Attend>(node->op)) of_dot.insert(node.get());
        continue;
      }
      // The visibility of an Attend node is a program beside its scores.
      if (std::holds_alternative<Attend>(node->op) && std::holds_alternative<Visible>(input->op)) {
        continue;
      }
      bool inlined = false;
      if (is_elementwise(*node)) {
        // Open terms have no shape of their own to be stored in; a closed one is computed once per
        // element, so it is merged only into a single user that runs over the same elements.
        const bool open = !input->type.open.empty();
        const bool single = uses[input.get()] == 1 && input->type.shape == node->type.shape;
        inlined = is_source(*input) || open ||
                  (fuse && single && std::holds_alternative<Elementwise>(input->op) &&
                   length + merged[input.get()] <= kMostMerged);
      }
      if (!inlined) {
        placed.insert(input.get());
      } else if (!placed.contains(input.get())) {
        length += merged[input.get()];
      }
    }
    merged[node.get()] = length;
  }
  return placed;
}

class Lowering {
 public:
  Lowering(const Graph& graph, const LowerOptions& options, const Target& target)
      : graph_(graph), options_(options), builder_(target) {}

  plan::Plan run() {
    builder_.set_scalars(graph_.scalars);
    for (std::size_t i = 0; i < graph_.leaves.size(); ++i) {
      const NodePtr& leaf = graph_.leaves[i];
      places_[leaf.get()] = builder_.add_input(leaf->type.dtype, options_.leaf_layouts[i],
                                               "input " + std::to_string(i));
    }
    std::vector<plan::Operand> outputs;
    for (std::size_t i = 0; i < graph_.roots.size(); ++i) {
      outputs.push_back(builder_.add_output(graph_.roots[i]->type.dtype, options_.out_layouts[i],
                                            "output " + std::to_string(i)));
      set_destination(*graph_.roots[i], outputs.back());
    }
    const std::vector<NodePtr> order = topological_order(graph_.roots);
    for (const NodePtr& node : order) {
      if (std::holds_alternative<AttendLogsumexp>(node->op)) {
        logsumexp_of_.emplace(node->inputs[0].get(), node.get());
      }
    }
    const std::unordered_set<const Node*> placed = find_placed(order, graph_.roots, options_.fuse);
    for (const NodePtr& node : order) {
      if (placed.contains(node.get()) && !places_.contains(node.get())) place(*node);
    }
    for (std::size_t i = 0; i < graph_.roots.size(); ++i) {
      const plan::Operand& at = places_.at(graph_.roots[i].get());
      if (at.value != outputs[i].value) builder_.add(plan::Copy{at, outputs[i]});
    }
    return builder_.finish();
  }

 private:
  void place(const Node& node) {
    if (!node.inputs.empty()) {
      if (const auto input = places_.find(node.inputs[0].get()); input != places_.end()) {
        plan::Operand from = input->second;
        if (std::holds_alternative<Merge>(node.op) && !view_layout(node, from.layout)) {
          from = copied(from, from.dtype);
        }
        if (auto layout = view_layout(node, from.layout)) {
          places_[&node] = {from.value, from.dtype, std::move(*layout)};
          return;
        }
      }
    }
    if (const auto* op = std::get_if<Bounded>(&node.op)) {
      const plan::Operand at = places_.at(node.inputs[0].get());
      builder_.add(plan::Check{at, op->low, op->high, op->message});
      places_[&node] = at;
      return;
    }
    const plan::Operand out = memory_for(node);
    std::visit([&](const auto& op) { compute(node, op, out); }, node.op);
    places_[&node] = out;
  }

  /// A root is written by its node itself, and through views that only rearrange by the node behind
  /// them; the second root of a node, leaves and other views are copied.
  void set_destination(const Node& root, plan::Operand out) {
    const Node* node = &root;
    while (destinations_.try_emplace(node, out).second) {
      const std::optional<Layout> behind = layout_behind(*node, out.layout);
      if (!behind) return;
      out.layout = *behind;
      node = node->inputs[0].get();
    }
  }

  /// The output that the node is, or a new temporary.
  plan::Operand memory_for(const Node& node) {
    const auto destination = destinations_.find(&node);
    if (destination != destinations_.end()) return destination->second;
    return builder_.add_temporary(node.type.dtype, node.type.shape);
  }

  plan::Operand copied(const plan::Operand& from, DType dtype) {
    plan::Operand to = builder_.add_temporary(dtype, from.layout.shape);
    builder_.add(plan::Copy{from, to});
    return to;
  }
  /// The value of an input in this dtype.
  plan::Operand value_of(const NodePtr& node, DType dtype) {
    const plan::Operand& at = places_.at(node.get());
    return at.dtype == dtype ? at : copied(at, dtype);
  }

  void map(const Node& node, const plan::Operand& out) {
    MapEmitter emitter(builder_, node.type.shape, places_, graph_.scalar_of);
    const std::int32_t result = emitter.emit(&node, MapEmitter::own_axes(node), node.type.dtype);
    builder_.add(plan::Map{emitter.take_program(result), emitter.inputs(), out});
  }
  void compute(const Node& node, const Elementwise&, const plan::Operand& out) { map(node, out); }
  void compute(const Node& node, const Constant&, const plan::Operand& out) { map(node, out); }

  void compute(const Node& node, const Visible&, const plan::Operand& out) {
    MapEmitter emitter(builder_, node.type.shape, places_, graph_.scalar_of);
    const std::int32_t result = emit_visible(emitter, node, MapEmitter::own_axes(node));
    builder_.add(plan::Map{emitter.take_program(result), emitter.inputs(), out});
  }

  void compute(const Node& node, const Attend& op, const plan::Operand& out) {
    const DType dtype = node.type.dtype;
    AttendPlaces at;
    at.q = value_of(node.inputs[0], dtype);
    at.k = value_of(node.inputs[1], dtype);
    at.v = value_of(node.inputs[2], dtype);
    if (op.has_sink) at.sink = value_of(node.inputs.back(), dtype);
    at.out = out;
    if (const auto user = logsumexp_of_.find(&node); user != logsumexp_of_.end()) {
      at.logsumexp = memory_for(*user->second);
      places_[user->second] = at.logsumexp;
    }
    builder_.add(lower_attend(builder_, node, at, places_, graph_.scalar_of));
  }

  void compute(const Node& node, const Einsum& op, const plan::Operand& out) {
    std::vector<plan::Operand> operands;
    for (const NodePtr& input : node.inputs) operands.push_back(places_.at(input.get()));
    plan::add_einsum(builder_, to_spec(op, shapes(node.inputs)), operands, out, op.path);
  }

  void compute(const Node& node, const SelectEinsum& op, const plan::Operand& out) {
    std::vector<plan::Operand> operands;
    const std::vector<NodePtr> inputs(node.inputs.begin(), node.inputs.end() - 1);
    for (const NodePtr& input : inputs) operands.push_back(value_of(input, node.type.dtype));
    const Spec spec = to_spec(op.einsum, shapes(inputs));
    lower_select(builder_, spec, op.weights, operands, places_.at(node.inputs.back().get()), out,
                 op.einsum.path);
  }

  void compute(const Node& node, const Reduce& op, const plan::Operand& out) {
    const plan::Operand in = value_of(node.inputs[0], node.type.dtype);
    plan::Reduce step{op.op, in, out, {}, {}};
    std::size_t to = 0;
    for (std::size_t d = 0; d < in.layout.rank(); ++d) {
      const bool reduced = std::binary_search(op.axes.begin(), op.axes.end(), d);
      const std::int64_t size = in.layout.shape[d];
      const std::int64_t stride = in.layout.strides[d];
      const std::size_t at = to;
      if (!reduced || op.keep) ++to;
      if (size == 1) continue;
      if (reduced) {
        step.reduced.push_back({size, stride, 0, 0});
      } else {
        step.kept.push_back({size, stride, 0, out.layout.strides[at]});
      }
    }
    builder_.add(std::move(step));
  }

  void compute(const Node& node, const Softmax& op, const plan::Operand& out) {
    const plan::Operand in = value_of(node.inputs[0], node.type.dtype);
    Dims order, rows;
    for (std::size_t d = 0; d < in.layout.rank(); ++d) {
      if (std::binary_search(op.axes.begin(), op.axes.end(), d)) continue;
      order.push_back(static_cast<std::int64_t>(d));
      rows.push_back(in.layout.shape[d]);
    }
    for (const std::size_t axis : op.axes) order.push_back(static_cast<std::int64_t>(axis));
    const auto reordered = [&](const plan::Operand& operand) {
      return plan::Operand{operand.value, operand.dtype, permuted(operand.layout, order)};
    };
    plan::Softmax step{op.kind, op.axes.size(), reordered(in), out, {}};
    if (op.kind != plan::SoftmaxKind::logsumexp) step.out = reordered(out);
    if (node.inputs.size() > 1) {
      const plan::Operand sink = value_of(node.inputs[1], node.type.dtype);
      step.sink = {sink.value, sink.dtype, spread(sink.layout, op.sink.axes, rows)};
    }
    builder_.add(std::move(step));
  }

  void compute(const Node& node, const Concat& op, const plan::Operand& out) {
    plan::Operand part = out;
    for (const NodePtr& input : node.inputs) {
      const plan::Operand& from = places_.at(input.get());
      part.layout.shape[op.axis] = from.layout.shape[op.axis];
      builder_.add(plan::Copy{from, part});
      part.layout.offset += from.layout.shape[op.axis] * out.layout.strides[op.axis];
    }
  }

  template <class Other>
  void compute(const Node&, const Other&, const plan::Operand&) {
    fail_check("a node that cannot be computed", __FILE__, __LINE__);
  }

  static std::vector<Shape> shapes(const std::vector<NodePtr>& nodes) {
    std::vector<Shape> result;
    for (const NodePtr& node : nodes) result.push_back(node->type.shape);
    return result;
  }

  const Graph& graph_;
  const LowerOptions& options_;
  plan::Builder builder_;
  std::unordered_map<const Node*, plan::Operand> places_;
  std::unordered_map<const Node*, plan::Operand> destinations_;
  std::unordered_map<const Node*, const Node*> logsumexp_of_;  // Attend node -> its second result
};

}  // namespace

plan::Plan lower(const Graph& graph, const LowerOptions& options, const Target& target) {
  return Lowering(graph, options, target).run();
}

}  // namespace einkern::graph
