// SPDX-License-Identifier: Apache-2.0
// What an evaluation needs to know of a graph: its leaves, its scalars, and a key of its structure.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "../map/program.h"
#include "node.h"
#include "node_map.h"

namespace einkern::graph {

/// The facts about one graph. Equal keys mean that one plan serves both graphs: the key holds
/// structure, shapes, dtypes and strides, which leaves are the same tensor and which scalars are
/// equal, but no values (only the facts of scalars that rules may know).
struct Collected {
  std::vector<NodePtr> order;
  std::vector<NodePtr> leaves;       // by input position, each tensor once
  NodeMap<std::int32_t> leaf_of;     // every Leaf and Input -> position
  NodeMap<std::int32_t> scalar_of;   // scalar subtrees in use -> slot
  std::vector<map::Scalar> scalars;  // by slot
  std::string key;
};

/// Walks the graph once. Arithmetic among scalars is done here (in f64 or exactly in i64:
/// ValueError on overflow), so that scalars stay operands of the plan.
Collected collect(const std::vector<NodePtr>& roots);

}  // namespace einkern::graph
