// SPDX-License-Identifier: Apache-2.0
// Transformer blocks with weights: attention and a feed-forward layer, each with a norm and a
// residual.
#pragma once

#include <optional>

#include "../../ops/norm.h"
#include "../options.h"
#include "multihead.h"

namespace einkern {

/// What stands between the two matrices of a feed-forward layer.
enum class Activation { relu, gelu, gelu_tanh, silu };

/// f(x up + up_bias) down + down_bias; with `gate`, f(x gate) (x up + up_bias) in front of `down`.
/// Weights are (in, out). Source: Vaswani et al., 2017, section 3.3; gated: Shazeer, "GLU variants
/// improve transformer", 2020.
struct FeedForward {
  Expr up, down;
  std::optional<Expr> up_bias = {};
  std::optional<Expr> down_bias = {};
  std::optional<Expr> gate = {};
  Activation activation = Activation::gelu;
};
/// x (..., n, m) to (..., n, m_out). Errors: ShapeError naming the weight.
Expr feed_forward(const Expr& x, const FeedForward& weights);

/// Where norms stand, and which they are.
struct BlockForm {
  bool pre_norm = false;  // x + f(norm(x)); else norm(x + f(x))
  bool rms = false;       // rms_norm in place of layer_norm
};

/// The weights of an encoder block.
struct EncoderWeights {
  AttentionOptions attention;  // as MultiheadAttention takes them
  FeedForward feed;
  NormOptions attention_norm = {};
  NormOptions feed_norm = {};
  BlockForm form = {};
};

/// Self-attention, then a feed-forward layer. Source: Vaswani et al., "Attention is all you need",
/// 2017, section 3.1; norms in front: Xiong et al., "On layer normalization in the transformer
/// architecture", 2020.
class EncoderBlock {
 public:
  /// Errors as MultiheadAttention.
  explicit EncoderBlock(const EncoderWeights& weights);
  /// x (..., n, m) to the same shape; `options` as of a call of MultiheadAttention.
  Expr operator()(const Expr& x, const AttentionOptions& options = {}) const;

 private:
  EncoderWeights weights_;
  MultiheadAttention attention_;
};

/// The weights of a decoder block; without `cross` it attends to itself only.
struct DecoderWeights {
  AttentionOptions attention;
  std::optional<AttentionOptions> cross = {};
  FeedForward feed;
  NormOptions attention_norm = {};
  NormOptions cross_norm = {};
  NormOptions feed_norm = {};
  BlockForm form = {};
};

/// Causal self-attention, attention to `memory`, a feed-forward layer.
class DecoderBlock {
 public:
  explicit DecoderBlock(const DecoderWeights& weights);
  /// x (..., n, m) to the same shape. Self-attention is causal, top-left unless `options` place it
  /// otherwise. Errors: ValueError when `memory` is given without weights for it, or the other way
  /// round.
  Expr operator()(const Expr& x, const std::optional<Expr>& memory = {},
                  const AttentionOptions& options = {},
                  const AttentionOptions& cross_options = {}) const;

 private:
  DecoderWeights weights_;
  MultiheadAttention attention_;
  std::optional<MultiheadAttention> cross_;
};

}  // namespace einkern
