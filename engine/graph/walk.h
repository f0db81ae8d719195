// SPDX-License-Identifier: Apache-2.0
// Orders and rebuilds graphs without recursion.
#pragma once

#include <functional>
#include <vector>

#include "node.h"

namespace einkern::graph {

/// Every node reachable from the roots, inputs before users, each once.
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
