// SPDX-License-Identifier: Apache-2.0
// Releases graphs of any depth without recursion.
#include "node.h"

#include <new>
#include <utility>

namespace einkern::graph {
namespace {

/// Moves what a node holds to the end of the list. Without memory for a longer list the rest stays
/// where it is: the node releases it itself, by recursion.
void move_held(Node& node, std::vector<NodePtr>& list) noexcept {
  try {
    for (NodePtr& input : node.inputs) list.push_back(std::move(input));
    node.inputs.clear();
    if (auto* attend = std::get_if<Attend>(&node.op)) list.push_back(std::move(attend->replaced));
  } catch (const std::bad_alloc&) {
    return;
  }
}

}  // namespace

Node::~Node() {
  // A chain of a million nodes would overflow the stack if each released its own inputs: nodes that
  // we are the last to hold give up their inputs to one list instead.
  if (inputs.empty()) return;
  std::vector<NodePtr> pending = std::move(inputs);
  move_held(*this, pending);
  while (!pending.empty()) {
    const NodePtr node = std::move(pending.back());
    pending.pop_back();
    if (node != nullptr && node.use_count() == 1) move_held(const_cast<Node&>(*node), pending);
  }
}

}  // namespace einkern::graph
