// SPDX-License-Identifier: Apache-2.0
// Equal nodes once, idle views gone.
#include "canonicalise.h"

#include <string>
#include <unordered_map>

#include "key.h"
#include "walk.h"

namespace einkern::graph {
namespace {

/// Writes the parameters of operations into a key.
struct OperationWriter {
  Key& key;

  template <class T>
  void put(const T& value) const {
    key.put(value);
  }
  void put(const Alignment& alignment) const {
    key.put(alignment.axes);
    key.put(alignment.open);
  }
  void put(const std::vector<Alignment>& alignments) const {
    key.put(static_cast<std::int64_t>(alignments.size()));
    for (const Alignment& alignment : alignments) put(alignment);
  }
  void put(const PathChoice& path) const {
    key.put(static_cast<std::int64_t>(path.method));
    key.put(path.path);
  }
  void put(const Einsum& op) const {
    key.put(op.named->key);
    put(op.path);
  }
};

struct OperationKey {
  const Node& node;
  OperationWriter key;

  void identity() const { key.put(reinterpret_cast<std::int64_t>(&node)); }
  void number(std::size_t value) const { key.put(static_cast<std::int64_t>(value)); }
  void operator()(const Leaf&) const { identity(); }
  void operator()(const Input&) const { identity(); }
  void operator()(const Constant&) const { identity(); }
  void operator()(const Index&) const {
    key.put(node.type.open.front().label);
    key.put(node.type.open.front().position);
  }
  void operator()(const Elementwise& op) const {
    number(static_cast<std::size_t>(op.op));
    number(static_cast<std::size_t>(node.type.dtype));
    key.put(op.alignment);
  }
  void operator()(const Einsum& op) const { key.put(op); }
  void operator()(const Reduce& op) const {
    number(static_cast<std::size_t>(op.op));
    key.put(op.axes);
    number(op.keep);
  }
  void operator()(const Softmax& op) const {
    number(static_cast<std::size_t>(op.kind));
    key.put(op.axes);
    key.put(op.sink);
  }
  void operator()(const Permute& op) const { key.put(op.order); }
  void operator()(const Slice& op) const {
    number(op.axis);
    key.put(op.start);
    key.put(op.stop);
    key.put(op.step);
  }
  void operator()(const Split& op) const {
    number(op.axis);
    key.put(op.labels);
    key.put(op.sizes);
  }
  void operator()(const Merge& op) const {
    number(op.first);
    number(op.count);
    key.put(op.label);
  }
  void operator()(const Expand& op) const {
    number(op.at);
    key.put(op.label);
    key.put(op.size);
  }
  void operator()(const Relabel& op) const {
    key.put(op.labels);
    number(op.by_name);
  }
  void operator()(const Concat& op) const { number(op.axis); }
  void operator()(const Take& op) const { number(op.axis); }
  void operator()(const Toeplitz& op) const {
    number(op.axis);
    key.put(op.queries);
    key.put(op.labels);
  }
  void operator()(const Scan& op) const {
    number(op.axis);
    key.put(op.gate);
  }
  void operator()(const Bounded& op) const {
    key.put(op.low);
    key.put(op.high);
    key.put(op.message);
  }
  void operator()(const Visible& op) const {
    key.put(op.alignment);
    key.put(op.negated);
  }
  // Made after the last merging of equal nodes.
  void operator()(const Dot&) const { identity(); }
  void operator()(const Attend&) const { identity(); }
  void operator()(const AttendLogsumexp&) const { identity(); }
  void operator()(const SelectEinsum& op) const {
    key.put(op.einsum);
    number(op.weights);
  }
};

/// The input that a view which changes nothing stands for, or the node itself.
NodePtr without_idle_view(const NodePtr& node) {
  if (const auto* permute = std::get_if<Permute>(&node->op)) {
    for (std::size_t i = 0; i < permute->order.size(); ++i) {
      if (permute->order[i] != i) return node;
    }
    return node->inputs[0];
  }
  if (const auto* slice = std::get_if<Slice>(&node->op)) {
    if (slice->step == 1 && node->type.shape == node->inputs[0]->type.shape) return node->inputs[0];
  }
  return node;
}

}  // namespace

void put_operation(Key& key, const Node& node) {
  key.put(static_cast<std::int64_t>(node.op.index()));
  std::visit(OperationKey{node, {key}}, node.op);
}

std::vector<NodePtr> canonicalise(const std::vector<NodePtr>& roots) {
  std::unordered_map<std::string, NodePtr> known;
  return transform(roots, [&](const NodePtr& node, const Node&) {
    if (NodePtr kept = without_idle_view(node); kept != node) return kept;
    Key key;
    put_operation(key, *node);
    for (const NodePtr& input : node->inputs) {
      key.put(reinterpret_cast<std::int64_t>(input.get()));
    }
    return known.try_emplace(std::string(key.view()), node).first->second;
  });
}

}  // namespace einkern::graph
