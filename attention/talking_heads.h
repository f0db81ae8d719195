// SPDX-License-Identifier: Apache-2.0
// Attention whose heads exchange scores and weights.
#pragma once

#include "options.h"

namespace einkern {

/// s[b,g,q,k] = mask(sum_h q[b,h,q,d] k[b,h,k,d] scale w_scores[h,g])
/// p[b,f,q,k] = sum_g softmax_k(s)[b,g,q,k] w_weights[g,f],  o[b,f,q,e] = sum_k p[b,f,q,k]
/// v[b,f,k,e] Heads: those of q and k (h), of the softmax (g), of v (f). A row of one head depends
/// on the rows of all: nothing is streamed, weights lie in memory, b f q k numbers. Options: mask,
/// bias, lengths, segments, window, scale, softcap and causal, over the scores of the g heads;
/// ValueError for others. Source: Shazeer et al., "Talking-heads attention", 2020, section 3.
AttentionResult talking_heads_attention(const Expr& q, const Expr& k, const Expr& v,
                                        const Expr& w_scores, const Expr& w_weights,
                                        const AttentionOptions& options = {});

}  // namespace einkern
