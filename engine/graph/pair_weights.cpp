// SPDX-License-Identifier: Apache-2.0
// Splits n-ary einsums at the weights.
#include "pair_weights.h"

#include <algorithm>

#include "attend_rule.h"
#include "views.h"

namespace einkern::graph {
namespace {

bool holds(const std::vector<std::int32_t>& labels, std::int32_t label) {
  return std::find(labels.begin(), labels.end(), label) != labels.end();
}

bool is_weights(const Node* node) {
  while (is_view(*node)) node = node->inputs[0].get();
  return std::holds_alternative<Softmax>(node->op);
}

/// `whole` with operands `w` and `v` contracted first, in one streamed pass; null when they do not
/// make one (the fusion rule knows which operand holds the values).
NodePtr with_pair(const Site& site, const Einsum& whole, std::size_t w, std::size_t v) {
  const bool selects = std::holds_alternative<SelectEinsum>(site.node->op);
  Einsum pair{{whole.inputs[w], whole.inputs[v]}, {}, whole.names, {}};
  Type type = site.node->type;
  type.shape.clear();
  std::vector<std::string> labels;
  // The pair keeps what the output or another operand still needs.
  const auto needed = [&](std::int32_t label) {
    for (std::size_t p = 0; p < whole.inputs.size(); ++p) {
      if (p != w && p != v && holds(whole.inputs[p], label)) return true;
    }
    return holds(whole.output, label);
  };
  for (const std::size_t p : {w, v}) {
    for (std::size_t d = 0; d < whole.inputs[p].size(); ++d) {
      const std::int32_t label = whole.inputs[p][d];
      const std::int64_t size = site.node->inputs[p]->type.shape[d];
      const auto at = std::find(pair.output.begin(), pair.output.end(), label);
      if (at != pair.output.end()) {
        std::int64_t& known = type.shape[static_cast<std::size_t>(at - pair.output.begin())];
        if (known == 1) known = size;
      } else if (needed(label)) {
        pair.output.push_back(label);
        type.shape.push_back(size);
        labels.push_back(whole.names[static_cast<std::size_t>(label)]);
      }
    }
  }
  type.labels = Labels(std::move(labels));

  const auto pair_of = [&](const Node& from) {
    std::vector<NodePtr> inputs{from.inputs[w], from.inputs[v]};
    if (!selects) return std::make_shared<const Node>(pair, std::move(inputs), type);
    inputs.push_back(from.inputs.back());
    return std::make_shared<const Node>(SelectEinsum{pair, 0}, std::move(inputs), type);
  };
  const NodePtr now = pair_of(*site.node), before = pair_of(site.original);
  NodePtr streamed = attend_rule({now, *before, site.users});
  if (streamed == nullptr) return nullptr;
  Einsum rest{{pair.output}, whole.output, whole.names, {}};
  std::vector<NodePtr> inputs{std::move(streamed)};
  for (std::size_t p = 0; p < whole.inputs.size(); ++p) {
    if (p == w || p == v) continue;
    rest.inputs.push_back(whole.inputs[p]);
    inputs.push_back(site.node->inputs[p]);
  }
  return std::make_shared<const Node>(std::move(rest), std::move(inputs), site.node->type);
}

}  // namespace

NodePtr pair_weights(const Site& site) {
  const auto* select = std::get_if<SelectEinsum>(&site.node->op);
  const auto* whole = select != nullptr ? &select->einsum : std::get_if<Einsum>(&site.node->op);
  if (whole == nullptr || whole->inputs.size() < 3) return nullptr;
  for (std::size_t w = 0; w < whole->inputs.size(); ++w) {
    if (select != nullptr ? select->weights != w : !is_weights(site.node->inputs[w].get()))
      continue;
    for (std::size_t v = 0; v < whole->inputs.size(); ++v) {
      if (v == w) continue;
      if (NodePtr found = with_pair(site, *whole, w, v)) return found;
    }
  }
  return nullptr;
}

}  // namespace einkern::graph
