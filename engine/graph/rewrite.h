// SPDX-License-Identifier: Apache-2.0
// Applies rules to a graph until none has anything left to say.
#pragma once

#include <string_view>
#include <vector>

#include "node.h"

namespace einkern::graph {

/// A rule looks at one node and returns an equivalent one of the same type, or null.
struct Rule {
  std::string_view name;
  NodePtr (*apply)(const NodePtr& node);
};

/// Rules that give nodes their meaning; they run on every route.
const std::vector<Rule>& semantic_rules();

/// The graph after `rules`: inputs first, every node until no rule applies to it.
std::vector<NodePtr> rewrite(const std::vector<NodePtr>& roots, const std::vector<Rule>& rules);

}  // namespace einkern::graph
