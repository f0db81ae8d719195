// SPDX-License-Identifier: Apache-2.0
// Scaled dot-product attention on heads that are already apart.
#pragma once

#include "options.h"

namespace einkern {

/// softmax(q k^T scale) v on q (..., h, q, d), k (..., h, k, d), v (..., h, k, e):
///   s[b,h,q,k] = sum_d q[b,h,q,d] k[b,g,k,d] * scale          g = floor(h * kv_heads / heads)
///   p[b,h,q,k] = softmax_k(mask(softcap(s) + bias))
///   o[b,h,q,e] = sum_k p[b,h,q,k] v[b,g,k,e]
/// Grouped heads (fewer in k and v) are inferred from the sizes; k and v are never repeated in
/// memory. Without a head axis (rank 2) there is one head; then options cannot be written on b or
/// h. A query that sees no key has output 0. Errors: ShapeError naming what disagrees, ValueError
/// for options that belong to the multihead forms. Source: Vaswani et al., "Attention is all you
/// need", 2017; grouped heads: Ainslie et al., "GQA", 2023.
AttentionResult dot_product_attention(const Expr& q, const Expr& k, const Expr& v,
                                      const AttentionOptions& options = {});

}  // namespace einkern
