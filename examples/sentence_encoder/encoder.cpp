// SPDX-License-Identifier: Apache-2.0
// The sentence encoder: loading gives weights their form, the rest is the formula.
#include "encoder.h"

#include <fmt/format.h>

#include <algorithm>
#include <string>

namespace sentence {
namespace {

using ek::Expr;
using ek::Tensor;

/// Files hold weights (out, in); the product reads them as they lie through the other view.
Tensor turned(const Tensor& weight) { return weight.permute({1, 0}); }

Block block_at(const ek::NamedTensors& weights, const std::string& prefix) {
  const auto weight = [&](const std::string& name) { return weights[prefix + name + ".weight"]; };
  const auto bias = [&](const std::string& name) { return weights[prefix + name + ".bias"]; };
  const std::string self = "attention.self.";
  Block block;
  // One product instead of three.
  block.qkv = ek::concat({turned(weight(self + "query")), turned(weight(self + "key")),
                          turned(weight(self + "value"))},
                         1);
  block.qkv_bias = ek::concat({bias(self + "query"), bias(self + "key"), bias(self + "value")}, 0);
  block.out = turned(weight("attention.output.dense"));
  block.out_bias = bias("attention.output.dense");
  block.attention_norm = weight("attention.output.LayerNorm");
  block.attention_norm_bias = bias("attention.output.LayerNorm");
  block.up = turned(weight("intermediate.dense"));
  block.up_bias = bias("intermediate.dense");
  block.down = turned(weight("output.dense"));
  block.down_bias = bias("output.dense");
  block.output_norm = weight("output.LayerNorm");
  block.output_norm_bias = bias("output.LayerNorm");
  return block;
}

}  // namespace

Encoder::Encoder(const ek::NamedTensors& weights, const EncoderForm& form) : form_(form) {
  words_ = weights["embeddings.word_embeddings.weight"];
  positions_ = weights["embeddings.position_embeddings.weight"];
  kind_ = weights["embeddings.token_type_embeddings.weight"](0);  // all text is of the first kind
  norm_ = weights["embeddings.LayerNorm.weight"];
  norm_bias_ = weights["embeddings.LayerNorm.bias"];
  const auto prefix = [](std::size_t i) { return fmt::format("encoder.layer.{}.", i); };
  while (weights.contains(prefix(blocks_.size()) + "output.dense.weight")) {
    blocks_.push_back(block_at(weights, prefix(blocks_.size())));
  }
  // Says what does not fit before the first sentence comes.
  program(ek::zeros({1, 1}, ek::i64), ek::ones({1}, ek::i64));
}

Expr Encoder::embedded(const Tensor& words) const {
  const Expr x = ek::take(words_, words, 0) + positions_.slice(0, 0, words.shape(1)) + kind_;
  return ek::layer_norm(x, -1, {.weight = norm_, .bias = norm_bias_, .eps = form_.eps});
}

Expr Encoder::block(const Expr& x, const Block& w, const Tensor& lengths) const {
  const auto norm = [&](const Expr& y, const Tensor& weight, const Tensor& bias) {
    return ek::layer_norm(y, -1, {.weight = weight, .bias = bias, .eps = form_.eps});
  };
  const Expr attended = ek::multihead_attention(x, {.qkv = w.qkv,
                                                    .out = w.out,
                                                    .qkv_bias = w.qkv_bias,
                                                    .out_bias = w.out_bias,
                                                    .heads = form_.heads,
                                                    .lengths = lengths});
  const Expr y = norm(x + attended, w.attention_norm, w.attention_norm_bias);
  const Expr hidden = ek::gelu(ek::linear(y, w.up, w.up_bias));
  return norm(y + ek::linear(hidden, w.down, w.down_bias), w.output_norm, w.output_norm_bias);
}

Expr Encoder::program(const Tensor& words, const Tensor& lengths) const {
  Expr x = embedded(words);
  for (const Block& w : blocks_) x = block(x, w, lengths);
  // The mean of what is no padding, at length 1.
  const Expr present = ek::index("n") < lengths["b"];
  const Expr sum = ek::sum(ek::where(present, ek::named(x, "bnm"), 0.0), "n");
  const Expr mean = sum / lengths["b"];
  const Expr length = ek::sqrt(ek::sum(mean * mean, "m", {.keep = true}));
  return ek::unnamed(mean / ek::maximum(length, 1e-12));
}

Tensor Encoder::embed(const std::vector<std::vector<std::int64_t>>& sentences,
                      const ek::EvalOptions& options) const {
  const auto count = static_cast<std::int64_t>(sentences.size());
  std::size_t longest = 1;
  for (const auto& sentence : sentences) {
    longest = std::max(longest, sentence.size());
    if (sentence.empty()) throw ek::ValueError("embed: a sentence has no pieces");
  }
  if (static_cast<std::int64_t>(longest) > positions_.shape(0)) {
    throw ek::ValueError(fmt::format("embed: a sentence has {} pieces, more than the {} positions",
                                     longest, positions_.shape(0)));
  }
  const Tensor words = ek::zeros({count, static_cast<std::int64_t>(longest)}, ek::i64);
  const Tensor lengths = ek::zeros({count}, ek::i64);
  for (std::size_t i = 0; i < sentences.size(); ++i) {
    std::copy(sentences[i].begin(), sentences[i].end(), words.data<std::int64_t>() + i * longest);
    lengths.data<std::int64_t>()[i] = static_cast<std::int64_t>(sentences[i].size());
  }
  return ek::eval(program(words, lengths), options);
}

}  // namespace sentence
