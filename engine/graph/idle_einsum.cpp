// SPDX-License-Identifier: Apache-2.0
// Turns idle einsums into elementwise nodes and views.
#include "idle_einsum.h"

#include <algorithm>

namespace einkern::graph {
namespace {

using List = std::vector<std::int32_t>;

/// Where each of `labels` stands in `output`; empty when one does not, or stands there twice.
List places_in(const List& labels, const List& output) {
  List places;
  for (std::size_t d = 0; d < labels.size(); ++d) {
    const auto at = std::find(output.begin(), output.end(), labels[d]);
    const bool again = std::count(labels.begin(), labels.end(), labels[d]) > 1;
    if (at == output.end() || again) return {};
    places.push_back(static_cast<std::int32_t>(at - output.begin()));
  }
  return places;
}

bool is_computed(const Node& node) {
  return std::holds_alternative<Einsum>(node.op) || std::holds_alternative<Elementwise>(node.op) ||
         std::holds_alternative<Softmax>(node.op);
}

}  // namespace

NodePtr idle_einsum(const Site& site) {
  const NodePtr& node = site.node;
  const auto* einsum = std::get_if<Einsum>(&node->op);
  if (einsum == nullptr || einsum->inputs().size() > 2) return nullptr;
  for (const NodePtr& input : node->inputs) {
    if (input->type.dtype != node->type.dtype || !is_float(input->type.dtype)) return nullptr;
  }
  std::vector<Alignment> alignment;
  bool whole = false;  // an operand that is computed and has every axis
  for (std::size_t p = 0; p < einsum->inputs().size(); ++p) {
    const List places = places_in(einsum->inputs()[p], einsum->output());
    if (places.size() != einsum->inputs()[p].size()) return nullptr;
    whole |= is_computed(*node->inputs[p]) && places.size() == einsum->output().size();
    alignment.push_back({places, {}});
  }
  if (!whole) return nullptr;
  if (einsum->inputs().size() == 2) {
    return std::make_shared<const Node>(Elementwise{map::Op::mul, std::move(alignment)},
                                        node->inputs, node->type);
  }
  Permute permute{std::vector<std::size_t>(einsum->output().size())};
  for (std::size_t d = 0; d < permute.order.size(); ++d) {
    permute.order[static_cast<std::size_t>(alignment[0].axes[d])] = d;
  }
  return std::make_shared<const Node>(std::move(permute), node->inputs, node->type);
}

}  // namespace einkern::graph
