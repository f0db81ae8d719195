// SPDX-License-Identifier: Apache-2.0
// Attention with linear biases.
#pragma once

#include <cstdint>

#include "options.h"

namespace einkern {

/// One slope for each of `heads`: 2^(-8 i / heads), i = 1 .. heads, for a power of two; otherwise
/// those of the next lower power of two, then every other one of the next higher. Errors:
/// ValueError for fewer than one head.
Tensor alibi_slopes(std::int64_t heads, DType dtype = f32);

/// s[b,h,q,k] = q.k scale + slope[h] (k - q): dot_product_attention with a bias by distance that
/// grows to the left. `slopes` (h) are added to whatever bias the options give. Errors: as
/// dot_product_attention; ShapeError unless there is one slope for each head of q. Source: Press et
/// al., "Train short, test long", 2021.
AttentionResult alibi_attention(const Expr& q, const Expr& k, const Expr& v, const Expr& slopes,
                                const AttentionOptions& options = {});

}  // namespace einkern
