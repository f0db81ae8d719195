// SPDX-License-Identifier: Apache-2.0
// Attention with rotary position embedding.
#pragma once

#include "../ops/rope.h"
#include "options.h"

namespace einkern {

/// dot_product_attention(rope(q), rope(k), v): products depend on distances only. `rope_q` turns
/// queries and `rope_k` keys; give positions where query i does not stand at position i
/// (`.positions = Nk - Nq`, the first one, under bottom_right). Queries and keys are written once,
/// turned; the rest is one pass. Errors: as rope and dot_product_attention. Source: Su et al.,
/// "RoFormer", 2021.
AttentionResult rotary_attention(const Expr& q, const Expr& k, const Expr& v,
                                 const RopeOptions& rope_q, const RopeOptions& rope_k,
                                 const AttentionOptions& options = {});

}  // namespace einkern
