// SPDX-License-Identifier: Apache-2.0
// The operands of a pair of contractions, as the fused step reads them: two of the scores' product,
// without copies and scales.
#pragma once

#include <algorithm>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "weights.h"

namespace einkern::graph {

bool holds(const auto& list, const auto& value) {
  return std::find(list.begin(), list.end(), value) != list.end();
}

/// Sizes of the labels of an einsum.
std::unordered_map<std::int32_t, std::int64_t> label_sizes(const Einsum& einsum,
                                                           const std::vector<NodePtr>& inputs);

/// Queries and keys of a product, what their axes are made of (~i: inner label i), and the sizes of
/// the inner labels.
struct DotOperands {
  Place q, k;
  std::vector<std::int64_t> inner;
};
/// The product `dot`, whose axes are made of `axes`, as one of two operands: those without streamed
/// axes are the queries, the others the keys; several of a side are multiplied first. Nothing when
/// there is no such side; then `why` says so.
std::optional<DotOperands> read_operands(const NodePtr& dot, const AxisMap& axes,
                                         const std::vector<bool>& streamed, std::string& why);

/// The place behind views that repeat elements, so that nothing is copied; elsewhere the place
/// itself.
Place behind_copies(Place place, const ScoreAxes& axes, std::optional<Cut>& wanted);

/// Do the inner labels of an operand lie side by side in memory? Told by its views; a placeholder
/// is taken for contiguous.
bool lies_dense(const Place& operand);

/// A multiplication by a scalar, a division by one, or a change of sign.
struct Scale {
  map::Op op;
  NodePtr by;  // null: neg
};
/// Takes the scales off an operand (perhaps behind views) and adds them to `scales`.
void take_scales(NodePtr& operand, DType dtype, std::vector<Scale>& scales);
/// `x` under a scale.
NodePtr scaled(const NodePtr& x, const Scale& scale);

}  // namespace einkern::graph
