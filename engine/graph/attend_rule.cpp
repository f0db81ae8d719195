// SPDX-License-Identifier: Apache-2.0
// Finds the weights behind a contraction and hands the pair to the matcher.
#include "attend_rule.h"

#include <algorithm>

#include <unordered_set>

#include "attend_match.h"
#include "walk.h"

namespace einkern::graph {
namespace {

/// The einsum of a node that may sum weights.
const Einsum* sum_of(const Node& node) {
  if (const auto* select = std::get_if<SelectEinsum>(&node.op)) return &select->einsum;
  return std::get_if<Einsum>(&node.op);
}

enum class Core { weights, exponentials };

/// The way from an operand to weights, through views and factors that nobody else uses.
class PathSearch {
 public:
  PathSearch(const Site& site, Core sought, std::string& why)
      : site_(site), sought_(sought), why_(why) {}

  bool find(std::size_t operand, Candidate& candidate) {
    if (!follow(site_.node->inputs[operand], *site_.original.inputs[operand], 0)) return false;
    candidate.path = path_;
    candidate.core = core_;
    candidate.weights = *weights_;
    candidate.factor = factor_;
    return true;
  }

 private:
  bool follow(const NodePtr& node, const Node& original, int depth) {
    constexpr int kLongest = 32;
    if (depth > kLongest || !tried_.insert(node.get()).second) return false;
    weights_ = sought_ == Core::weights ? read_weights(node, &why_) : read_exponentials(node);
    if (weights_) {
      core_ = node;
      return sought_ == Core::exponentials || is_free(original, "the weights");
    }
    const bool view = is_view(*node);
    if (!view && !std::holds_alternative<Elementwise>(node->op)) return false;
    const std::vector<std::size_t> inputs =
        view ? std::vector<std::size_t>{0} : linear_inputs(*node);
    for (const std::size_t i : inputs) {
      if (!follow(node->inputs[i], *original.inputs[i], depth + 1)) continue;
      if (!is_free(original, "the weights, changed,")) return false;
      path_.push_back({node.get(), i});
      if (!view) factor_ = node;
      return true;
    }
    return false;
  }

  /// Is this the only use of a node? It is, where a rule has just made the node.
  bool is_free(const Node& original, const char* what) {
    const auto users = site_.users.find(&original);
    if (users == site_.users.end() || users->second == 1) return true;
    why_ = std::string(what) + " are wanted elsewhere too";
    return false;
  }

  const Site& site_;
  const Core sought_;
  std::string& why_;
  std::unordered_set<const Node*> tried_;
  std::vector<PathStep> path_;
  NodePtr core_, factor_;
  std::optional<Weights> weights_;
};

bool has_dtype(const Candidate& candidate, DType dtype) {
  return candidate.core->type.dtype == dtype && candidate.weights.scores->type.dtype == dtype;
}

}  // namespace

NodePtr attend_rule(const Site& site, std::string* why) {
  const Einsum* sum = sum_of(*site.node);
  if (sum == nullptr || sum->inputs().size() != 2 || !is_float(site.node->type.dtype))
    return nullptr;
  const auto* select = std::get_if<SelectEinsum>(&site.node->op);
  for (std::size_t p = 0; p < 2; ++p) {
    if (select != nullptr && select->weights != p) continue;
    std::string reason;
    Candidate candidate{.node = site.node, .sum = sum, .operand = p};
    if (PathSearch(site, Core::weights, reason).find(p, candidate)) {
      if (has_dtype(candidate, site.node->type.dtype)) {
        if (NodePtr found = match_attend(candidate, reason)) return found;
      } else {
        reason = "the weights are cast to another dtype";
      }
    }
    if (why != nullptr && !reason.empty()) *why = reason;
  }
  return nullptr;
}

NodePtr attend_rule(const Site& site) { return attend_rule(site, nullptr); }

NodePtr divided_rule(const Site& site) {
  if (!is_float(site.node->type.dtype)) return nullptr;
  for (const Quotient& quotient : read_quotient(*site.node)) {
    NodePtr node = site.node->inputs[quotient.numerator];
    if (node->type.shape != site.node->type.shape) continue;
    const Node* original = site.original.inputs[quotient.numerator].get();
    std::vector<NodePtr> views;  // from the contraction outwards
    while (is_view(*node) && !std::holds_alternative<Slice>(node->op)) {
      views.insert(views.begin(), node);
      node = node->inputs[0];
      original = original->inputs[0].get();
    }
    const auto* sum = std::get_if<Einsum>(&node->op);
    if (sum == nullptr || sum->inputs().size() != 2 || original->inputs.size() != 2) continue;
    for (std::size_t p = 0; p < 2; ++p) {
      std::string why;
      Candidate candidate{.node = node, .sum = sum, .operand = p};
      const Site inner{node, *original, site.users};
      if (!PathSearch(inner, Core::exponentials, why).find(p, candidate)) continue;
      if (!has_dtype(candidate, site.node->type.dtype)) continue;
      candidate.division = Division{site.node, quotient, {}};
      for (const NodePtr& view : views) candidate.division->views.push_back(view.get());
      NodePtr found = match_attend(candidate, why);
      if (found == nullptr) continue;
      for (const NodePtr& view : views) found = with_inputs(*view, {found});
      return found;
    }
  }
  return nullptr;
}

NodePtr plain_pair_rule(const Site& site) {
  const auto* sum = std::get_if<Einsum>(&site.node->op);
  if (sum == nullptr || sum->inputs().size() != 2 || !is_float(site.node->type.dtype))
    return nullptr;
  for (std::size_t p = 0; p < 2; ++p) {
    NodePtr node = site.node->inputs[p];
    const Node* original = site.original.inputs[p].get();
    Candidate candidate{.node = site.node, .sum = sum, .operand = p, .normalise = false};
    bool free = true;
    for (;;) {
      const auto users = site.users.find(original);
      free = users != site.users.end() && users->second == 1;
      if (!free || !is_view(*node)) break;
      candidate.path.insert(candidate.path.begin(), {node.get(), 0});
      node = node->inputs[0];
      original = original->inputs[0].get();
    }
    if (!free || !std::holds_alternative<Elementwise>(node->op)) continue;
    candidate.core = node;
    candidate.weights.scores = node;
    if (!has_dtype(candidate, site.node->type.dtype)) continue;
    std::string why;
    if (NodePtr found = match_attend(candidate, why)) return found;
  }
  return nullptr;
}

std::vector<NodePtr> share_logsumexp(const std::vector<NodePtr>& roots) {
  std::vector<NodePtr> attends;
  for (const NodePtr& node : topological_order(roots)) {
    if (std::holds_alternative<Attend>(node->op)) attends.push_back(node);
  }
  if (attends.empty()) return roots;
  std::vector<NodePtr> shared(attends.size());
  return transform(roots, [&](const NodePtr& node, const Node&) {
    const auto weights = read_logsumexp(node);
    if (!weights) return node;
    for (std::size_t i = 0; i < attends.size(); ++i) {
      const auto& op = std::get<Attend>(attends[i]->op);
      const NodePtr sink = op.has_sink ? attends[i]->inputs.back() : nullptr;
      if (op.replaced != weights->scores || op.normalised != weights->axes ||
          weights->sink != sink || op.nan_when_empty != weights->nan_when_empty) {
        continue;
      }
      if (shared[i] == nullptr) {
        shared[i] = std::make_shared<const Node>(AttendLogsumexp{},
                                                 std::vector<NodePtr>{attends[i]}, node->type);
      }
      return shared[i];
    }
    return node;
  });
}

}  // namespace einkern::graph
