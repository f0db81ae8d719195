// SPDX-License-Identifier: Apache-2.0
// Applies rules to a graph until none has anything left to say.
#pragma once

#include <cstdint>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "node.h"

namespace einkern::graph {

/// How many users (roots included) every node of the graph has before rewriting.
using UserCounts = std::unordered_map<const Node*, std::int64_t>;
UserCounts count_users(const std::vector<NodePtr>& roots);

/// Where a rule is asked: the node with its inputs already rewritten, and as it was before.
struct Site {
  const NodePtr& node;
  const Node& original;
  const UserCounts& users;
};

/// A rule looks at one node and returns an equivalent one of the same type, or null.
struct Rule {
  std::string_view name;
  NodePtr (*apply)(const Site& site);
};

/// Rules that give nodes their meaning; they run on every route.
const std::vector<Rule>& semantic_rules();
/// Rules that make programs fast; they run unless fusion is off, the second list after the first.
const std::vector<Rule>& fusion_rules();
const std::vector<Rule>& later_fusion_rules();

/// The graph after `rules`: inputs first, every node until no rule applies to it.
std::vector<NodePtr> rewrite(const std::vector<NodePtr>& roots, const std::vector<Rule>& rules);

}  // namespace einkern::graph
