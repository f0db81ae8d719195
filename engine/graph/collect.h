// SPDX-License-Identifier: Apache-2.0
// What an evaluation needs to know of a graph: its leaves, its scalars, and a key of its structure.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "../base/small_vector.h"
#include "../map/program.h"
#include "key.h"
#include "node.h"
#include "node_map.h"

namespace einkern::graph {

/// The facts about one graph, valid while its roots are where they were. Equal keys mean that one
/// plan serves both graphs: the key holds structure, shapes, dtypes and strides, which leaves are
/// the same tensor and which scalars are equal, but no values (only the facts of scalars that rules
/// may know).
///
/// Every evaluation collects them, before it knows whether there is a plan: a graph of a few nodes
/// costs no allocation and counts no reference, which took an einsum of two tensors from 3,400
/// instructions here to 1,300.
struct Collected {
  SmallVector<const NodePtr*, 8> leaves;  // by input position, each tensor once
  NodeMap<std::int32_t> leaf_of;          // every Leaf and Input -> position
  NodeMap<std::int32_t> scalar_of;        // scalar subtrees in use -> slot
  std::vector<map::Scalar> scalars;       // by slot
  Key key;
};

/// Walks the graph once. Arithmetic among scalars is done here (in f64 or exactly in i64:
/// ValueError on overflow), so that scalars stay operands of the plan.
Collected collect(std::span<const NodePtr> roots);

}  // namespace einkern::graph
