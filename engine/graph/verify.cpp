// SPDX-License-Identifier: Apache-2.0
// The spec of the graph: types follow from operations.
#include "verify.h"

#include "../base/error.h"
#include "walk.h"

namespace einkern::graph {

void verify(const std::vector<NodePtr>& roots) {
  for (const NodePtr& node : topological_order(roots)) {
    if (node->inputs.empty()) continue;
    if (std::holds_alternative<Visible>(node->op)) {
      EINKERN_CHECK(node->type.dtype == DType::boolean);
      continue;
    }
    if (const auto* select = std::get_if<SelectEinsum>(&node->op)) {
      EINKERN_CHECK(node->inputs.size() == select->einsum.inputs().size() + 1);
      EINKERN_CHECK(node->inputs.back()->type.shape.size() ==
                    select->einsum.inputs()[select->weights].size());
      continue;
    }
    const NodePtr again = rebuild(*node, node->inputs);
    EINKERN_CHECK(again->type.dtype == node->type.dtype);
    EINKERN_CHECK(again->type.shape == node->type.shape);
    EINKERN_CHECK(again->type.open == node->type.open);
  }
}

}  // namespace einkern::graph
