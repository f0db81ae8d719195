// SPDX-License-Identifier: Apache-2.0
// The exponentials and sums of a softmax by hand.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "node.h"
#include "score_axes.h"

namespace einkern::graph {

/// A softmax: its scores, the axes (increasing) that it runs over, and how it ends.
struct Weights {
  NodePtr scores = {};
  std::vector<std::size_t> axes = {};
  NodePtr sink = {};  // or null
  Alignment sink_alignment = {};
  bool nan_when_empty = false;  // rows that are -inf everywhere give NaN, else 0
  NodePtr floor = {};      // what the subtracted maximum is raised to where it is less, or null
  NodePtr maximum = {};    // of exponentials by hand: as it is subtracted
  AxisMap sink_axes = {};  // of a sink by hand, whose part of the sum is still to be found
};

/// A node somewhere inside an expression over scores, its axes as finer axes of the scores.
struct Place {
  NodePtr node;
  AxisMap axes;
};

/// The place behind views; a slice, and a merge that needs a cut (then in `wanted`), stay.
Place behind_views(Place place, const ScoreAxes& axes, std::optional<Cut>& wanted);
/// The place of an input of an elementwise node, behind views.
Place input_place(const Place& place, std::size_t input, const ScoreAxes& axes,
                  std::optional<Cut>& wanted);
/// The scores' own axes.
inline Place whole(const NodePtr& node, const ScoreAxes& axes) { return {node, axes.scores()}; }

/// The node behind new labels.
const NodePtr& without_labels(const NodePtr& node);
inline bool is_same(const NodePtr& a, const NodePtr& b) {
  return without_labels(a) == without_labels(b);
}
/// The operation of a node, if it is this one.
inline const Elementwise* elementwise_of(const NodePtr& node, map::Op op) {
  const auto* found = std::get_if<Elementwise>(&node->op);
  return found != nullptr && found->op == op ? found : nullptr;
}

/// The operands of s - m, written in any way.
struct Difference {
  Place first, second;
};
std::optional<Difference> read_difference(const Place& place, const ScoreAxes& axes,
                                          std::optional<Cut>& wanted);

/// The maximum that exponentials of `weights.scores` subtract: sets its axes, and how it is raised
/// or replaced.
bool read_maximum(Place place, const ScoreAxes& axes, Weights& weights);

/// e = exp(s - max(s)), the maximum perhaps raised to a number or a sink, or replaced where it is
/// -inf; `why` says what is missing of exponentials that are not.
std::optional<Weights> read_exponentials(const NodePtr& node, std::string* why = nullptr);

/// Is `place` the sum of the exponentials `e` (whose softmax is `weights`), and the sink's, spread
/// over their rows? Sets `guarded` where a sum of 0 is replaced.
bool is_sum_of(Place place, const NodePtr& e, const Weights& weights, const ScoreAxes& axes,
               bool& guarded, std::optional<Cut>& wanted);

/// Can a row without a key have exponentials, because its maximum is replaced?
bool is_replaced(const Weights& weights);

}  // namespace einkern::graph
