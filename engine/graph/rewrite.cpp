// SPDX-License-Identifier: Apache-2.0
// The rewrite driver.
#include "rewrite.h"

#include "../base/error.h"
#include "walk.h"

namespace einkern::graph {

UserCounts count_users(const std::vector<NodePtr>& roots) {
  UserCounts users;
  for (const NodePtr& node : topological_order(roots)) {
    for (const NodePtr& input : node->inputs) ++users[input.get()];
  }
  for (const NodePtr& root : roots) ++users[root.get()];
  return users;
}

std::vector<NodePtr> rewrite(const std::vector<NodePtr>& roots, const std::vector<Rule>& rules) {
  // A rule that keeps applying to its own result would never end: more rounds than any chain of
  // rules needs is a fault of the rules.
  constexpr int kMostRounds = 100;
  const UserCounts users = count_users(roots);
  return transform(roots, [&](NodePtr node, const Node& original) {
    for (int round = 0;; ++round) {
      EINKERN_CHECK(round < kMostRounds);
      bool changed = false;
      for (const Rule& rule : rules) {
        if (NodePtr next = rule.apply({node, original, users})) {
          EINKERN_CHECK(next->type.dtype == node->type.dtype &&
                        next->type.shape == node->type.shape);
          node = std::move(next);
          changed = true;
        }
      }
      if (!changed) return node;
    }
  });
}

}  // namespace einkern::graph
