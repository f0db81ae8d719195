// SPDX-License-Identifier: Apache-2.0
// Which nodes behind the scores of an Attend node are computed tile by tile with them.
#pragma once

#include <unordered_set>

#include "node.h"

namespace einkern::graph {

/// Nodes that belong to the programs of an Attend node though they do not depend on its products:
/// elementwise ones with axes of rows and of streamed keys (a comparison of segments), which would
/// be as large as the scores; views of those; and views that would have to be copied, such as a
/// `repeat`, where the axes of the scores are cut as fine as they need. Terms with open axes are
/// followed. What has rows or keys only is not among them: it is computed once.
std::unordered_set<const Node*> tiled_nodes(const Node& attend);

}  // namespace einkern::graph
