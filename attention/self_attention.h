// SPDX-License-Identifier: Apache-2.0
// Single-head self-attention of one sequence or a batch of them.
#pragma once

#include <optional>

#include "../engine/graph/expr.h"
#include "../ops/mask.h"

namespace einkern {

/// softmax(x Wq (x Wk)^T / sqrt(d_k)) x Wv on x (n, m) or (b, n, m), with Wq and Wk (m, d_k) and Wv
/// (m, d_v): out (n, d_v) or (b, n, d_v). `placed` hides later positions.
/// Errors: ShapeError naming the weight that does not fit.
/// Source: Vaswani et al., "Attention is all you need", 2017, section 3.2.1.
Expr self_attention(const Expr& x, const Expr& wq, const Expr& wk, const Expr& wv,
                    const std::optional<Causal>& placed = {});

}  // namespace einkern
