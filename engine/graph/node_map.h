// SPDX-License-Identifier: Apache-2.0
// Values by node: an array while there are few, so that a small graph costs no allocation.
#pragma once

#include <array>
#include <cstddef>
#include <memory>
#include <type_traits>
#include <unordered_map>

namespace einkern::graph {

struct Node;

/// A map from nodes to small values. Nodes must outlive it.
template <class Value>
class NodeMap {
  // Elements are not set before they are added: every evaluation makes five maps and fills a few.
  static_assert(std::is_trivially_default_constructible_v<Value>);

 public:
  NodeMap() noexcept {}  // NOLINT(modernize-use-equals-default): see above

  /// Null when the node is not there.
  const Value* find(const Node* node) const {
    if (many_ != nullptr) {
      const auto found = many_->find(node);
      return found == many_->end() ? nullptr : &found->second;
    }
    for (std::size_t i = 0; i < size_; ++i) {
      if (few_[i].node == node) return &few_[i].value;
    }
    return nullptr;
  }
  bool contains(const Node* node) const { return find(node) != nullptr; }
  const Value& at(const Node* node) const { return *find(node); }

  /// Adds a node; false when it is there already.
  bool emplace(const Node* node, const Value& value) {
    if (contains(node)) return false;
    if (size_ == kFew && many_ == nullptr) {
      many_ = std::make_unique<std::unordered_map<const Node*, Value>>();
      for (const Entry& entry : few_) many_->emplace(entry.node, entry.value);
    }
    if (many_ != nullptr) {
      many_->emplace(node, value);
    } else {
      few_[size_++] = {node, value};
    }
    return true;
  }

 private:
  // Searching 16 addresses takes about as long as hashing one.
  static constexpr std::size_t kFew = 16;
  struct Entry {
    const Node* node;
    Value value;
  };
  std::array<Entry, kFew> few_;
  std::size_t size_ = 0;  // of few_
  std::unique_ptr<std::unordered_map<const Node*, Value>> many_;
};

}  // namespace einkern::graph
