// SPDX-License-Identifier: Apache-2.0
// Programs that should run as one streamed pass: whether they do, and what they should give.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "../../engine/graph/expr.h"
#include "../support/arrays.h"

namespace einkern::test {

/// Sizes of a problem: heads share keys and values in groups.
struct PairSizes {
  std::int64_t batch = 2, heads = 4, groups = 4, queries = 8, keys = 12, inner = 4, columns = 3;
};

/// A place in the scores.
struct ScoreAt {
  std::int64_t b, h, q, k;
};

/// What a pair of contractions computes:
///   out[b,h,q,e] = sum_k factor(b,h,q,k) weight[b,h,q,k] v[b,g,k,e]
/// where the weight is softmax over k of score(dot, b,h,q,k), or the score itself.
struct PairFormula {
  std::function<double(double dot, const ScoreAt& at)> score = [](double dot, const ScoreAt&) {
    return dot;
  };
  std::function<double(const ScoreAt& at)> factor = [](const ScoreAt&) { return 1.0; };
  std::function<double(const ScoreAt& at)> sink = {};  // one more logit in the denominator
  bool normalise = true;
  bool nan_when_empty = false;
};

/// Queries (b,h,q,d), keys (b,g,k,d), values (b,g,k,e).
struct PairArrays {
  PairSizes sizes;
  Array q, k, v;
  explicit PairArrays(const PairSizes& sizes, unsigned seed = 1);
};

/// Numbers in [-1, 1) that every float dtype holds exactly.
Array short_noise(Sizes shape, unsigned seed);

/// The output, by plain loops in double.
Array pair_oracle(const PairArrays& arrays, const PairFormula& formula);

/// Why these do not run as one streamed pass, by the plan: a step that writes as much as the scores
/// have (`score_bytes`), or no streamed pass. Empty when they do.
std::string streaming_fault(const std::vector<Expr>& exprs, std::int64_t score_bytes);

}  // namespace einkern::test
