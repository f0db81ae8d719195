// SPDX-License-Identifier: Apache-2.0
// The sentence encoder as mathematics: blocks of attention, pooled and normalised.
#pragma once

#include <einkern.h>

#include <cstdint>
#include <vector>

namespace sentence {

namespace ek = einkern;

/// One block; weights stored (in, out), as `linear` takes them.
struct Block {
  ek::Tensor qkv, qkv_bias;  // (m, 3m), (3m): queries, keys, values
  ek::Tensor out, out_bias;
  ek::Tensor attention_norm, attention_norm_bias;
  ek::Tensor up, up_bias;      // (m, f)
  ek::Tensor down, down_bias;  // (f, m)
  ek::Tensor output_norm, output_norm_bias;
};

/// What the tensors do not say; these are the published model's.
struct EncoderForm {
  std::int64_t heads = 12;
  double eps = 1e-12;
};

/// Sentences, as numbers of word pieces, to vectors of length 1. An encoder of the form of BERT,
/// blocks normalised at their end, pooled by the mean. Sources: Devlin et al., "BERT", 2019;
/// Reimers and Gurevych, "Sentence-BERT", 2019.
class Encoder {
 public:
  /// Weights under the names of the published files; any number of blocks. einkern::Error when one
  /// is missing or does not fit.
  explicit Encoder(const ek::NamedTensors& weights, const EncoderForm& form = {});

  /// (b, m): one row a sentence. Sentences are as long as they are; shorter ones are padded, and
  /// nothing attends to the padding. ValueError for a sentence without pieces or beyond the
  /// positions that there are; numbers beyond the vocabulary are a ValueError too.
  ek::Tensor embed(const std::vector<std::vector<std::int64_t>>& sentences,
                   const ek::EvalOptions& options = {}) const;

  /// The same for words (b, n) and lengths (b), integers, as an expression.
  ek::Expr program(const ek::Tensor& words, const ek::Tensor& lengths) const;

  std::size_t blocks() const noexcept { return blocks_.size(); }

 private:
  ek::Expr embedded(const ek::Tensor& words) const;
  ek::Expr block(const ek::Expr& x, const Block& w, const ek::Tensor& lengths) const;

  EncoderForm form_;
  ek::Tensor words_, positions_, kind_, norm_, norm_bias_;
  std::vector<Block> blocks_;
};

}  // namespace sentence
