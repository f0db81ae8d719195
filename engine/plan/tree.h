// SPDX-License-Identifier: Apache-2.0
// A contraction path as a tree of pairs, with the labels and the axis order of every intermediate.
#pragma once

#include <cstdint>
#include <vector>

#include "path.h"
#include "term.h"

namespace einkern::plan {

/// An operand (no children) or the product of two nodes.
struct Node {
  std::int32_t left = -1, right = -1;
  LabelList labels;  // of an intermediate: the order of its axes in memory
  LabelList summed;  // of an operand: labels that nothing else needs, summed before it is used
  bool is_operand() const noexcept { return left < 0; }
};

/// Nodes in an order in which children come first: operands by position, then pairs; the last one
/// is the result. A path step of more than two operands becomes pairs from left to right.
///
/// Axis order of intermediates, from the root down ("the parent dictates the layout its child
/// writes"): of the child's labels, those that it shares with its sibling and that the parent keeps
/// are batch, those that the parent sums are contracted, the others are free. With L the innermost
/// label of the parent:
///   - nothing contracted: as in the parent (an elementwise product streams);
///   - L is batch: other batch, free, contracted, L (the lanes of a vector run over L);
///   - L is free: batch, contracted, free (the child's rows are copied as they lie when it is
///   packed);
///   - otherwise: batch, free, contracted.
/// Batch and free labels follow the parent's order, contracted ones the sibling's strides.
///
/// `terms`: the operands; `output`: the labels of the result, outermost first.
std::vector<Node> make_tree(const std::vector<Term>& terms, const LabelList& output,
                            std::size_t label_count, const Path& path);

}  // namespace einkern::plan
