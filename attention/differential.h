// SPDX-License-Identifier: Apache-2.0
// Differential attention: the difference of two softmaxes over the same values.
#pragma once

#include "options.h"

namespace einkern {

/// (softmax(q1 k1^T scale) - lambda softmax(q2 k2^T scale)) v: `lambda` is a number, or (h). Two
/// streamed passes over v, no weights in memory. The options hold for both. `weights` is the
/// difference; there is no logsumexp of it, so the result has none. Errors: as
/// dot_product_attention; ShapeError unless lambda fits the heads. Source: Ye et al., "Differential
/// transformer", 2024, section 2.1.
struct DifferentialResult {
  Expr output, weights;
};
DifferentialResult differential_attention(const Expr& q1, const Expr& k1, const Expr& q2,
                                          const Expr& k2, const Expr& v, const Expr& lambda,
                                          const AttentionOptions& options = {});

/// exp(q1 . k1) - exp(q2 . k2) + initial over the last axis of four learned vectors: how lambda is
/// parametrised there.
Expr differential_lambda(const Expr& q1, const Expr& k1, const Expr& q2, const Expr& k2,
                         double initial);

}  // namespace einkern
