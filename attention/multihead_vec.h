// SPDX-License-Identifier: Apache-2.0
// Multi-head self-attention from one fused weight: all heads in one contraction.
#pragma once

#include <cstdint>
#include <optional>

#include "../engine/graph/expr.h"
#include "../ops/mask.h"

namespace einkern {

/// As multihead_attention_list, with the weights of all heads side by side: Wqkv (m, 3 m) holds Wq,
/// Wk and Wv, each with its heads in order, and Wp is (m, m_out). x is (n, m) or (b, n, m). Errors:
/// ShapeError naming the weight; ValueError unless the heads divide m. Source: Vaswani et al.,
/// "Attention is all you need", 2017, section 3.2.2.
Expr multihead_attention_vec(const Expr& x, const Expr& wqkv, const Expr& wp, std::int64_t heads,
                             const std::optional<Causal>& placed = {});

}  // namespace einkern
