// SPDX-License-Identifier: Apache-2.0
// Brings a graph to one form before rules look at it.
#pragma once

#include <vector>

#include "key.h"
#include "node.h"

namespace einkern::graph {

/// Merges equal nodes (same operation over the same inputs) and drops views that change nothing.
std::vector<NodePtr> canonicalise(const std::vector<NodePtr>& roots);

/// Puts the operation and its parameters: the same bytes for equal operations. Leaves, inputs and
/// constants give their identity (the node's address), since their values are not part of the
/// structure.
void put_operation(Key& key, const Node& node);

}  // namespace einkern::graph
