// SPDX-License-Identifier: Apache-2.0
// One walk that finds leaves and scalars and writes the structural key.
#include "collect.h"

#include <bit>
#include <cstdint>
#include <optional>

#include "canonicalise.h"
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
  explicit Collector(Collected& result) : result_(result) {}

  /// The next node; its inputs have been added.
  void add(const NodePtr& node) {
    number_.emplace(node.get(), nodes_++);
    if (fold_scalar(*node)) return;  // its users refer to its slot
    if (node->inputs.empty()) {
      const auto* leaf = std::get_if<Leaf>(&node->op);
      if (leaf != nullptr || std::holds_alternative<Input>(node->op)) return add_leaf(node, leaf);
    }
    put_operation(result_.key, *node);
    put(node->inputs.size());
    for (const NodePtr& input : node->inputs) refer(*input);
  }

  /// Writes how a user sees a node: as a scalar slot or as a number in the order.
  void refer(const Node& node) {
    const std::int32_t* const value = value_of_.find(&node);
    if (value == nullptr) return put(number_.at(&node));
    const map::Scalar& scalar = values_[static_cast<std::size_t>(*value)];
    const std::int32_t slot = slot_of(scalar);
    result_.scalar_of.emplace(&node, slot);
    put(-1 - (std::int64_t{slot} * 16 + static_cast<int>(scalar.dtype)));
    put(fact_of(scalar));
  }

  /// Ends the key with the roots. What they refer to could be read as another node, were it not for
  /// a number that no operation has, which counts them too.
  void end(std::span<const NodePtr> roots) {
    put(std::variant_size_v<Operation> + roots.size());
    for (const NodePtr& root : roots) refer(*root);
  }

 private:
  template <class Number>
  void put(Number value) {
    result_.key.put(static_cast<std::int64_t>(value));
  }

  /// Notes the value of a scalar, or of arithmetic among scalars; false for everything else.
  bool fold_scalar(const Node& node) {
    std::optional<map::Scalar> value;
    if (const auto* constant = std::get_if<Constant>(&node.op)) {
      value = constant->value;
    } else if (const auto* op = std::get_if<Elementwise>(&node.op);
               op != nullptr && node.type.weak && node.type.open.empty()) {
      std::vector<map::Scalar> operands;
      for (const NodePtr& input : node.inputs) {
        const std::int32_t* const found = value_of_.find(input.get());
        if (found == nullptr) return false;
        operands.push_back(values_[static_cast<std::size_t>(*found)]);
      }
      value = fold(op->op, node.type.dtype, operands);
    }
    if (!value) return false;
    value_of_.emplace(&node, static_cast<std::int32_t>(values_.size()));
    values_.push_back(*value);
    return true;
  }

  std::int32_t slot_of(const map::Scalar& value) {
    for (std::size_t i = 0; i < result_.scalars.size(); ++i) {
      if (same_scalar(result_.scalars[i], value)) return static_cast<std::int32_t>(i);
    }
    result_.scalars.push_back(value);
    return static_cast<std::int32_t>(result_.scalars.size() - 1);
  }

  void add_leaf(const NodePtr& node, const Leaf* leaf) {
    std::size_t at = 0;
    for (; at < result_.leaves.size(); ++at) {
      const auto* other = std::get_if<Leaf>(&(*result_.leaves[at])->op);
      if (leaf != nullptr && other != nullptr && same_tensor(leaf->tensor, other->tensor)) break;
    }
    if (at == result_.leaves.size()) result_.leaves.push_back(&node);
    result_.leaf_of.emplace(node.get(), static_cast<std::int32_t>(at));
    put(-static_cast<std::int64_t>(at) - 1);
    put(node->type.dtype);
    put(node->type.shape.size());
    for (std::size_t d = 0; d < node->type.shape.size(); ++d) {
      put(node->type.shape[d]);
      if (leaf != nullptr) put(leaf->tensor.strides()[d]);
    }
  }

  Collected& result_;
  std::int64_t nodes_ = 0;
  NodeMap<std::int64_t> number_;    // in the order of the walk
  NodeMap<std::int32_t> value_of_;  // scalars -> position in values_
  std::vector<map::Scalar> values_;
};

}  // namespace

Collected collect(std::span<const NodePtr> roots) {
  Collected result;
  Collector collector(result);
  walk(roots, [&](const NodePtr& node) { collector.add(node); });
  collector.end(roots);
  return result;
}

}  // namespace einkern::graph
