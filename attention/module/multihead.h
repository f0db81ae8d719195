// SPDX-License-Identifier: Apache-2.0
// Multi-head attention as a module: weights are given once, sequences at every call.
#pragma once

#include "../options.h"

namespace einkern {

/// Holds projections with their biases and the number of heads.
class MultiheadAttention {
 public:
  /// Takes weights, biases, `heads`, `kv_heads` and `head_dim`; the rest belongs to the call
  /// (ValueError).
  explicit MultiheadAttention(const AttentionOptions& weights);

  /// Attention of `query` (..., nq, m) to `key` (..., nk, m) and `value` (..., nk, m): output
  /// (..., nq, m_out), weights (..., h, nq, nk) and logsumexp (..., h, nq), as expressions.
  /// `options` says what is visible and how scores are made; weights and heads in it are a
  /// ValueError.
  AttentionResult operator()(const Expr& query, const Expr& key, const Expr& value,
                             const AttentionOptions& options = {}) const;

 private:
  AttentionOptions weights_;
};

}  // namespace einkern
