// SPDX-License-Identifier: Apache-2.0
// Attention whose queries and keys are normalised before their product.
#pragma once

#include "../ops/norm.h"
#include "options.h"

namespace einkern {

/// dot_product_attention(rms_norm(q), rms_norm(k), v), every query and key vector normalised over
/// its features; weights (d) as NormOptions has them. Scores stay within the scale times d times
/// the weights, however large activations grow. Errors: as rms_norm and dot_product_attention.
/// Source: Dehghani et al., "Scaling vision transformers to 22 billion parameters", 2023, section
/// 2; Henry et al., "Query-key normalization for transformers", 2020.
AttentionResult qk_norm_attention(const Expr& q, const Expr& k, const Expr& v,
                                  const NormOptions& norm_q = {}, const NormOptions& norm_k = {},
                                  const AttentionOptions& options = {});

/// The form of Henry et al.: q and k of length 1, and a learned scale in place of 1 / sqrt(d),
/// which the options must give.
AttentionResult cosine_attention(const Expr& q, const Expr& k, const Expr& v,
                                 const AttentionOptions& options);

}  // namespace einkern
