// SPDX-License-Identifier: Apache-2.0
// Splits einsums at the weights.
#include "pair_weights.h"

#include <algorithm>

#include "attend_rule.h"
#include "views.h"
#include "weights.h"

namespace einkern::graph {
namespace {

using List = std::vector<std::int32_t>;

bool holds(const List& labels, std::int32_t label) {
  return std::find(labels.begin(), labels.end(), label) != labels.end();
}

/// An einsum taken apart, before and after the rewriting of its operands.
struct Product {
  ResolvedEquation equation;
  std::vector<NodePtr> inputs, originals;
  NodePtr visible, original_visible;  // or null
};

/// Can weights stand behind this operand? The rules for pairs look closer.
bool may_be_weights(const Node* node) {
  for (;; node = node->inputs[0].get()) {
    if (std::holds_alternative<Softmax>(node->op)) return true;
    if (std::holds_alternative<Elementwise>(node->op)) return is_float(node->type.dtype);
    if (!is_view(*node)) return false;
  }
}

/// Multiplies factors of the weights `w` into them.
void take_factors(Product& product, std::size_t& w) {
  const bool by_hand = read_exponentials(product.inputs[w]).has_value();
  for (std::size_t p = 0; p < product.inputs.size() && product.inputs.size() > 2;) {
    const List weights = product.equation.inputs[w], factor = product.equation.inputs[p];
    const Type& type = product.inputs[w]->type;
    bool takes = p != w && product.inputs[p]->type.dtype == type.dtype;
    bool summed = false;
    Alignment own, places;
    for (std::size_t d = 0; d < weights.size(); ++d) own.axes.push_back(static_cast<int>(d));
    for (std::size_t d = 0; d < factor.size() && takes; ++d) {
      const auto at = std::find(weights.begin(), weights.end(), factor[d]);
      const auto axis = at - weights.begin();
      takes = at != weights.end() && std::count(factor.begin(), factor.end(), factor[d]) == 1 &&
              std::count(weights.begin(), weights.end(), factor[d]) == 1 &&
              (product.inputs[p]->type.shape[d] == 1 ||
               product.inputs[p]->type.shape[d] == type.shape[static_cast<std::size_t>(axis)]);
      places.axes.push_back(static_cast<std::int32_t>(axis));
      summed |= !holds(product.equation.output, factor[d]);
    }
    if (!takes || !(summed || by_hand)) {
      ++p;
      continue;
    }
    for (std::vector<NodePtr>* inputs : {&product.inputs, &product.originals}) {
      (*inputs)[w] =
          std::make_shared<const Node>(Elementwise{map::Op::mul, {own, places}},
                                       std::vector<NodePtr>{(*inputs)[w], (*inputs)[p]}, type);
      inputs->erase(inputs->begin() + static_cast<std::ptrdiff_t>(p));
    }
    product.equation.inputs.erase(product.equation.inputs.begin() + static_cast<std::ptrdiff_t>(p));
    if (p < w) --w;
  }
}

/// `product` with operands `w` and `v` contracted first, in one streamed pass; null when they do
/// not make one (the fusion rule knows which operand holds the values).
NodePtr with_pair(const Site& site, const Product& product, std::size_t w, std::size_t v) {
  const ResolvedEquation& whole = product.equation;
  ResolvedEquation pair;
  pair.inputs = {whole.inputs[w], whole.inputs[v]};
  pair.names = whole.names;
  Type type = site.node->type;
  type.shape.clear();
  std::vector<std::string> labels;
  // The pair sums what both have and nobody else needs.
  const auto needed = [&](std::int32_t label) {
    if (!holds(whole.inputs[w], label) || !holds(whole.inputs[v], label)) return true;
    for (std::size_t p = 0; p < whole.inputs.size(); ++p) {
      if (p != w && p != v && holds(whole.inputs[p], label)) return true;
    }
    return holds(whole.output, label);
  };
  for (const std::size_t p : {w, v}) {
    for (std::size_t d = 0; d < whole.inputs[p].size(); ++d) {
      const std::int32_t label = whole.inputs[p][d];
      const std::int64_t size = product.inputs[p]->type.shape[d];
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

  const Einsum einsum(pair);
  const auto pair_of = [&](const std::vector<NodePtr>& from, const NodePtr& visible) {
    std::vector<NodePtr> inputs{from[w], from[v]};
    if (visible == nullptr) return std::make_shared<const Node>(einsum, std::move(inputs), type);
    inputs.push_back(visible);
    return std::make_shared<const Node>(SelectEinsum{einsum, 0}, std::move(inputs), type);
  };
  const NodePtr now = pair_of(product.inputs, product.visible);
  const NodePtr before = pair_of(product.originals, product.original_visible);
  NodePtr streamed = attend_rule({now, *before, site.users});
  if (streamed == nullptr) return nullptr;
  ResolvedEquation rest;
  rest.inputs = {pair.output};
  rest.output = whole.output;
  rest.names = whole.names;
  std::vector<NodePtr> inputs{std::move(streamed)};
  for (std::size_t p = 0; p < whole.inputs.size(); ++p) {
    if (p == w || p == v) continue;
    rest.inputs.push_back(whole.inputs[p]);
    inputs.push_back(product.inputs[p]);
  }
  if (inputs.size() == 1 && rest.inputs[0] == rest.output) return inputs[0];
  return std::make_shared<const Node>(Einsum(std::move(rest)), std::move(inputs), site.node->type);
}

}  // namespace

NodePtr pair_weights(const Site& site) {
  const auto* select = std::get_if<SelectEinsum>(&site.node->op);
  const auto* whole = select != nullptr ? &select->einsum : std::get_if<Einsum>(&site.node->op);
  if (whole == nullptr || whole->inputs().size() < 2 || !is_float(site.node->type.dtype)) {
    return nullptr;
  }
  for (std::size_t weights = 0; weights < whole->inputs().size(); ++weights) {
    if (select != nullptr ? select->weights != weights
                          : !may_be_weights(site.node->inputs[weights].get())) {
      continue;
    }
    const std::size_t operands = whole->inputs().size();
    const auto end = static_cast<std::ptrdiff_t>(operands);
    Product product{whole->named->equation,
                    {site.node->inputs.begin(), site.node->inputs.begin() + end},
                    {site.original.inputs.begin(), site.original.inputs.begin() + end},
                    select != nullptr ? site.node->inputs.back() : nullptr,
                    select != nullptr ? site.original.inputs.back() : nullptr};
    std::size_t w = weights;
    take_factors(product, w);
    for (std::size_t v = 0; v < product.inputs.size(); ++v) {
      if (v == w) continue;
      if (NodePtr found = with_pair(site, product, w, v)) return found;
    }
  }
  return nullptr;
}

}  // namespace einkern::graph
