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

/// (n, h * d) as (h, n, d).
Expr heads_of(const Expr& x, std::int64_t heads) {
  return ek::permute(ek::split(x, -1, {"h", "d"}, {heads, -1}), {1, 0, 2});
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

Cache::Cache(const DecoderForm& form, std::int64_t capacity) : capacity_(capacity) {
  const ek::Shape shape = {form.kv_heads, capacity, form.head_dim};
  for (std::int64_t i = 0; i < form.layers; ++i) {
    // Not left as the memory was: NaN behind the length is hidden, but costs a slower loop.
    layers_.push_back({ek::zeros(shape), ek::zeros(shape)});
  }
}

Tensor Cache::next(const Tensor& all, std::int64_t n) const {
  if (n > capacity_ - length_) {
    throw ek::ValueError(
        fmt::format("cache: no room for {} tokens behind {}; it holds {}", n, length_, capacity_));
  }
  return all.slice(1, length_, length_ + n);
}

Tensor Cache::next_keys(std::size_t layer, std::int64_t n) const {
  return next(layers_[layer].keys, n);
}
Tensor Cache::next_values(std::size_t layer, std::int64_t n) const {
  return next(layers_[layer].values, n);
}

void Cache::advance(std::int64_t n) { length_ += n; }

Decoder::Decoder(const DecoderForm& form, DecoderWeights weights)
    : form_(form), weights_(std::move(weights)) {}

Expr Decoder::attended(std::size_t layer, const Tensor& x, const Cache& cache) const {
  const Layer& w = weights_.layers[layer];
  const std::int64_t n = x.shape(0);
  const Tensor start = ek::full({}, static_cast<double>(cache.length()), ek::i64);
  const Tensor h = ek::rms_norm(x, -1, {.weight = w.attention_norm, .eps = form_.eps});
  const auto placed = [&](const Expr& heads) {
    return ek::rope(heads, {.base = form_.rope_base, .positions = start});
  };
  ek::eval_into(cache.next_keys(layer, n), placed(heads_of(ek::linear(h, w.k), form_.kv_heads)));
  ek::eval_into(cache.next_values(layer, n), heads_of(ek::linear(h, w.v), form_.kv_heads));

  const Expr q = placed(heads_of(ek::linear(h, w.q), form_.heads));
  // All of the cache's memory is in sight of the formula; what is hidden is not read.
  const Expr distance = ek::index("q") + start - ek::index("k");
  ek::BoolExpr visible = distance >= 0;
  if (layer % 2 == 1) visible = visible && distance < form_.window;
  const Expr o =
      ek::dot_product_attention(q, cache.keys(layer), cache.values(layer), {.mask = visible})
          .output;
  return x + ek::linear(ek::unnamed(ek::merge(ek::permute(o, {1, 0, 2}), {1, 2})), w.out);
}

Tensor Decoder::append(const std::vector<std::int64_t>& tokens, Cache& cache) const {
  if (tokens.empty()) throw ek::ValueError("append: there are no tokens");
  const auto n = static_cast<std::int64_t>(tokens.size());
  Tensor x = ek::take(weights_.embedding, ek::borrow(std::span(tokens)), 0);
  for (std::size_t i = 0; i < weights_.layers.size(); ++i) {
    const Layer& w = weights_.layers[i];
    const Tensor y = attended(i, x, cache);
    const Expr h = ek::rms_norm(y, -1, {.weight = w.inner_norm, .eps = form_.eps});
    x = y + ek::linear(ek::silu(ek::linear(h, w.gate)) * ek::linear(h, w.up), w.down);
  }
  cache.advance(n);
  return ek::linear(ek::rms_norm(x, -1, {.weight = weights_.norm, .eps = form_.eps}),
                    weights_.head);
}

}  // namespace decode
