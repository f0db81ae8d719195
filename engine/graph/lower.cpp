// SPDX-License-Identifier: Apache-2.0
// Graph to plan: which nodes get memory, and the steps that fill it.
#include "lower.h"

#include <algorithm>
#include <unordered_set>

#include "../base/error.h"
#include "../plan/builder.h"
#include "einsum_node.h"
#include "lower_map.h"
#include "lower_select.h"
#include "places.h"
#include "promote.h"
#include "walk.h"

namespace einkern::graph {
namespace {

bool is_elementwise(const Node& node) {
  return std::holds_alternative<Elementwise>(node.op) || std::holds_alternative<Visible>(node.op);
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
  for (const NodePtr& root : roots) placed.insert(root.get());
  for (const NodePtr& node : order) {
    std::int64_t length = 1;
    for (const NodePtr& input : node->inputs) {
      const bool source =
          std::holds_alternative<Constant>(input->op) || std::holds_alternative<Index>(input->op);
      bool inlined = false;
      if (is_elementwise(*node)) {
        // Open terms have no shape of their own to be stored in; a closed one is computed once per
        // element, so it is merged only into a single user that runs over the same elements.
        const bool open = !input->type.open.empty();
        const bool single = uses[input.get()] == 1 && input->type.shape == node->type.shape;
        inlined = source || open ||
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
      // The first root of a node is written by the node itself; leaves and views are copied.
      destinations_.try_emplace(graph_.roots[i].get(), outputs.back());
    }
    const std::vector<NodePtr> order = topological_order(graph_.roots);
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
    const auto destination = destinations_.find(&node);
    const plan::Operand out = destination != destinations_.end()
                                  ? destination->second
                                  : builder_.add_temporary(node.type.dtype, node.type.shape);
    std::visit([&](const auto& op) { compute(node, op, out); }, node.op);
    places_[&node] = out;
  }

  plan::Operand copied(const plan::Operand& from, DType dtype) {
    const plan::Operand to = builder_.add_temporary(dtype, from.layout.shape);
    builder_.add(plan::Copy{from, to});
    return to;
  }
  /// The value of an input in this dtype.
  plan::Operand value_of(const NodePtr& node, DType dtype) {
    const plan::Operand& at = places_.at(node.get());
    return at.dtype == dtype ? at : copied(at, dtype);
  }

  static MapEmitter::Environment own_axes(const Node& node) {
    MapEmitter::Environment environment;
    for (std::size_t d = 0; d < node.type.shape.size(); ++d) {
      environment.push_back(static_cast<std::int32_t>(d));
    }
    return environment;
  }

  void map(const Node& node, const plan::Operand& out) {
    MapEmitter emitter(node.type.shape, places_, graph_.scalar_of);
    const std::int32_t result = emitter.emit(&node, own_axes(node), node.type.dtype);
    builder_.add(emitter.finish(result, out));
  }
  void compute(const Node& node, const Elementwise&, const plan::Operand& out) { map(node, out); }
  void compute(const Node& node, const Constant&, const plan::Operand& out) { map(node, out); }

  void compute(const Node& node, const Visible& op, const plan::Operand& out) {
    MapEmitter emitter(node.type.shape, places_, graph_.scalar_of);
    std::int32_t all = -1;
    for (std::size_t i = 0; i < node.inputs.size(); ++i) {
      MapEmitter::Environment environment = op.alignment[i].axes;
      environment.insert(environment.end(), op.alignment[i].open.begin(),
                         op.alignment[i].open.end());
      std::int32_t one = emitter.emit(node.inputs[i].get(), environment, DType::boolean);
      if (op.negated[i]) one = emitter.emit({map::Op::logical_not, DType::boolean, one});
      all = all < 0 ? one : emitter.emit({map::Op::logical_and, DType::boolean, all, one});
    }
    builder_.add(emitter.finish(all, out));
  }

  void compute(const Node& node, const Einsum& op, const plan::Operand& out) {
    std::vector<plan::Operand> operands;
    for (const NodePtr& input : node.inputs) operands.push_back(places_.at(input.get()));
    plan::add_einsum(builder_, to_spec(op, shapes(node.inputs)), std::move(operands), out, op.path);
  }

  void compute(const Node& node, const SelectEinsum& op, const plan::Operand& out) {
    std::vector<plan::Operand> operands;
    const std::vector<NodePtr> inputs(node.inputs.begin(), node.inputs.end() - 1);
    for (const NodePtr& input : inputs) operands.push_back(value_of(input, node.type.dtype));
    const Spec spec = to_spec(op.einsum, shapes(inputs));
    lower_select(builder_, spec, op.weights, std::move(operands),
                 places_.at(node.inputs.back().get()), out, op.einsum.path);
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
};

}  // namespace

plan::Plan lower(const Graph& graph, const LowerOptions& options, const Target& target) {
  return Lowering(graph, options, target).run();
}

}  // namespace einkern::graph
