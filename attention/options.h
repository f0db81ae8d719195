// SPDX-License-Identifier: Apache-2.0
// What attention takes beside its operands, and what it gives back: one struct for every form.
#pragma once

#include <cstdint>
#include <optional>

#include "../engine/graph/expr.h"
#include "../ops/mask.h"

namespace einkern {

/// Key j is visible from query i when i - left <= j <= i + right; -1 is open.
struct Window {
  std::int64_t left = -1;
  std::int64_t right = -1;
};

/// Which segment (document) every query and key position belongs to; they attend within their own.
struct Segments {
  Segments(const Expr& both) : q(both), k(both) {}
  Segments(const Tensor& both) : q(both), k(both) {}
  Segments(const Expr& queries, const Expr& keys) : q(queries), k(keys) {}

  Expr q, k;  // integers (..., q) and (..., k)
};

/// Options of attention. Everything that is given holds at once; what a function cannot use is a
/// ValueError, never ignored. Scores are labelled b, h, q, k (batch, query head, query, key):
/// expressions written on those labels (`index("h")`, `slope["h"]`) mean these axes, whatever the
/// number of key heads; unlabelled tensors align from the right with (b, h, q, k).
struct AttentionOptions {
  // Weights, stored (in, out); multihead forms only.
  std::optional<Expr> qkv =
      {};                      // (m, heads * head_dim + 2 * kv_heads * head_dim): q, then k, then v
  std::optional<Expr> q = {};  // (m, heads * head_dim)
  std::optional<Expr> k = {};  // (m, kv_heads * head_dim)
  std::optional<Expr> v = {};  // (m, kv_heads * value_dim)
  std::optional<Expr> out = {};  // (heads * value_dim, m_out); absent: no projection
  std::optional<Expr> qkv_bias = {};
  std::optional<Expr> q_bias = {};
  std::optional<Expr> k_bias = {};
  std::optional<Expr> v_bias = {};
  std::optional<Expr> out_bias = {};

  std::int64_t heads = {};     // of queries; 0: not given
  std::int64_t kv_heads = {};  // of keys and values, a divisor of heads; 0: as many as heads
  std::int64_t head_dim = {};  // of queries and keys; 0: from the weights

  std::optional<Expr> mask = {};     // bool, true attends
  std::optional<Expr> bias = {};     // added after scale and soft-cap; -inf hides
  std::optional<Expr> lengths = {};  // integers, keys of each batch entry that exist
  std::optional<Segments> segments = {};
  std::optional<Window> window = {};
  std::optional<double> scale = {};    // absent: 1 / sqrt(head_dim)
  std::optional<double> softcap = {};  // c tanh(s / c) before bias and masks
  std::optional<Expr> sinks = {};      // (h), or a number: one extra logit in the denominator
  std::optional<Causal> causal = {};   // bottom_right counts from each entry's own length, if given
};

/// What attention gives back, all of it lazy: what is not evaluated costs nothing.
struct AttentionResult {
  Expr output;     // (..., h, q, value_dim), or (..., q, m_out) from the multihead forms
  Expr weights;    // (..., h, q, k), rows sum to 1 (less with sinks), 0 where nothing is visible
  Expr logsumexp;  // (..., h, q), natural logarithm, of the scaled, capped, biased, masked scores
};

}  // namespace einkern
