// SPDX-License-Identifier: Apache-2.0
// Orders and rebuilds graphs without recursion.
#pragma once

#include <functional>
#include <span>
#include <vector>

#include "../base/small_vector.h"
#include "node.h"
#include "node_map.h"

namespace einkern::graph {

/// Gives `visit` every node reachable from the roots, inputs before users, each once: as the handle
/// that a root or a user holds.
template <class Visit>
void walk(std::span<const NodePtr> roots, Visit&& visit) {
  NodeMap<char> seen;
  struct Entered {
    const NodePtr* node;
    std::size_t next;  // the inputs before it have been entered
  };
  SmallVector<Entered, 8> path;
  for (const NodePtr& root : roots) {
    if (!seen.emplace(root.get(), 0)) continue;
    path.push_back(Entered{&root, 0});
    while (!path.empty()) {
      auto& [node, next] = path.back();
      if (next < (*node)->inputs.size()) {
        const NodePtr& input = (*node)->inputs[next++];
        if (seen.emplace(input.get(), 0)) path.push_back(Entered{&input, 0});
      } else {
        visit(*node);
        path.pop_back();
      }
    }
  }
}

/// The nodes that `walk` gives, in its order.
std::vector<NodePtr> topological_order(const std::vector<NodePtr>& roots);

/// The same operation over other inputs, checked and typed anew. Only for graphs before rules ran.
NodePtr rebuild(const Node& node, const std::vector<NodePtr>& inputs);

/// The same operation and type over other inputs of the same types.
NodePtr with_inputs(const Node& node, const std::vector<NodePtr>& inputs);

using Replace = std::function<NodePtr(const NodePtr& node, const Node& original)>;
using Remake = NodePtr (*)(const Node&, const std::vector<NodePtr>&);

/// Replaces nodes from the inputs up: `replace` gets each node with its inputs already replaced
/// (made again by `remake` when one has changed) and returns its replacement, or the node itself.
std::vector<NodePtr> transform(const std::vector<NodePtr>& roots, const Replace& replace,
                               Remake remake = with_inputs);

}  // namespace einkern::graph
