// SPDX-License-Identifier: Apache-2.0
// The passes of the graph, one line each.
#include "prepare.h"

#include <atomic>

#include "../exec/execute.h"
#include "attend_rule.h"
#include "canonicalise.h"
#include "near_miss.h"
#include "rewrite.h"
#include "verify.h"
#include "walk.h"

namespace einkern::graph {
namespace {

std::atomic<std::int64_t> prepared{0};

/// The graph with one node per leaf and per scalar slot, and the maps from those nodes.
Graph with_slots(const std::vector<NodePtr>& roots, const Collected& collected) {
  Graph graph;
  for (const NodePtr* leaf : collected.leaves) graph.leaves.push_back(*leaf);
  graph.scalars = static_cast<std::int32_t>(collected.scalars.size());
  std::vector<NodePtr> slots;
  for (const map::Scalar& value : collected.scalars) {
    Type type;
    type.dtype = value.dtype;
    type.weak = true;
    slots.push_back(std::make_shared<const Node>(Constant{value}, std::vector<NodePtr>{}, type));
    graph.scalar_of.emplace(slots.back().get(), static_cast<std::int32_t>(slots.size() - 1));
  }
  // A scalar subtree in use becomes its slot; its inner nodes are left without a user.
  std::unordered_map<const Node*, NodePtr> done;
  for (const NodePtr& node : topological_order(roots)) {
    if (const std::int32_t* const slot = collected.scalar_of.find(node.get())) {
      done.emplace(node.get(), slots[static_cast<std::size_t>(*slot)]);
      continue;
    }
    if (const std::int32_t* const leaf = collected.leaf_of.find(node.get())) {
      done.emplace(node.get(), graph.leaves[static_cast<std::size_t>(*leaf)]);
      continue;
    }
    std::vector<NodePtr> inputs;
    for (const NodePtr& input : node->inputs) inputs.push_back(done.at(input.get()));
    done.emplace(node.get(), inputs == node->inputs ? node : with_inputs(*node, inputs));
  }
  for (const NodePtr& root : roots) graph.roots.push_back(done.at(root.get()));
  return graph;
}

}  // namespace

std::shared_ptr<const Prepared> prepare(const std::vector<NodePtr>& roots,
                                        const Collected& collected, const LowerOptions& options) {
  ++prepared;
  const Target& target = exec::current_target();
  Graph graph = with_slots(roots, collected);
  graph.roots = canonicalise(graph.roots);
  verify(graph.roots);
  graph.roots = rewrite(graph.roots, semantic_rules());
  graph.roots = canonicalise(graph.roots);
  if (options.fuse) {
    graph.roots = rewrite(graph.roots, fusion_rules());
    graph.roots = rewrite(graph.roots, later_fusion_rules());
    graph.roots = share_logsumexp(graph.roots);
  }
  plan::Plan plan = lower(graph, options, target);
  if (options.fuse) plan.unfused = near_misses(graph.roots);
  return std::make_shared<const Prepared>(Prepared{std::move(plan), target});
}

std::int64_t prepared_count() { return prepared; }

}  // namespace einkern::graph
