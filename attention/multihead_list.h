// SPDX-License-Identifier: Apache-2.0
// Multi-head attention from one weight per head: self- and cross-attention.
#pragma once

#include <optional>
#include <vector>

#include "../engine/graph/expr.h"
#include "../ops/mask.h"

namespace einkern {

/// concat_i(softmax(x Wq_i (x Wk_i)^T / sqrt(d_k)) x Wv_i) Wp on x (n, m) or (b, n, m), every Wq_i
/// and Wk_i (m, d_k), Wv_i (m, d_v), Wp (heads * d_v, m_out). Errors: ValueError unless the lists
/// are equally long and not empty; ShapeError naming the weight. Source: Vaswani et al., "Attention
/// is all you need", 2017, section 3.2.2.
Expr multihead_attention_list(const Expr& x, const std::vector<Expr>& wqs,
                              const std::vector<Expr>& wks, const std::vector<Expr>& wvs,
                              const Expr& wp, const std::optional<Causal>& placed = {});

/// The same with queries from `xq` (.., nq, m) and keys and values from `xv` (.., nv, m_v): Wq_i
/// projects the queries, Wk_i the keys, Wv_i the values, by name.
Expr multihead_cross_attention_list(const Expr& xq, const Expr& xv, const std::vector<Expr>& wqs,
                                    const std::vector<Expr>& wks, const std::vector<Expr>& wvs,
                                    const Expr& wp);

}  // namespace einkern
