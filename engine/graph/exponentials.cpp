// SPDX-License-Identifier: Apache-2.0
// Reads exponentials, maxima and sums out of elementwise nodes and reductions.
#include "exponentials.h"

#include <algorithm>

#include "scalar_facts.h"

namespace einkern::graph {
namespace {

using map::Op;

/// A reduction of `of` along some of its axes, at a place where the others are its own axes.
std::optional<std::vector<std::size_t>> reduced_axes(const Place& place, plan::ReduceOp op,
                                                     const NodePtr& of, const ScoreAxes& axes) {
  const Node& node = *place.node;
  if (node.inputs.size() != 1 || !is_same(node.inputs[0], of)) return std::nullopt;
  const Dims& shape = of->type.shape;
  std::vector<std::size_t> over;
  const auto stands = [&](std::size_t at, std::size_t d) {
    return shape[d] == 1 || place.axes[at] == axes.scores()[d];
  };
  if (const auto* reduce = std::get_if<Reduce>(&node.op)) {
    if (reduce->op != op) return std::nullopt;
    std::size_t at = 0;
    for (std::size_t d = 0; d < shape.size(); ++d) {
      if (std::binary_search(reduce->axes.begin(), reduce->axes.end(), d)) {
        at += reduce->keep ? 1 : 0;
      } else if (!stands(at++, d)) {
        return std::nullopt;
      }
    }
    return reduce->axes;
  }
  const auto* einsum = std::get_if<Einsum>(&node.op);  // "qk->q"
  if (einsum == nullptr || op != plan::ReduceOp::sum) return std::nullopt;
  const auto& labels = einsum->inputs()[0];
  for (std::size_t d = 0; d < labels.size(); ++d) {
    if (std::count(labels.begin(), labels.end(), labels[d]) > 1) return std::nullopt;
    const auto kept = std::find(einsum->output().begin(), einsum->output().end(), labels[d]);
    if (kept == einsum->output().end()) {
      over.push_back(d);
    } else if (!stands(static_cast<std::size_t>(kept - einsum->output().begin()), d)) {
      return std::nullopt;
    }
  }
  return over.empty() ? std::nullopt : std::optional(over);
}

/// x where `node` is a test of x for being 0 (or -inf, by `fact`): true where it is, or where it
/// is not (`negated`).
struct Test {
  NodePtr tested;
  bool negated;
};
std::optional<Test> read_test(NodePtr node, ScalarFact fact) {
  bool inverted = false;
  for (; elementwise_of(node, Op::logical_not) != nullptr; node = node->inputs[0]) {
    inverted = !inverted;
  }
  const auto* op = std::get_if<Elementwise>(&node->op);
  if (op == nullptr) return std::nullopt;
  const bool equality = op->op == Op::equal || op->op == Op::not_equal;
  const bool order = op->op == Op::less || op->op == Op::less_equal;
  if (!equality && !order) return std::nullopt;
  for (const std::size_t x : {std::size_t{0}, std::size_t{1}}) {
    if (!has_fact(node->inputs[1 - x], fact)) continue;
    if (equality) return Test{node->inputs[x], inverted != (op->op == Op::not_equal)};
    // Nothing lies below -inf, and no sum of exponentials below 0.
    if (op->op == Op::less && x == 1) return Test{node->inputs[x], !inverted};       // -inf < x
    if (op->op == Op::less_equal && x == 0) return Test{node->inputs[x], inverted};  // x <= -inf
  }
  return std::nullopt;
}

/// select(x is special, replacement, x): the inputs that are x and its replacement.
struct Replaced {
  std::size_t x, by;
};
std::optional<Replaced> read_replaced(const NodePtr& node, ScalarFact fact) {
  if (elementwise_of(node, Op::select) == nullptr) return std::nullopt;
  const auto test = read_test(node->inputs[0], fact);
  if (!test) return std::nullopt;
  const Replaced result = test->negated ? Replaced{1, 2} : Replaced{2, 1};
  if (!is_same(test->tested, node->inputs[result.x])) return std::nullopt;
  return is_scalar(node->inputs[result.by]) ? std::optional(result) : std::nullopt;
}

/// maximum(x, scalar): the input that is x.
std::optional<std::size_t> read_raised(const NodePtr& node) {
  if (elementwise_of(node, Op::maximum) == nullptr) return std::nullopt;
  if (is_scalar(node->inputs[1])) return 0;
  if (is_scalar(node->inputs[0])) return 1;
  return std::nullopt;
}

/// maximum(max(s), sink): the sink's part of the sum is still to be found.
bool read_maximum_and_sink(const Place& place, const ScoreAxes& axes, Weights& weights) {
  std::optional<Cut> wanted;
  for (const std::size_t i : {std::size_t{0}, std::size_t{1}}) {
    const auto over = reduced_axes(input_place(place, i, axes, wanted), plan::ReduceOp::max,
                                   weights.scores, axes);
    if (!over) continue;
    weights.axes = *over;
    Place sink = input_place(place, 1 - i, axes, wanted);
    for (const std::vector<std::int32_t>& list : sink.axes) {
      if (list.size() > 1) return false;
      // Axes of size 1 may meet any.
      const auto axis = list.empty() ? std::size_t{0} : static_cast<std::size_t>(list[0]);
      const auto before = std::lower_bound(over->begin(), over->end(), axis);
      if (!list.empty() && before != over->end() && *before == axis) return false;
      weights.sink_alignment.axes.push_back(
          list.empty() ? 0 : static_cast<std::int32_t>(list[0] - (before - over->begin())));
    }
    weights.sink = std::move(sink.node);
    weights.sink_axes = std::move(sink.axes);
    return weights.scores->type.shape.size() > over->size();
  }
  return false;
}

/// exp(sink - m) at a place of rows.
bool is_exponential_of_sink(const Place& place, const Weights& weights, const ScoreAxes& axes) {
  std::optional<Cut> wanted;
  if (elementwise_of(place.node, Op::exp) == nullptr) return false;
  const auto difference = read_difference(input_place(place, 0, axes, wanted), axes, wanted);
  if (!difference || !is_same(difference->first.node, weights.sink) ||
      !is_same(difference->second.node, weights.maximum)) {
    return false;
  }
  AxisMap sink;  // finer, as here
  for (const std::vector<std::int32_t>& list : weights.sink_axes) {
    sink.push_back(list.empty() ? list : axes.scores()[static_cast<std::size_t>(list[0])]);
  }
  return difference->first.axes == sink;
}

void say(std::string* why, const char* text) {
  if (why != nullptr) *why = text;
}

}  // namespace

bool is_replaced(const Weights& weights) {
  return weights.floor != nullptr ||
         (weights.maximum != nullptr && elementwise_of(weights.maximum, Op::select) != nullptr);
}

const NodePtr& without_labels(const NodePtr& node) {
  const NodePtr* at = &node;
  while (std::holds_alternative<Relabel>((*at)->op)) at = &(*at)->inputs[0];
  return *at;
}

Place behind_views(Place place, const ScoreAxes& axes, std::optional<Cut>& wanted) {
  while (is_view(*place.node)) {
    auto inside = axes.inwards(*place.node, place.axes, wanted);
    if (!inside) break;
    place = {place.node->inputs[0], std::move(*inside)};
  }
  return place;
}

Place input_place(const Place& place, std::size_t input, const ScoreAxes& axes,
                  std::optional<Cut>& wanted) {
  const Node& node = *place.node;
  const Alignment& alignment = std::get<Elementwise>(node.op).alignment[input];
  const Dims& shape = node.inputs[input]->type.shape;
  Place result{node.inputs[input], {}};
  for (std::size_t d = 0; d < alignment.axes.size(); ++d) {
    const auto axis = static_cast<std::size_t>(alignment.axes[d]);
    const bool stretched = shape[d] != node.type.shape[axis];
    result.axes.push_back(stretched ? std::vector<std::int32_t>{} : place.axes[axis]);
  }
  return behind_views(std::move(result), axes, wanted);
}

std::optional<Difference> read_difference(const Place& place, const ScoreAxes& axes,
                                          std::optional<Cut>& wanted) {
  const NodePtr& node = place.node;
  const auto in = [&](const Place& at, std::size_t i) { return input_place(at, i, axes, wanted); };
  if (elementwise_of(node, Op::sub) != nullptr) return Difference{in(place, 0), in(place, 1)};
  if (elementwise_of(node, Op::add) != nullptr) {
    for (const std::size_t i : {std::size_t{1}, std::size_t{0}}) {
      const Place term = in(place, i);
      if (elementwise_of(term.node, Op::neg) == nullptr) continue;
      return Difference{in(place, 1 - i), in(term, 0)};
    }
  }
  if (elementwise_of(node, Op::neg) != nullptr) {
    const Place inner = in(place, 0);
    if (elementwise_of(inner.node, Op::sub) != nullptr) {
      return Difference{in(inner, 1), in(inner, 0)};
    }
  }
  return std::nullopt;
}

bool read_maximum(Place place, const ScoreAxes& axes, Weights& weights) {
  std::optional<Cut> wanted;
  weights.maximum = without_labels(place.node);
  if (const auto replaced = read_replaced(place.node, ScalarFact::minus_infinity)) {
    place = input_place(place, replaced->x, axes, wanted);
  } else if (const auto raised = read_raised(place.node)) {
    weights.floor = place.node->inputs[1 - *raised];
    place = input_place(place, *raised, axes, wanted);
  } else if (elementwise_of(place.node, Op::maximum) != nullptr) {
    return read_maximum_and_sink(place, axes, weights);
  }
  const auto over = reduced_axes(place, plan::ReduceOp::max, weights.scores, axes);
  if (!over) return false;
  weights.axes = *over;
  return true;
}

std::optional<Weights> read_exponentials(const NodePtr& given, std::string* why) {
  const NodePtr& node = without_labels(given);
  if (elementwise_of(node, Op::exp) == nullptr || !is_float(node->type.dtype)) return std::nullopt;
  std::optional<Cut> wanted;
  const ScoreAxes axes(node->type.shape);
  const auto difference =
      read_difference(input_place(whole(node, axes), 0, axes, wanted), axes, wanted);
  if (!difference) {
    say(why, "no maximum is subtracted before exp");
    return std::nullopt;
  }
  const Place& scores = difference->first;
  if (scores.axes != axes.scores() || scores.node->type.shape != node->type.shape) {
    return std::nullopt;
  }
  Weights weights{.scores = scores.node, .nan_when_empty = true};
  if (read_maximum(difference->second, axes, weights)) return weights;
  say(why, "what is subtracted before exp is no maximum of the same scores");
  return std::nullopt;
}

bool is_sum_of(Place place, const NodePtr& e, const Weights& weights, const ScoreAxes& axes,
               bool& guarded, std::optional<Cut>& wanted) {
  guarded = false;
  if (weights.sink != nullptr) {  // sum(e) + exp(sink - m)
    if (elementwise_of(place.node, Op::add) == nullptr) return false;
    for (const std::size_t i : {std::size_t{0}, std::size_t{1}}) {
      const auto over =
          reduced_axes(input_place(place, i, axes, wanted), plan::ReduceOp::sum, e, axes);
      if (over && *over == weights.axes) {
        return is_exponential_of_sink(input_place(place, 1 - i, axes, wanted), weights, axes);
      }
    }
    return false;
  }
  if (const auto replaced = read_replaced(place.node, ScalarFact::zero)) {
    guarded = !has_fact(place.node->inputs[replaced->by], ScalarFact::zero);
    place = input_place(place, replaced->x, axes, wanted);
  } else if (const auto raised = read_raised(place.node)) {
    // Sums are at least 1, at the maximum.
    const NodePtr& least = place.node->inputs[1 - *raised];
    if (!has_fact(least, ScalarFact::tiny) && !has_fact(least, ScalarFact::one)) return false;
    guarded = true;
    place = input_place(place, *raised, axes, wanted);
  }
  const auto over = reduced_axes(place, plan::ReduceOp::sum, e, axes);
  return over && *over == weights.axes;
}

}  // namespace einkern::graph
