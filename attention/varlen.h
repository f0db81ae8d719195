// SPDX-License-Identifier: Apache-2.0
// Attention over sequences of different lengths, packed one after another.
#pragma once

#include <optional>

#include "options.h"

namespace einkern {

/// Where packed sequences begin and end: sequence i takes positions offsets[i] .. offsets[i + 1] -
/// 1. Integers, not decreasing, from 0 to the number of positions.
struct Packed {
  Packed(const Expr& both) : q(both) {}
  Packed(const Tensor& both) : q(both) {}
  Packed(const Expr& queries, const Expr& keys) : q(queries), k(keys) {}

  Expr q;                      // (sequences + 1)
  std::optional<Expr> k = {};  // absent: as q
};

/// dot_product_attention of q (..., h, total_q, d), k (..., h, total_k, d), v (..., h, total_k, e)
/// within sequences: query i sees keys of its own sequence only. `causal` and `window` count
/// positions within the sequence; bottom_right puts the last query of each sequence at its last
/// key. Positions behind the last offset are padding that nobody sees. Keys of other sequences are
/// not read. Memory: a few integers for each position, and one truth value for each sequence and
/// position. Errors: as dot_product_attention; TypeError and ShapeError for offsets; ValueError,
/// when evaluated, for an offset beyond the positions. Source: Dao, "FlashAttention-2", 2023
/// (variable lengths); Krell et al., "Efficient sequence packing", 2021.
AttentionResult varlen_attention(const Expr& q, const Expr& k, const Expr& v, const Packed& offsets,
                                 const AttentionOptions& options = {});

}  // namespace einkern
