// SPDX-License-Identifier: Apache-2.0
// Feed-forward layers and blocks as rows for programs. A program holds no state: a block is a
// function of its weights, which are given by name, those of attention to `memory` as `cross_...`.
#include <string>
#include <utility>

#include "../engine/base/error.h"
#include "../ops/words.h"
#include "attention.h"
#include "words_options.h"

namespace einkern {
namespace {

using namespace parameters;
using A = Arguments;

std::vector<Parameter> layer() {
  return {tensor("up_bias").optional().by_name(), tensor("down_bias").optional().by_name(),
          tensor("gate").optional().by_name(),
          choice("activation", {"relu", "gelu", "gelu_tanh", "silu"}).standard("gelu").by_name()};
}

FeedForward layer_of(const A& a, const char* function) {
  static constexpr Activation kActivations[] = {Activation::relu, Activation::gelu,
                                                Activation::gelu_tanh, Activation::silu};
  const std::size_t activation =
      chosen(a, function, "activation", {"relu", "gelu", "gelu_tanh", "silu"});
  return {.up = a.tensor("up"),
          .down = a.tensor("down"),
          .up_bias = a.maybe_tensor("up_bias"),
          .down_bias = a.maybe_tensor("down_bias"),
          .gate = a.maybe_tensor("gate"),
          .activation = kActivations[activation]};
}

/// What blocks share: projections and heads of self-attention, the feed-forward layer, norms.
std::vector<Parameter> block() {
  return with(
      with(weights_of_projections(), {tensor("up").by_name(), tensor("down").by_name()}),
      with(layer(),
           {tensor("attention_norm").optional().by_name(),
            tensor("attention_norm_bias").optional().by_name(),
            tensor("feed_norm").optional().by_name(), tensor("feed_norm_bias").optional().by_name(),
            number("eps").standard("1e-5").by_name(), flag("pre_norm").standard("false").by_name(),
            flag("rms").standard("false").by_name()}));
}

/// The part of attention that a module holds.
AttentionOptions held(const A& a, const std::string& prefix) {
  AttentionOptions options;
  take_weights(a, options, prefix);
  options.heads = a.integer("heads");
  options.kv_heads = a.integer("kv_heads");
  options.head_dim = a.integer("head_dim");
  return options;
}

Value encoder_word(const A& a) {
  constexpr const char* kName = "encoder_block";
  const EncoderBlock block({.attention = held(a, ""),
                            .feed = layer_of(a, kName),
                            .attention_norm = norm_of(a, "attention_norm", "attention_norm_bias"),
                            .feed_norm = norm_of(a, "feed_norm", "feed_norm_bias"),
                            .form = {.pre_norm = a.flag("pre_norm"), .rms = a.flag("rms")}});
  return block(a.tensor("x"), scores_of(a, kName));
}

Value decoder_word(const A& a) {
  constexpr const char* kName = "decoder_block";
  bool crosses = false;
  for (const Parameter& weight : weights_of_projections("cross_")) crosses |= a.has(weight.name);
  if (crosses != a.has("memory")) {
    fail<ValueError>(crosses ? "decoder_block: weights of cross_... are given, but no memory"
                             : "decoder_block: memory is given, but no weights cross_q, cross_k, "
                               "cross_v for it");
  }
  const DecoderBlock block({.attention = held(a, ""),
                            .cross = crosses ? std::optional(held(a, "cross_")) : std::nullopt,
                            .feed = layer_of(a, kName),
                            .attention_norm = norm_of(a, "attention_norm", "attention_norm_bias"),
                            .cross_norm = norm_of(a, "cross_norm", "cross_norm_bias"),
                            .feed_norm = norm_of(a, "feed_norm", "feed_norm_bias"),
                            .form = {.pre_norm = a.flag("pre_norm"), .rms = a.flag("rms")}});
  return block(a.tensor("x"), a.maybe_tensor("memory"), scores_of(a, kName),
               scores_of(a, kName, "cross_"));
}

}  // namespace

WordTable module_words() {
  return {
      {"feed_forward", "f(x up + up_bias) down + down_bias, or f(x gate) (x up + up_bias) down",
       with({tensor("x"), tensor("up"), tensor("down")}, layer()),
       [](const A& a) -> Value {
         return feed_forward(a.tensor("x"), layer_of(a, "feed_forward"));
       }},
      {"encoder_block", "self-attention and a feed-forward layer, each with norm and residual",
       with(with({tensor("x")}, block()), options_of_attention()), encoder_word},
      {"decoder_block", "the same, causal, with attention to memory in between",
       with(with(with({tensor("x"), tensor("memory").optional()}, block()), options_of_attention()),
            with(with(weights_of_projections("cross_"),
                      {tensor("cross_norm").optional().by_name(),
                       tensor("cross_norm_bias").optional().by_name()}),
                 options_of_scores("cross_"))),
       decoder_word},
  };
}

}  // namespace einkern
