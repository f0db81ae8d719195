// SPDX-License-Identifier: Apache-2.0
// Scaled dot-product attention under the name of the function that the user called.
#pragma once

#include <vector>

#include "options.h"

namespace einkern {

/// dot_product_attention; messages begin with `function`. `more` masks and biases, over scores
/// labelled b, h, q, k, come in addition to those of the options.
AttentionResult attend(const char* function, const Expr& q, const Expr& k, const Expr& v,
                       const AttentionOptions& options, const std::vector<Mask>& more = {});

/// The scores of that, labelled b, h, q, k: scaled, capped, biased, -inf where they are hidden.
Expr masked_scores(const char* function, const Expr& q, const Expr& k, const Expr& v,
                   const AttentionOptions& options, const std::vector<Mask>& more = {});

/// out[..., h, q, e] = sum_k p[..., h, q, k] v[..., g, k, e], g the head of v that h reads.
Expr weighted_sum(const Expr& p, const Expr& v);

}  // namespace einkern
