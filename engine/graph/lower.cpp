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
#include "taken.h"
#include "tiled.h"
#include "views.h"
#include "walk.h"

namespace einkern::graph {
namespace {

bool is_elementwise(const Node& node) {
  return std::holds_alternative<Elementwise>(node.op) || std::holds_alternative<Visible>(node.op);
}

/// The same elements under other names.
bool is_relabelled(const Node& node) { return std::holds_alternative<Relabel>(node.op); }

bool is_source(const Node& node) {
  return std::holds_alternative<Constant>(node.op) || std::holds_alternative<Index>(node.op) ||
         std::holds_alternative<Dot>(node.op);
}

/// Nodes whose value must lie in memory. An elementwise node without memory is part of the program
/// of its users: of one, unless it is open.
class Placement {
 public:
  Placement(const std::vector<NodePtr>& order, const std::vector<NodePtr>& roots, bool fuse)
      : fuse_(fuse) {
    for (const NodePtr& root : roots) placed_.insert(root.get());
    for (const NodePtr& node : order) note_dot(*node);
    for (const NodePtr& node : order) note_tiled(*node);
    for (auto node = order.rbegin(); node != order.rend(); ++node) visit(**node);
  }

  std::unordered_set<const Node*> take() { return std::move(placed_); }

 private:
  // Programs beyond this length gain nothing more from merging and cost registers.
  static constexpr std::int64_t kMostMerged = 64;

  /// Whose program the users of a node would have it in.
  struct Wish {
    const Node* home = nullptr;
    std::int64_t users = 0;
    bool common = true;  // one program for all of them
    bool open = false;   // some user runs over more elements than its shape says
  };

  /// Nodes that are known only tile by tile, like the dot products in them.
  void note_dot(const Node& node) {
    bool of_dot = std::holds_alternative<Dot>(node.op);
    if (!std::holds_alternative<Attend>(node.op)) {
      for (const NodePtr& input : node.inputs) of_dot |= of_dot_.contains(input.get());
    }
    if (of_dot) of_dot_.insert(&node);
  }

  void note_tiled(const Node& node) {
    const auto* attend = std::get_if<Attend>(&node.op);
    if (attend == nullptr || !fuse_) return;
    tiled_.merge(tiled_nodes(node));
    for (const NodePtr& input : node.inputs) {
      if (std::holds_alternative<Visible>(input->op)) visible_.insert(input.get());
    }
  }

  /// All users of the node have been visited.
  void visit(const Node& node) {
    const Node* const home = home_of(node);
    // Part of the programs of Attend nodes, and of no other: those cut axes as fine as views need.
    const bool within = of_dot_.contains(&node) || visible_.contains(&node) ||
                        (tiled_.contains(&node) && !shared_.contains(&node));
    const bool has_program = is_elementwise(node) || (is_relabelled(node) && home != &node);
    for (const NodePtr& input : node.inputs) {
      if (of_dot_.contains(input.get())) continue;
      if (tiled_.contains(input.get())) {
        if (within) continue;
        shared_.insert(input.get());
      }
      // The visibility of an Attend node is a program beside its scores.
      if (std::holds_alternative<Attend>(node.op) && std::holds_alternative<Visible>(input->op)) {
        continue;
      }
      // Open terms have no shape of their own to be stored in; a closed one is computed once per
      // element, so it is merged only into a program that runs over the same elements.
      const bool open = !input->type.open.empty();
      const bool merges = std::holds_alternative<Elementwise>(input->op) || is_relabelled(*input);
      const bool inlined =
          has_program &&
          (is_source(*input) || open || (fuse_ && merges && input->type.shape == node.type.shape));
      if (!inlined) placed_.insert(input.get());
      Wish& wish = wishes_[input.get()];
      wish.common &= wish.users == 0 || wish.home == home;
      wish.open |= !node.type.open.empty();
      wish.home = home;
      ++wish.users;
    }
  }

  /// The node whose program computes this one: itself, or that of all its users.
  const Node* home_of(const Node& node) {
    const auto wish = wishes_.find(&node);
    if (placed_.contains(&node) || of_dot_.contains(&node) || wish == wishes_.end()) return &node;
    const Wish& users = wish->second;
    const bool once = users.common && (users.users == 1 || !users.open);
    if (once && ++merged_[users.home] < kMostMerged) return users.home;
    if (!is_source(node) && node.type.open.empty()) placed_.insert(&node);
    return &node;
  }

  const bool fuse_;
  std::unordered_set<const Node*> placed_, of_dot_;
  std::unordered_set<const Node*> tiled_;    // part of the programs of Attend nodes
  std::unordered_set<const Node*> shared_;   // tiled, but also part of something else
  std::unordered_set<const Node*> visible_;  // of Attend nodes
  std::unordered_map<const Node*, Wish> wishes_;
  std::unordered_map<const Node*, std::int64_t> merged_;  // into the program of a node
};

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
    const std::unordered_set<const Node*> placed =
        Placement(order, graph_.roots, options_.fuse).take();
    for (const NodePtr& node : order) {
      if (placed.contains(node.get()) && !places_.contains(node.get())) place(*node);
    }
    for (std::size_t i = 0; i < graph_.roots.size(); ++i) {
      const plan::Operand& at = places_.at(graph_.roots[i].get());
      if (at.value != outputs[i].value) builder_.add(plan::Copy{at, outputs[i]});
    }
    if (options_.fuse) builder_.join_epilogues();
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

  /// For a reader that widens f16 and bf16 itself.
  plan::Operand stored_value_of(const NodePtr& node, DType dtype) {
    const plan::Operand& at = places_.at(node.get());
    return is_half_float(at.dtype) ? at : value_of(node, dtype);
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
    at.k = stored_value_of(node.inputs[1], dtype);
    at.v = stored_value_of(node.inputs[2], dtype);
    std::size_t table = 4 + std::size_t{op.has_factor} + std::size_t{op.has_visible};
    if (op.k_taken) at.k_table = places_.at(node.inputs[table++].get());
    if (op.v_taken) at.v_table = places_.at(node.inputs[table].get());
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

  void compute(const Node& node, const Take& op, const plan::Operand& out) {
    const plan::Operand& in = places_.at(node.inputs[0].get());
    const plan::Operand& at = places_.at(node.inputs[1].get());
    const std::int64_t size = in.layout.shape[op.axis];
    builder_.add(plan::Check{at, 0, size - 1, position_message(op.axis, size)});
    builder_.add(plan::Take{in, at, out, op.axis});
  }

  void compute(const Node& node, const Scan& op, const plan::Operand& out) {
    plan::Scan step;
    step.in = value_of(node.inputs[0], node.type.dtype);
    step.out = out;
    step.axis = op.axis;
    if (node.inputs.size() > 1) {
      const plan::Operand gate = value_of(node.inputs[1], node.type.dtype);
      step.gate = {gate.value, gate.dtype, spread(gate.layout, op.gate.axes, node.type.shape)};
    }
    builder_.add(std::move(step));
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
