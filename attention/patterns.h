// SPDX-License-Identifier: Apache-2.0
// Which keys a query sees, as predicates over positions: arguments of `mask`, or of the option.
#pragma once

#include <cstdint>

#include "../engine/graph/expr.h"

namespace einkern {

// All are open terms over axes q and k; `a && b`, `a || b` and `!a` combine them. Their cost is
// that of what they leave visible: boxes of keys that a predicate hides are not read.

/// Prefix language model: k <= q, or k < prefix. `prefix` is a number, or integers with one label
/// of the scores, `n["b"]` for one of every batch entry. Source: Raffel et al., "Exploring the
/// limits of transfer learning with a unified text-to-text transformer", 2019, section 3.2.1.
BoolExpr prefix_lm(const Expr& prefix);

/// Dilated sliding window: every `step`-th position from the query's own, `left` of them before and
/// `right` after it; -1 is open. Errors: ValueError for a step below 1 or a bound below -1. Source:
/// Beltagy et al., "Longformer", 2020, section 3.1.
BoolExpr dilated(std::int64_t left, std::int64_t right, std::int64_t step);

/// A window of `left` and `right` neighbours, and `globals` first positions that see and are seen
/// by all. Source: Beltagy et al., "Longformer", 2020; Zaheer et al., "Big Bird", 2020.
BoolExpr local_global(std::int64_t left, std::int64_t right, std::int64_t globals);
/// The same with global positions anywhere: truth values (..., q) and (..., k), labelled as the
/// axes of the scores that they meet (`g["q"]`, `g["bk"]`). Errors: TypeError unless they are bool.
BoolExpr local_global(std::int64_t left, std::int64_t right, const Expr& global_q,
                      const Expr& global_k);

/// Blocks of `size` positions that see themselves and `before` blocks before them. Source: Child et
/// al., "Generating long sequences with sparse transformers", 2019, section 4.3 (fixed attention).
BoolExpr block_local(std::int64_t size, std::int64_t before = 0);

/// Block-sparse attention: block floor(q / size) of queries sees block floor(k / size) of keys
/// where `blocks` is true: bool (..., queries / size, keys / size), its leading axes aligned from
/// the right with (b, h). A labelled term over q and k. Errors: TypeError unless it is bool,
/// ShapeError for fewer than two axes, ValueError for a size below 1. Source: Zaheer et al., "Big
/// Bird", 2020, appendix D; Dao et al., "FlashAttention", 2022, section 3.3.
BoolExpr block_sparse(const Expr& blocks, std::int64_t size);

}  // namespace einkern
