// SPDX-License-Identifier: Apache-2.0
// One walk that finds leaves and scalars and writes the structural key.
#include "collect.h"

#include <bit>
#include <cmath>
#include <cstdint>

#include "canonicalise.h"
#include "key.h"
#include "scalar_facts.h"
#include "scalar_fold.h"
#include "walk.h"

namespace einkern::graph {
namespace {

bool same_tensor(const Tensor& a, const Tensor& b) {
  return a.bytes() == b.bytes() && a.dtype() == b.dtype() && a.layout() == b.layout();
}

bool same_scalar(const map::Scalar& a, const map::Scalar& b) {
  // By bits: -0 is not 0, and a NaN is the NaN that it was.
  return a.dtype == b.dtype && a.integer == b.integer &&
         std::bit_cast<std::uint64_t>(a.real) == std::bit_cast<std::uint64_t>(b.real);
}

class Collector {
 public:
  explicit Collector(const std::vector<NodePtr>& roots) {
    result_.order = topological_order(roots);
    result_.key.reserve(kKeyBytes);
    fold_scalars();
    for (std::size_t i = 0; i < result_.order.size(); ++i) {
      const NodePtr& node = result_.order[i];
      number_.emplace(node.get(), static_cast<std::int64_t>(i));
      add(node);
    }
    for (const NodePtr& root : roots) refer(*root);
  }

  Collected take() { return std::move(result_); }

 private:
  void fold_scalars() {
    for (const NodePtr& node : result_.order) {
      if (const auto* constant = std::get_if<Constant>(&node->op)) {
        values_.emplace(node.get(), constant->value);
        continue;
      }
      const auto* op = std::get_if<Elementwise>(&node->op);
      if (op == nullptr || !node->type.weak || !node->type.open.empty()) continue;
      std::vector<map::Scalar> operands;
      for (const NodePtr& input : node->inputs) {
        const map::Scalar* const found = values_.find(input.get());
        if (found == nullptr) break;
        operands.push_back(*found);
      }
      if (operands.size() != node->inputs.size()) continue;
      if (const auto value = fold(op->op, node->type.dtype, operands)) {
        values_.emplace(node.get(), *value);
      }
    }
  }

  /// Writes how a user sees a node: as a scalar slot or as a number in the order.
  void refer(const Node& node) {
    const map::Scalar* const value = values_.find(&node);
    if (value == nullptr) {
      put_number(result_.key, number_.at(&node));
      return;
    }
    const std::int32_t slot = slot_of(*value);
    result_.scalar_of.emplace(&node, slot);
    put_number(result_.key, -1 - (std::int64_t{slot} * 16 + static_cast<int>(value->dtype)));
    put_number(result_.key, static_cast<std::int64_t>(fact_of(*value)));
  }

  std::int32_t slot_of(const map::Scalar& value) {
    for (std::size_t i = 0; i < result_.scalars.size(); ++i) {
      if (same_scalar(result_.scalars[i], value)) return static_cast<std::int32_t>(i);
    }
    result_.scalars.push_back(value);
    return static_cast<std::int32_t>(result_.scalars.size() - 1);
  }

  void add(const NodePtr& node) {
    if (values_.contains(node.get())) return;  // its users refer to its slot
    const auto* leaf = std::get_if<Leaf>(&node->op);
    if (leaf != nullptr || std::holds_alternative<Input>(node->op)) {
      std::size_t at = 0;
      for (; at < result_.leaves.size(); ++at) {
        const auto* other = std::get_if<Leaf>(&result_.leaves[at]->op);
        if (leaf != nullptr && other != nullptr && same_tensor(leaf->tensor, other->tensor)) break;
      }
      if (at == result_.leaves.size()) result_.leaves.push_back(node);
      result_.leaf_of.emplace(node.get(), static_cast<std::int32_t>(at));
      put_number(result_.key, -static_cast<std::int64_t>(at) - 1);
      put_number(result_.key, static_cast<std::int64_t>(node->type.dtype));
      put_number(result_.key, static_cast<std::int64_t>(node->type.shape.size()));
      for (std::size_t d = 0; d < node->type.shape.size(); ++d) {
        put_number(result_.key, node->type.shape[d]);
        if (leaf != nullptr) put_number(result_.key, leaf->tensor.strides()[d]);
      }
      return;
    }
    put_operation(result_.key, *node);
    put_number(result_.key, static_cast<std::int64_t>(node->inputs.size()));
    for (const NodePtr& input : node->inputs) refer(*input);
  }

  static constexpr std::size_t kKeyBytes = 256;  // of a graph of a few nodes

  Collected result_;
  NodeMap<map::Scalar> values_;
  NodeMap<std::int64_t> number_;
};

}  // namespace

Collected collect(const std::vector<NodePtr>& roots) { return Collector(roots).take(); }

}  // namespace einkern::graph
