// SPDX-License-Identifier: Apache-2.0
// Understands the axes of a pair of contractions and makes it an Attend node.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "weights.h"

namespace einkern::graph {

/// A division behind the contraction, of exponentials that are summed without one.
struct Division {
  NodePtr node;
  Quotient quotient;
  std::vector<const Node*> views;  // from the contraction outwards to the quotient
};

/// What a rule has found of a pair, before its axes are understood.
struct Candidate {
  NodePtr node;  // the second contraction
  const Einsum* sum;
  std::size_t operand;              // of `sum`: the weights
  std::vector<PathStep> path = {};  // from the core outwards to that operand: views and factors
  NodePtr core = {};                // the weights; without a softmax, the scores
  NodePtr factor = {};              // the outermost elementwise node on the path, or null
  Weights weights = {};
  bool normalise = true;
  std::optional<Division> division = {};
};

/// The Attend node in place of `candidate.node` (of the quotient, views left out, where there is a
/// division), or null and why not.
NodePtr match_attend(const Candidate& candidate, std::string& why);

}  // namespace einkern::graph
