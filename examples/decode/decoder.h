// SPDX-License-Identifier: Apache-2.0
// A small decoder with a key-value cache: grouped heads, rotary positions, sliding windows.
#pragma once

#include <einkern.h>

#include <cstdint>
#include <vector>

namespace decode {

namespace ek = einkern;

/// Sizes of a decoder.
struct DecoderForm {
  std::int64_t layers = 4, model = 256, heads = 8, kv_heads = 2, head_dim = 32, inner = 512;
  std::int64_t vocabulary = 1000;
  std::int64_t window = 64;  // tokens seen, the token itself included, in every second layer
  double rope_base = 10000, eps = 1e-6;
};

/// Weights of one layer, stored (in, out).
struct Layer {
  ek::Tensor attention_norm, q, k, v, out;
  ek::Tensor inner_norm, gate, up, down;
};

struct DecoderWeights {
  ek::Tensor embedding, norm, head;  // (vocabulary, m), (m), (m, vocabulary)
  std::vector<Layer> layers;
};

/// Weights as the counter-based generator gives them: a function of form and seed.
DecoderWeights seeded_weights(const DecoderForm& form, std::uint64_t seed);

/// Keys and values of the tokens so far, in memory for `capacity` of them. What lies behind
/// `length` is never looked at.
class Cache {
 public:
  Cache(const DecoderForm& form, std::int64_t capacity);

  std::int64_t length() const noexcept { return length_; }
  std::int64_t capacity() const noexcept { return capacity_; }
  /// (kv_heads, capacity, head_dim), turned for rotary positions.
  const ek::Tensor& keys(std::size_t layer) const { return layers_[layer].keys; }
  const ek::Tensor& values(std::size_t layer) const { return layers_[layer].values; }

  /// The next `n` places of a layer, to be written; ValueError when there is no room.
  ek::Tensor next_keys(std::size_t layer, std::int64_t n) const;
  ek::Tensor next_values(std::size_t layer, std::int64_t n) const;
  /// All layers hold `n` tokens more.
  void advance(std::int64_t n);

 private:
  struct Pair {
    ek::Tensor keys, values;
  };
  ek::Tensor next(const ek::Tensor& all, std::int64_t n) const;

  std::int64_t capacity_ = 0, length_ = 0;
  std::vector<Pair> layers_;
};

/// A decoder in the form of LLaMA: blocks normalised at their beginning, gated inner layers. Every
/// second layer sees a window only. Shapes do not change as the cache fills, so that steps of one
/// size share their plans. Sources: Touvron et al., "LLaMA", 2023; Ainslie et al., "GQA", 2023;
/// Jiang et al., "Mistral 7B", 2023.
class Decoder {
 public:
  Decoder(const DecoderForm& form, DecoderWeights weights);

  /// Logits (n, vocabulary) behind each of n tokens that follow those in the cache, which takes
  /// them up. ValueError for no tokens, for tokens beyond the vocabulary, or more than there is
  /// room for.
  ek::Tensor append(const std::vector<std::int64_t>& tokens, Cache& cache) const;

 private:
  ek::Expr attended(std::size_t layer, const ek::Tensor& x, const Cache& cache) const;

  DecoderForm form_;
  DecoderWeights weights_;
};

}  // namespace decode
