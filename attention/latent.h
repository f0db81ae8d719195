// SPDX-License-Identifier: Apache-2.0
// Multi-head latent attention: keys and values of all heads from one short vector a position.
#pragma once

#include "options.h"

namespace einkern {

/// What latent attention reads: queries in two parts, the latent cache, and what takes it apart.
struct Latent {
  Expr q_nope;  // (..., h, q, d): compared with keys made from the latent vectors
  Expr q_rope;  // (..., h, q, r): compared with the shared rotary keys, already turned
  Expr c;       // (..., k, c): latent vectors
  Expr k_rope;  // (..., k, r): rotary keys of all heads, already turned
  Expr w_uk;    // (h, c, d): keys of a head from the latent vector
  Expr w_uv;    // (h, c, e): its values
};

/// In which order the products are formed; the answers are the same.
enum class LatentOrder {
  decompressed,  // keys and values of all heads first: few products a score, for long prefills
  absorbed,      // w_uk into the query, w_uv behind the sum: reads the latent cache as it lies
};

/// s[h,q,k] = (q_nope[h,q] . c[k] w_uk[h] + q_rope[h,q] . k_rope[k]) scale
/// o[h,q,e] = sum_k softmax_k(s)[h,q,k] (c[k] w_uv[h])[e]
/// The scale defaults to 1 / sqrt(d + r), whatever the order. Absorbed, it is attention of all
/// heads to one key and value of c + r and c features. Errors: ShapeError naming what disagrees;
/// otherwise as dot_product_attention. Source: DeepSeek-AI, "DeepSeek-V2", 2024, section 2.1.
AttentionResult latent_attention(const Latent& x, LatentOrder order,
                                 const AttentionOptions& options = {});

}  // namespace einkern
