// SPDX-License-Identifier: Apache-2.0
// A contraction path as a tree of pairs, with the labels and the axis order of every intermediate.
#include "tree.h"

#include <algorithm>
#include <utility>

#include "../base/error.h"
#include "search.h"

namespace einkern::plan {
namespace {

/// Pairs of nodes, without labels.
std::vector<Node> shape_of(const Path& path, std::size_t operands) {
  std::vector<Node> nodes(operands);
  // Identities of the path as nodes: a step of one operand renames, one of three makes two pairs.
  std::vector<std::int32_t> node_of;
  for (std::size_t p = 0; p < operands; ++p) node_of.push_back(static_cast<std::int32_t>(p));
  for (const std::vector<std::int32_t>& step : to_identities(path, operands)) {
    std::int32_t made = node_of[static_cast<std::size_t>(step[0])];
    for (std::size_t i = 1; i < step.size(); ++i) {
      nodes.push_back({made, node_of[static_cast<std::size_t>(step[i])], {}, {}});
      made = static_cast<std::int32_t>(nodes.size() - 1);
    }
    node_of.push_back(made);
  }
  return nodes;
}

/// Labels of every pair: those of its halves that the output or a node outside still needs.
/// `needs[l]` counts the living nodes that have l, and the output.
void find_labels(std::vector<Node>& nodes, std::vector<std::int32_t>& needs) {
  const auto need = [&](LabelId label) -> std::int32_t& {
    return needs[static_cast<std::size_t>(label)];
  };
  for (Node& node : nodes) {
    if (node.is_operand()) {
      for (const LabelId label : node.labels) ++need(label);
    }
  }
  for (Node& node : nodes) {
    if (node.is_operand()) {
      std::erase_if(node.labels, [&](LabelId label) {
        if (need(label) > 1) return false;
        node.summed.push_back(label);
        return true;
      });
      continue;
    }
    const LabelList& left = nodes[static_cast<std::size_t>(node.left)].labels;
    const LabelList& right = nodes[static_cast<std::size_t>(node.right)].labels;
    for (const LabelId label : left) --need(label);
    for (const LabelId label : right) --need(label);
    for (const LabelId label : left) {
      if (need(label) > 0) node.labels.push_back(label);
    }
    for (const LabelId label : right) {
      if (need(label) > 0 && !contains(left, label)) node.labels.push_back(label);
    }
    // By first appearance, so that both halves of a later pair agree on an order.
    std::sort(node.labels.begin(), node.labels.end());
    for (const LabelId label : node.labels) ++need(label);
  }
}

/// Axis order of a child under a parent whose own order stands; the rule is told in the header.
LabelList order_of_child(const LabelList& parent, const LabelList& child,
                         const LabelList& sibling) {
  LabelList batch, free, contracted;
  for (const LabelId label : parent) {
    if (!contains(child, label)) continue;
    (contains(sibling, label) ? batch : free).push_back(label);
  }
  for (const LabelId label : sibling) {
    if (contains(child, label) && !contains(parent, label)) contracted.push_back(label);
  }
  LabelList order;
  const auto append = [&order](const LabelList& labels) {
    order.insert(order.end(), labels.begin(), labels.end());
  };
  if (contracted.empty()) {
    for (const LabelId label : parent) {
      if (contains(child, label)) order.push_back(label);
    }
  } else if (!batch.empty() && batch.back() == parent.back()) {
    batch.pop_back();
    append(batch);
    append(free);
    append(contracted);
    order.push_back(parent.back());
  } else if (!free.empty() && free.back() == parent.back()) {
    append(batch);
    append(contracted);
    append(free);
  } else {
    append(batch);
    append(free);
    append(contracted);
  }
  EINKERN_CHECK(order.size() == child.size());
  return order;
}

}  // namespace

std::vector<Node> make_tree(const std::vector<Term>& terms, const LabelList& output,
                            std::size_t label_count, const Path& path) {
  std::vector<Node> nodes = shape_of(path, terms.size());
  for (std::size_t p = 0; p < terms.size(); ++p) nodes[p].labels = terms[p].labels;
  std::vector<std::int32_t> needs(label_count);
  for (const LabelId label : output) ++needs[static_cast<std::size_t>(label)];
  find_labels(nodes, needs);

  if (!nodes.back().is_operand()) {
    LabelList order;
    for (const LabelId label : output) {
      if (contains(nodes.back().labels, label)) order.push_back(label);
    }
    nodes.back().labels = std::move(order);
  }
  for (std::size_t i = nodes.size(); i-- > terms.size();) {
    const std::pair<std::int32_t, std::int32_t> both_ways[] = {{nodes[i].left, nodes[i].right},
                                                               {nodes[i].right, nodes[i].left}};
    for (const auto& [child_id, sibling_id] : both_ways) {
      Node& child = nodes[static_cast<std::size_t>(child_id)];
      const auto sibling = static_cast<std::size_t>(sibling_id);
      if (child.is_operand()) continue;
      LabelList as_it_lies =
          sibling < terms.size() ? by_stride(terms[sibling]) : nodes[sibling].labels;
      // What the sibling sums first is not there when the pair meets.
      std::erase_if(as_it_lies,
                    [&](LabelId label) { return !contains(nodes[sibling].labels, label); });
      child.labels = order_of_child(nodes[i].labels, child.labels, as_it_lies);
    }
  }
  return nodes;
}

}  // namespace einkern::plan
