// SPDX-License-Identifier: Apache-2.0
// Softmax by the word and by hand: what is normalised, over what.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "exponentials.h"

namespace einkern::graph {

/// Inputs through which an elementwise node is linear, and 0 where that input is: factors,
/// quotients, selections of 0.
std::vector<std::size_t> linear_inputs(const Node& node);

/// One node between weights and the contraction that sums them: which of its inputs leads back.
struct PathStep {
  const Node* node;
  std::size_t input;
};

/// Normalised weights: the word softmax, exp of log_softmax, and by hand from exponentials: e /
/// sum(e), e * (1 / sum(e)), exp(s - logsumexp(s)) however that is written; and a softmax beside
/// one more column, without that column. The sum may be guarded against 0. Null when `node` is none
/// of these; `why` then says what is missing of one that begins like it.
std::optional<Weights> read_weights(const NodePtr& node, std::string* why = nullptr);

/// The divisor of a quotient, or of a product with a reciprocal: `numerator` and `divisor` are the
/// inputs; nothing for other nodes. The divisor is 1 / inputs[divisor] where `reciprocal`.
struct Quotient {
  std::size_t numerator, divisor;
  bool reciprocal;
};
std::vector<Quotient> read_quotient(const Node& node);
/// The place of what is divided by; nothing when the factor is no reciprocal.
std::optional<Place> divisor_place(const Place& place, const Quotient& quotient,
                                   const ScoreAxes& axes, std::optional<Cut>& wanted);

/// m + log(sum(exp(s - m))) by hand, or the word.
std::optional<Weights> read_logsumexp(const NodePtr& node);

}  // namespace einkern::graph
