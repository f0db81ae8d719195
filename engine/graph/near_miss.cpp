// SPDX-License-Identifier: Apache-2.0
// Asks the fusion rule again, for its reason.
#include "near_miss.h"

#include <fmt/format.h>

#include "../base/layout.h"
#include "align.h"
#include "attend_rule.h"
#include "walk.h"
#include "weights.h"

namespace einkern::graph {
namespace {

/// The weights behind an operand, through anything elementwise; null when there are none, or they
/// are further away than weights are. `why` is set where they are spelled by hand and incomplete.
NodePtr weights_behind(const NodePtr& operand, std::string& why) {
  constexpr std::size_t kMost = 64;
  std::vector<NodePtr> pending{operand};
  for (std::size_t i = 0; i < pending.size() && i < kMost; ++i) {
    NodePtr node = pending[i];
    if (read_weights(node, &why) || !why.empty()) return node;
    if (!is_view(*node) && !std::holds_alternative<Elementwise>(node->op)) continue;
    pending.insert(pending.end(), node->inputs.begin(), node->inputs.end());
  }
  return nullptr;
}

std::string bytes_text(double bytes) {
  if (bytes < 1e3) return fmt::format("{:.0f} bytes", bytes);
  return bytes < 1e6   ? fmt::format("{:.3g} kB", bytes / 1e3)
         : bytes < 1e9 ? fmt::format("{:.3g} MB", bytes / 1e6)
                       : fmt::format("{:.3g} GB", bytes / 1e9);
}

}  // namespace

std::vector<std::string> near_misses(const std::vector<NodePtr>& roots) {
  const UserCounts users = count_users(roots);
  std::vector<std::string> misses;
  for (const NodePtr& node : topological_order(roots)) {
    if (!std::holds_alternative<Einsum>(node->op) &&
        !std::holds_alternative<SelectEinsum>(node->op))
      continue;
    if (node->inputs.size() < 2) continue;
    for (const NodePtr& operand : node->inputs) {
      std::string why;
      const NodePtr weights = weights_behind(operand, why);
      if (weights == nullptr) continue;
      if (why.empty()) attend_rule({node, *node, users}, &why);
      if (why.empty()) {
        why = node->inputs.size() > 2 ? "no operand of the einsum is the values of these weights"
                                      : "what changes the weights is not linear in them";
      }
      const double bytes = static_cast<double>(element_count(weights->type.shape)) *
                           static_cast<double>(size_of(weights->type.dtype));
      misses.push_back(
          fmt::format("weights {}, {}: {}", axes_text(weights->type), bytes_text(bytes), why));
      break;
    }
  }
  return misses;
}

}  // namespace einkern::graph
