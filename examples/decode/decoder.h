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

/// A cache a layer, for `capacity` tokens; those of every second layer roll as a window.
std::vector<ek::KeyValueCache> caches_for(const DecoderForm& form, std::int64_t capacity);

/// A decoder in the form of LLaMA: blocks normalised at their beginning, gated inner layers. Every
/// second layer sees a window only. Shapes do not change as the cache fills, so that steps of one
/// size share their plans. Sources: Touvron et al., "LLaMA", 2023; Ainslie et al., "GQA", 2023;
/// Jiang et al., "Mistral 7B", 2023.
class Decoder {
 public:
  Decoder(const DecoderForm& form, DecoderWeights weights);

  /// Logits (n, vocabulary) behind each of n tokens that follow those in the caches, which take
  /// them up. ValueError for no tokens, for tokens beyond the vocabulary, and for more than a cache
  /// takes; after the last, caches of some layers hold them and are to be cleared.
  ek::Tensor append(const std::vector<std::int64_t>& tokens,
                    std::vector<ek::KeyValueCache>& caches) const;

 private:
  ek::Expr attended(const Layer& w, const ek::Tensor& x, ek::KeyValueCache& cache) const;

  DecoderForm form_;
  DecoderWeights weights_;
};

}  // namespace decode
