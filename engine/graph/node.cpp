// SPDX-License-Identifier: Apache-2.0
// Releases graphs of any depth without recursion.
#include "node.h"

#include <utility>

namespace einkern::graph {

Node::~Node() {
  // A chain of a million nodes would overflow the stack if each released its own inputs: nodes that
  // we are the last to hold give up their inputs to one list instead.
  if (inputs.empty()) return;
  std::vector<NodePtr> pending = std::move(inputs);
  if (auto* attend = std::get_if<Attend>(&op)) pending.push_back(std::move(attend->replaced));
  while (!pending.empty()) {
    NodePtr node = std::move(pending.back());
    pending.pop_back();
    if (node == nullptr || node.use_count() != 1) continue;
    auto& theirs = const_cast<Node&>(*node).inputs;
    for (NodePtr& input : theirs) pending.push_back(std::move(input));
    if (auto* attend = std::get_if<Attend>(&const_cast<Node&>(*node).op)) {
      pending.push_back(std::move(attend->replaced));
    }
    theirs.clear();
  }
}

}  // namespace einkern::graph
