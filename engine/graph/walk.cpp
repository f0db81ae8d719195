// SPDX-License-Identifier: Apache-2.0
// Walks over graphs.
#include "walk.h"

#include <unordered_map>
#include <utility>

#include "../base/error.h"
#include "build.h"
#include "einsum_node.h"

namespace einkern::graph {
namespace {

/// Builds each operation again through the same functions that words use.
struct Rebuilder {
  const Node& node;
  std::vector<Expr> in;

  std::optional<Expr> second() const { return in.size() > 1 ? std::optional(in[1]) : std::nullopt; }

  Expr operator()(const Elementwise& op) const {
    if (op.op == map::Op::cast) return cast(in[0], node.type.dtype);
    return elementwise(map::name_of(op.op).data(), op.op, in);
  }
  Expr operator()(const Einsum& op) const { return einsum_node("einsum", op.named, in, op.path); }
  Expr operator()(const Reduce& op) const {
    return reduce(plan::name_of(op.op).data(), op.op, in[0], op.axes, op.keep);
  }
  Expr operator()(const Softmax& op) const {
    return softmax("softmax", op.kind, in[0], op.axes, second());
  }
  Expr operator()(const Permute& op) const { return permute("permute", in[0], op.order); }
  Expr operator()(const Slice& op) const {
    return slice("slice", in[0], op.axis, op.start, op.stop, op.step);
  }
  Expr operator()(const Split& op) const {
    return split("split", in[0], op.axis, op.labels, op.sizes);
  }
  Expr operator()(const Merge& op) const {
    return merge("merge", in[0], op.first, op.count, op.label);
  }
  Expr operator()(const Expand& op) const {
    return expand("expand", in[0], op.at, op.label, op.size);
  }
  Expr operator()(const Relabel& op) const {
    return relabel("named", in[0], op.labels, op.by_name);
  }
  Expr operator()(const Concat& op) const { return concat("concat", in, op.axis); }
  Expr operator()(const Take& op) const { return take("take", in[0], in[1], op.axis); }
  Expr operator()(const Toeplitz& op) const {
    return toeplitz("toeplitz", in[0], op.axis, op.queries, op.labels);
  }
  Expr operator()(const Scan& op) const { return scan("scan", in[0], second(), op.axis); }
  Expr operator()(const Bounded& op) const { return bounded(in[0], op.low, op.high, op.message); }
  // Sources have no inputs; nodes made by rules come after types are final.
  template <class Fixed>
  Expr operator()(const Fixed&) const {
    fail_check("a node that cannot be rebuilt", __FILE__, __LINE__);
  }
};

}  // namespace

std::vector<NodePtr> topological_order(const std::vector<NodePtr>& roots) {
  std::vector<NodePtr> order;
  walk(roots, [&](const NodePtr& node) { order.push_back(node); });
  return order;
}

NodePtr rebuild(const Node& node, const std::vector<NodePtr>& inputs) {
  return std::visit(Rebuilder{node, {inputs.begin(), inputs.end()}}, node.op).node();
}

NodePtr with_inputs(const Node& node, const std::vector<NodePtr>& inputs) {
  return std::make_shared<const Node>(node.op, inputs, node.type);
}

std::vector<NodePtr> transform(const std::vector<NodePtr>& roots, const Replace& replace,
                               Remake remake) {
  std::unordered_map<const Node*, NodePtr> done;
  for (const NodePtr& node : topological_order(roots)) {
    std::vector<NodePtr> inputs;
    bool same = true;
    for (const NodePtr& input : node->inputs) {
      inputs.push_back(done.at(input.get()));
      same &= inputs.back() == input;
    }
    done.emplace(node.get(), replace(same ? node : remake(*node, inputs), *node));
  }
  std::vector<NodePtr> result;
  for (const NodePtr& root : roots) result.push_back(done.at(root.get()));
  return result;
}

}  // namespace einkern::graph
