// SPDX-License-Identifier: Apache-2.0
// Attention whose weights are sigmoids of the scores, each by itself.
#pragma once

#include "options.h"

namespace einkern {

/// p = sigmoid(s - log(keys)),  o = p v, over scores as dot_product_attention makes them: a weight
/// does not depend on other keys, so that nothing is normalised, and a hidden key has weight 0. The
/// shift keeps outputs of the size that a softmax gives; `shift` replaces it. One streamed pass.
/// Grouped heads as in dot_product_attention. Sinks are a ValueError. Source: Ramapuram et al.,
/// "Theory, analysis, and best practices for sigmoid self-attention", 2024.
struct SigmoidResult {
  Expr output, weights;
};
SigmoidResult sigmoid_attention(const Expr& q, const Expr& k, const Expr& v,
                                const AttentionOptions& options = {},
                                const std::optional<double>& shift = {});

}  // namespace einkern
