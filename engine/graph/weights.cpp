// SPDX-License-Identifier: Apache-2.0
// Reads normalised weights, and their logarithms.
#include "weights.h"

#include <algorithm>

#include "scalar_facts.h"

namespace einkern::graph {
namespace {

using map::Op;

/// Does input `i` have the axes of the result, one by one?
bool is_same_space(const Node& node, std::size_t i) {
  const Alignment& alignment = std::get<Elementwise>(node.op).alignment[i];
  if (!node.inputs[i]->type.open.empty()) return false;
  if (node.inputs[i]->type.shape != node.type.shape) return false;
  for (std::size_t d = 0; d < alignment.axes.size(); ++d) {
    if (alignment.axes[d] != static_cast<std::int32_t>(d)) return false;
  }
  return true;
}

/// log(sum(e)) at a place: the exponentials' softmax, and e.
std::optional<Weights> read_log_of_sum(const Place& place, const ScoreAxes& axes) {
  std::optional<Cut> wanted;
  if (elementwise_of(place.node, Op::log) == nullptr) return std::nullopt;
  const Place sum = input_place(place, 0, axes, wanted);
  if (sum.node->inputs.size() != 1) return std::nullopt;
  const NodePtr& e = sum.node->inputs[0];
  auto weights = read_exponentials(e);
  bool guarded = false;
  if (!weights || weights->scores->type.shape.size() != axes.scores().size() ||
      !is_sum_of(sum, e, *weights, axes, guarded, wanted)) {
    return std::nullopt;
  }
  if (guarded && is_replaced(*weights)) weights->nan_when_empty = false;
  return weights;
}

/// m + log(sum(exp(s - m))) at a place.
std::optional<Weights> read_shifted_log(const Place& place, const ScoreAxes& axes) {
  std::optional<Cut> wanted;
  if (elementwise_of(place.node, Op::add) == nullptr) return std::nullopt;
  for (const std::size_t i : {std::size_t{1}, std::size_t{0}}) {
    auto weights = read_log_of_sum(input_place(place, i, axes, wanted), axes);
    if (!weights) continue;
    const Place maximum = input_place(place, 1 - i, axes, wanted);
    Weights again = *weights;
    if (is_same(maximum.node, weights->maximum) && read_maximum(maximum, axes, again)) {
      return weights;
    }
  }
  return std::nullopt;
}

/// exp(x) where x is a logarithm of weights.
std::optional<Weights> read_exponential_of_logarithm(const NodePtr& x) {
  if (const auto* softmax = std::get_if<Softmax>(&x->op)) {
    if (softmax->kind != plan::SoftmaxKind::log_softmax) return std::nullopt;
    Weights weights{.scores = x->inputs[0], .axes = softmax->axes};
    if (x->inputs.size() > 1) {
      weights.sink = x->inputs[1];
      weights.sink_alignment = softmax->sink;
    }
    return weights;
  }
  std::optional<Cut> wanted;
  const ScoreAxes axes(x->type.shape);
  const auto difference = read_difference(whole(x, axes), axes, wanted);
  if (!difference || difference->first.axes != axes.scores()) return std::nullopt;
  const NodePtr s = without_labels(difference->first.node);
  const Place& log = difference->second;
  if (s->type.shape != x->type.shape) return std::nullopt;
  if (const auto* softmax = std::get_if<Softmax>(&log.node->op)) {
    if (softmax->kind != plan::SoftmaxKind::logsumexp || !is_same(log.node->inputs[0], s)) {
      return std::nullopt;
    }
    Weights weights{.scores = s, .axes = softmax->axes, .nan_when_empty = true};
    std::size_t at = 0;
    for (std::size_t d = 0; d < s->type.shape.size(); ++d) {
      if (std::binary_search(softmax->axes.begin(), softmax->axes.end(), d)) continue;
      if (s->type.shape[d] != 1 && log.axes[at] != axes.scores()[d]) return std::nullopt;
      ++at;
    }
    if (log.node->inputs.size() > 1) {
      weights.sink = log.node->inputs[1];
      weights.sink_alignment = softmax->sink;
    }
    return weights;
  }
  std::optional<Weights> weights = read_shifted_log(log, axes);
  if (weights && is_same(weights->scores, s)) return weights;
  weights = read_log_of_sum(log, axes);  // of s - m, which the exponentials are of too
  if (!weights) return std::nullopt;
  const auto inner = read_difference(whole(s, axes), axes, wanted);
  if (!inner || inner->first.axes != axes.scores() ||
      !is_same(inner->first.node, weights->scores) ||
      !is_same(inner->second.node, weights->maximum)) {
    return std::nullopt;
  }
  Weights again = *weights;
  return read_maximum(inner->second, axes, again) ? weights : std::nullopt;
}

/// softmax of the scores beside one more column, without that column: the column is a sink.
std::optional<Weights> read_column_sink(const NodePtr& node) {
  const auto* slice = std::get_if<Slice>(&node->op);
  if (slice == nullptr || slice->step != 1) return std::nullopt;
  const NodePtr& whole = without_labels(node->inputs[0]);
  const auto* softmax = std::get_if<Softmax>(&whole->op);
  if (softmax == nullptr || softmax->kind != plan::SoftmaxKind::softmax) return std::nullopt;
  const NodePtr& beside = without_labels(whole->inputs[0]);
  const auto* concat = std::get_if<Concat>(&beside->op);
  if (whole->inputs.size() != 1 || concat == nullptr || beside->inputs.size() != 2 ||
      concat->axis != slice->axis || softmax->axes != std::vector<std::size_t>{slice->axis} ||
      beside->type.shape.size() < 2) {
    return std::nullopt;
  }
  const std::size_t axis = slice->axis;
  const std::int64_t size = beside->type.shape[axis];
  const SliceRange range = slice_range(size, slice->start, slice->stop, 1);
  if (range.size != size - 1 || range.start > 1) return std::nullopt;
  const std::size_t s = range.start == 1 ? 1 : 0;  // the column stands first or last
  if (beside->inputs[1 - s]->type.shape[axis] != 1) return std::nullopt;
  Weights weights{.scores = beside->inputs[s], .axes = {axis}, .sink = beside->inputs[1 - s]};
  for (std::size_t d = 0; d < beside->type.shape.size(); ++d) {
    // The column's own axis has size 1 and may meet any.
    const std::size_t row = d < axis ? d : d == axis ? 0 : d - 1;
    weights.sink_alignment.axes.push_back(static_cast<std::int32_t>(row));
  }
  return weights;
}

}  // namespace

std::vector<std::size_t> linear_inputs(const Node& node) {
  switch (std::get<Elementwise>(node.op).op) {
    case Op::neg:
    case Op::div:
      return {0};
    case Op::mul:
      return {0, 1};
    case Op::select: {
      std::vector<std::size_t> inputs;
      if (has_fact(node.inputs[2], ScalarFact::zero)) inputs.push_back(1);
      if (has_fact(node.inputs[1], ScalarFact::zero)) inputs.push_back(2);
      return inputs;
    }
    default:
      return {};
  }
}

std::vector<Quotient> read_quotient(const Node& node) {
  const auto* op = std::get_if<Elementwise>(&node.op);
  if (op == nullptr) return {};
  if (op->op == Op::div) return {{0, 1, false}};
  if (op->op == Op::mul) return {{0, 1, true}, {1, 0, true}};
  return {};
}

std::optional<Weights> read_weights(const NodePtr& node, std::string* why) {
  if (auto weights = read_column_sink(node)) return weights;
  if (const auto* softmax = std::get_if<Softmax>(&node->op)) {
    if (softmax->kind != plan::SoftmaxKind::softmax) return std::nullopt;
    Weights weights{.scores = node->inputs[0], .axes = softmax->axes};
    if (node->inputs.size() > 1) {
      weights.sink = node->inputs[1];
      weights.sink_alignment = softmax->sink;
    }
    return weights;
  }
  if (!std::holds_alternative<Elementwise>(node->op) || !is_float(node->type.dtype)) {
    return std::nullopt;
  }
  if (elementwise_of(node, Op::exp) != nullptr) {
    auto weights = read_exponential_of_logarithm(without_labels(node->inputs[0]));
    if (weights && weights->scores->type.shape == node->type.shape) return weights;
    return std::nullopt;
  }
  std::optional<Cut> wanted;
  const ScoreAxes axes(node->type.shape);
  for (const Quotient& quotient : read_quotient(*node)) {
    if (!is_same_space(*node, quotient.numerator)) continue;
    const NodePtr& e = without_labels(node->inputs[quotient.numerator]);
    if (elementwise_of(e, Op::exp) == nullptr) continue;
    const auto divisor = divisor_place(whole(node, axes), quotient, axes, wanted);
    if (!divisor) continue;
    std::string missing;
    std::optional<Weights> weights = read_exponentials(e, &missing);
    bool guarded = false;
    if (weights && is_sum_of(*divisor, e, *weights, axes, guarded, wanted)) {
      if (guarded && is_replaced(*weights)) weights->nan_when_empty = false;
      return weights;
    }
    const bool of_sum = divisor->node->inputs.size() == 1 && is_same(divisor->node->inputs[0], e);
    if (!weights && of_sum && why != nullptr) *why = missing;
  }
  return std::nullopt;
}

std::optional<Weights> read_logsumexp(const NodePtr& node) {
  if (const auto* softmax = std::get_if<Softmax>(&node->op)) {
    if (softmax->kind != plan::SoftmaxKind::logsumexp) return std::nullopt;
    Weights weights{.scores = node->inputs[0], .axes = softmax->axes};
    if (node->inputs.size() > 1) weights.sink = node->inputs[1];
    return weights;
  }
  if (elementwise_of(node, Op::add) == nullptr) return std::nullopt;
  // The rows of the scores are not known before the sum is found: look for it first.
  for (const NodePtr& input : node->inputs) {
    const NodePtr* at = &without_labels(input);
    if (elementwise_of(*at, Op::log) == nullptr) continue;
    at = &without_labels((*at)->inputs[0]);
    if ((*at)->inputs.size() != 1) continue;
    const auto exponentials = read_exponentials((*at)->inputs[0]);
    if (!exponentials) continue;
    const ScoreAxes axes(exponentials->scores->type.shape);
    Place rows{node, {}};
    for (std::size_t d = 0; d < axes.scores().size(); ++d) {
      const auto& over = exponentials->axes;
      if (!std::binary_search(over.begin(), over.end(), d)) rows.axes.push_back(axes.scores()[d]);
    }
    if (rows.axes.size() != node->type.shape.size()) continue;
    auto weights = read_shifted_log(rows, axes);
    // A row without a key: NaN by the maximum, or -inf by the sum, unless that is guarded.
    if (!weights || weights->floor != nullptr || !weights->nan_when_empty) continue;
    weights->nan_when_empty = !is_replaced(*weights);
    return weights;
  }
  return std::nullopt;
}

std::optional<Place> divisor_place(const Place& place, const Quotient& quotient,
                                   const ScoreAxes& axes, std::optional<Cut>& wanted) {
  Place divisor = input_place(place, quotient.divisor, axes, wanted);
  if (!quotient.reciprocal) return divisor;
  if (elementwise_of(divisor.node, Op::div) == nullptr ||
      !has_fact(divisor.node->inputs[0], ScalarFact::one)) {
    return std::nullopt;
  }
  return input_place(divisor, 1, axes, wanted);
}

}  // namespace einkern::graph
