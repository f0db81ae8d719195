// SPDX-License-Identifier: Apache-2.0
// Transformer blocks, as their formulas.
#include "block.h"

#include "../../engine/base/error.h"
#include "../../ops/ops.h"
#include "../project.h"

namespace einkern {
namespace {

Expr activated(const Expr& x, Activation activation) {
  switch (activation) {
    case Activation::relu:
      return relu(x);
    case Activation::gelu:
      return gelu(x);
    case Activation::gelu_tanh:
      return gelu(x, Gelu::tanh);
    case Activation::silu:
      break;
  }
  return silu(x);
}

Expr normalised(const Expr& x, const NormOptions& norm, const BlockForm& form) {
  return form.rms ? rms_norm(x, -1, norm) : layer_norm(x, -1, norm);
}

/// The result of a block under the labels that its input has.
Expr labelled_like(const Expr& y, const Expr& x) {
  return labelled_as(y, x, x.labels()[x.rank() - 1]);
}

/// x + f(norm(x)), or norm(x + f(x)), of x without labels: what f labels aligns by position.
template <class F>
Expr residual(const Expr& x, const NormOptions& norm, const BlockForm& form, const F& f) {
  if (form.pre_norm) return x + unnamed(f(normalised(x, norm, form)));
  return normalised(x + unnamed(f(x)), norm, form);
}

}  // namespace

Expr feed_forward(const Expr& x, const FeedForward& w) {
  constexpr const char* kName = "feed_forward";
  const Expr up = unnamed(project(kName, "up", x, w.up, w.up_bias));
  const Expr inner = w.gate
                         ? activated(unnamed(project(kName, "gate", x, *w.gate)), w.activation) * up
                         : activated(up, w.activation);
  return labelled_as(project(kName, "down", inner, w.down, w.down_bias), x, w.down.labels()[1]);
}

EncoderBlock::EncoderBlock(const EncoderWeights& weights)
    : weights_(weights), attention_(weights.attention) {}

Expr EncoderBlock::operator()(const Expr& x, const AttentionOptions& options) const {
  const Expr y = residual(unnamed(x), weights_.attention_norm, weights_.form,
                          [&](const Expr& in) { return attention_(in, in, in, options).output; });
  return labelled_like(residual(y, weights_.feed_norm, weights_.form,
                                [&](const Expr& in) { return feed_forward(in, weights_.feed); }),
                       x);
}

DecoderBlock::DecoderBlock(const DecoderWeights& weights)
    : weights_(weights), attention_(weights.attention) {
  if (weights.cross) cross_.emplace(*weights.cross);
}

Expr DecoderBlock::operator()(const Expr& x, const std::optional<Expr>& memory,
                              const AttentionOptions& options,
                              const AttentionOptions& cross_options) const {
  if (memory.has_value() != cross_.has_value()) {
    fail<ValueError>(memory ? "DecoderBlock: memory is given, but there are no weights for it"
                            : "DecoderBlock: memory is missing; the block has weights for it");
  }
  AttentionOptions causal = options;
  if (!causal.causal) causal.causal = top_left;
  Expr y = residual(unnamed(x), weights_.attention_norm, weights_.form,
                    [&](const Expr& in) { return attention_(in, in, in, causal).output; });
  if (cross_) {
    y = residual(y, weights_.cross_norm, weights_.form, [&](const Expr& in) {
      return (*cross_)(in, *memory, *memory, cross_options).output;
    });
  }
  return labelled_like(residual(y, weights_.feed_norm, weights_.form,
                                [&](const Expr& in) { return feed_forward(in, weights_.feed); }),
                       x);
}

}  // namespace einkern
