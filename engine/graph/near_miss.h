// SPDX-License-Identifier: Apache-2.0
// Says why weights that an einsum sums were not streamed.
#pragma once

#include <string>
#include <vector>

#include "node.h"

namespace einkern::graph {

/// A line for every einsum of a rewritten graph that still sums a softmax: the weights, the memory
/// that they take, and what stopped the fusion rules.
std::vector<std::string> near_misses(const std::vector<NodePtr>& roots);

}  // namespace einkern::graph
