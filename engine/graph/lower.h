// SPDX-License-Identifier: Apache-2.0
// Turns a graph with known sizes into a plan.
#pragma once

#include <cstdint>
#include <unordered_map>
#include <vector>

#include "../base/machine.h"
#include "../plan/plan.h"
#include "node.h"

namespace einkern::graph {

/// A graph ready to be lowered: where its leaves are bound and its constants looked up.
struct Graph {
  std::vector<NodePtr> roots;
  std::vector<NodePtr> leaves;                              // Leaf or Input, by input position
  std::unordered_map<const Node*, std::int32_t> scalar_of;  // Constant -> slot of the scalar table
  std::int32_t scalars = 0;
};

/// How to lower.
struct LowerOptions {
  bool fuse = true;                  // false: one step per node
  std::vector<Layout> leaf_layouts;  // of leaves, by position
  std::vector<Layout> out_layouts;   // of outputs; their shapes are the roots' shapes
};

/// One step or more per node that needs memory; elementwise nodes are merged into the node that
/// uses them, views become layouts.
plan::Plan lower(const Graph& graph, const LowerOptions& options, const Target& target);

}  // namespace einkern::graph
