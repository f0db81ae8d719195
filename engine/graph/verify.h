// SPDX-License-Identifier: Apache-2.0
// Checks that every node of a graph has the type that its operation gives it.
#pragma once

#include <vector>

#include "node.h"

namespace einkern::graph {

/// Infers every node anew and compares dtype, shape and open axes; std::logic_error for a graph
/// that a pass has broken.
void verify(const std::vector<NodePtr>& roots);

}  // namespace einkern::graph
