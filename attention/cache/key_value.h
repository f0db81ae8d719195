// SPDX-License-Identifier: Apache-2.0
// A cache of keys and values that grows token by token, whole or as a rolling window.
#pragma once

#include <cstdint>

#include "../options.h"

namespace einkern {

/// Sizes of a cache.
struct CacheShape {
  std::int64_t batch = 1, heads = 1;  // of keys and values
  std::int64_t capacity = 0;          // tokens that are kept
  std::int64_t key_dim = 0, value_dim = 0;
  std::int64_t window = 0;  // tokens that a query sees, its own included; 0: all, and nothing rolls
  DType dtype = f32;        // f16 and bf16 halve what decoding reads
};

/// Keys (b, g, capacity, d) and values (b, g, capacity, e) in memory that is allocated once. All
/// shapes stay as they are while it fills, so that one plan serves every length, and what lies
/// behind the length is never read. With a window, tokens take the place of the oldest. One thread
/// at a time appends; expressions read whatever the cache holds when they are evaluated.
class KeyValueCache {
 public:
  /// ValueError for sizes below 1, or a window larger than the capacity.
  explicit KeyValueCache(const CacheShape& shape);

  /// Evaluates and keeps `k` (b, g, n, d) and `v` (b, g, n, e). Errors: ShapeError naming k or v;
  /// ValueError when they do not fit any more.
  void append(const Expr& k, const Expr& v);

  /// Attention of the last n tokens, q (b, h, n, d), to all that are kept: query i stands at token
  /// length - n + i and sees none behind it, and of a window only that. Decoding, prefill and
  /// prefill by chunks are this: append the keys of the chunk, then attend. Without a window,
  /// chunks of a multiple of 64 tokens, from token 0 on, give the bits of all tokens at once
  /// whatever the processor; others, and a shorter last one, agree up to rounding. Options count
  /// places in the cache; causal, window, lengths and segments are the cache's own (ValueError).
  /// With a window, chunks are at most capacity - window + 1 tokens (ValueError). Source: Pope et
  /// al., "Efficiently scaling transformer inference", 2022; rolling: Jiang et al., "Mistral 7B",
  /// 2023.
  AttentionResult attend(const Expr& q, const AttentionOptions& options = {}) const;

  /// Tokens appended so far; with a window more than are kept.
  std::int64_t length() const;
  /// Forgets all tokens.
  void clear();

  /// The memory: slots by place. For tests and for writing a cache to a file.
  const Tensor& keys() const noexcept { return keys_; }
  const Tensor& values() const noexcept { return values_; }

 private:
  CacheShape shape_;
  Tensor keys_, values_;
  Tensor length_;  // one integer, read by expressions when they are evaluated
};

}  // namespace einkern
