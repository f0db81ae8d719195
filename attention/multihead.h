// SPDX-License-Identifier: Apache-2.0
// Multi-head attention with every option: projections, heads, scores, output.
#pragma once

#include "options.h"

namespace einkern {

/// Attention of a sequence to itself, x (..., n, m):
///   q, k, v = x Wq + bq, x Wk + bk, x Wv + bv     split into heads
///   y = merge_heads(dot_product_attention(q, k, v)) Wout + bout
/// Weights are packed (`qkv`: queries, then keys, then values) or separate (`q`, `k`, `v`); `heads`
/// is required. Returns (..., n, m_out). Errors: ShapeError naming the weight or option and the
/// sizes that disagree; ValueError for options that are missing or contradict one another. Source:
/// Vaswani et al., "Attention is all you need", 2017, section 3.2.2; grouped heads: Ainslie et al.,
/// "GQA", 2023.
Expr multihead_attention(const Expr& x, const AttentionOptions& options);

/// The same with queries, keys and values from three sequences (..., nq, m), (..., nk, m), (...,
/// nk, m); gives the weights and logsumexp too.
AttentionResult multihead_attention(const Expr& query, const Expr& key, const Expr& value,
                                    const AttentionOptions& options);

}  // namespace einkern
