// SPDX-License-Identifier: Apache-2.0
// The core of the seed forms: softmax(q k^T / sqrt(d)) v over the last two axes.
#pragma once

#include <optional>

#include "../engine/graph/expr.h"
#include "../ops/mask.h"

namespace einkern {

/// out[..., q, e] = sum_k softmax_k(sum_d q[..., q, d] k[..., k, d] / sqrt(d)) v[..., k, e], later
/// keys hidden when `placed` says how. Source: Vaswani et al., "Attention is all you need", 2017,
/// eq. 1.
Expr scaled_attention(const Expr& q, const Expr& k, const Expr& v,
                      const std::optional<Causal>& placed);

}  // namespace einkern
