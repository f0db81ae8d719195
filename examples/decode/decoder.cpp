// SPDX-License-Identifier: Apache-2.0
// The decoder as its formula, layer by layer: what a layer adds to the cache is written before the
// layer attends to it.
#include "decoder.h"

#include <fmt/format.h>

#include <cmath>
#include <span>
#include <utility>

namespace decode {
namespace {

using ek::Expr;
using ek::Tensor;

/// (n, h * d) as (1, h, n, d): one sequence.
Expr heads_of(const Expr& x, std::int64_t heads) {
  const Expr apart = ek::split(ek::unnamed(x), -1, {"h", "d"}, {heads, -1});
  return ek::expand(ek::permute(apart, {1, 0, 2}), "b", 1);
}

}  // namespace

DecoderWeights seeded_weights(const DecoderForm& form, std::uint64_t seed) {
  // Uniform with the variance of 1 / in.
  const auto matrix = [&](std::int64_t in, std::int64_t out) -> Tensor {
    return (ek::random({in, out}, seed++) - 0.5) * std::sqrt(12.0 / static_cast<double>(in));
  };
  const auto around_one = [&]() -> Tensor { return ek::random({form.model}, seed++) + 0.5; };
  DecoderWeights weights;
  weights.embedding = (ek::random({form.vocabulary, form.model}, seed++) - 0.5) * 2.0;
  for (std::int64_t i = 0; i < form.layers; ++i) {
    Layer layer;
    layer.attention_norm = around_one();
    layer.q = matrix(form.model, form.heads * form.head_dim);
    layer.k = matrix(form.model, form.kv_heads * form.head_dim);
    layer.v = matrix(form.model, form.kv_heads * form.head_dim);
    layer.out = matrix(form.heads * form.head_dim, form.model);
    layer.inner_norm = around_one();
    layer.gate = matrix(form.model, form.inner);
    layer.up = matrix(form.model, form.inner);
    layer.down = matrix(form.inner, form.model);
    weights.layers.push_back(std::move(layer));
  }
  weights.norm = around_one();
  weights.head = matrix(form.model, form.vocabulary);
  return weights;
}

std::vector<ek::KeyValueCache> caches_for(const DecoderForm& form, std::int64_t capacity) {
  std::vector<ek::KeyValueCache> caches;
  for (std::int64_t i = 0; i < form.layers; ++i) {
    caches.emplace_back(ek::CacheShape{.heads = form.kv_heads,
                                       .capacity = capacity,
                                       .key_dim = form.head_dim,
                                       .value_dim = form.head_dim,
                                       .window = i % 2 == 1 ? form.window : 0});
  }
  return caches;
}

Decoder::Decoder(const DecoderForm& form, DecoderWeights weights)
    : form_(form), weights_(std::move(weights)) {}

Expr Decoder::attended(const Layer& w, const Tensor& x, ek::KeyValueCache& cache) const {
  const Tensor start = ek::full({}, static_cast<double>(cache.length()), ek::i64);
  const Tensor h = ek::rms_norm(x, -1, {.weight = w.attention_norm, .eps = form_.eps});
  const auto placed = [&](const Expr& heads) {
    return ek::rope(heads, {.base = form_.rope_base, .positions = start});
  };
  cache.append(placed(heads_of(ek::linear(h, w.k), form_.kv_heads)),
               heads_of(ek::linear(h, w.v), form_.kv_heads));
  const Expr o = cache.attend(placed(heads_of(ek::linear(h, w.q), form_.heads))).output;
  const Expr rows = ek::merge(ek::permute(o, {0, 2, 1, 3}), {2, 3});
  return x + ek::linear(ek::unnamed(ek::merge(rows, {0, 1})), w.out);
}

Tensor Decoder::append(const std::vector<std::int64_t>& tokens,
                       std::vector<ek::KeyValueCache>& caches) const {
  if (tokens.empty()) throw ek::ValueError("append: there are no tokens");
  Tensor x = ek::take(weights_.embedding, ek::borrow(std::span(tokens)), 0);
  for (std::size_t i = 0; i < weights_.layers.size(); ++i) {
    const Layer& w = weights_.layers[i];
    const Tensor y = attended(w, x, caches.at(i));
    const Expr h = ek::rms_norm(y, -1, {.weight = w.inner_norm, .eps = form_.eps});
    x = y + ek::linear(ek::silu(ek::linear(h, w.gate)) * ek::linear(h, w.up), w.down);
  }
  return ek::linear(ek::rms_norm(x, -1, {.weight = weights_.norm, .eps = form_.eps}),
                    weights_.head);
}

}  // namespace decode
