// SPDX-License-Identifier: Apache-2.0
// The sentence encoder with small random weights against float64.
#include <doctest/doctest.h>

#include <cmath>
#include <map>
#include <random>
#include <string>
#include <vector>

#include "../../examples/sentence_encoder/encoder.h"
#include "encoder_oracle.h"

using namespace einkern;
using test::Matrix;

namespace {

constexpr std::int64_t kWords = 17, kPositions = 9, kModel = 12, kInner = 20, kHeads = 3;

/// Weights under the names of the published files, for the encoder and for the oracle.
struct RandomWeights {
  NamedTensors tensors;
  std::map<std::string, Matrix> matrices;

  explicit RandomWeights(int blocks) {
    add("embeddings.word_embeddings.weight", kWords, kModel);
    add("embeddings.position_embeddings.weight", kPositions, kModel);
    add("embeddings.token_type_embeddings.weight", 2, kModel);
    add_norm("embeddings.LayerNorm");
    for (int i = 0; i < blocks; ++i) {
      const std::string prefix = "encoder.layer." + std::to_string(i) + ".";
      for (const char* name : {"self.query", "self.key", "self.value", "output.dense"}) {
        add_linear(prefix + "attention." + name, kModel, kModel);
      }
      add_norm(prefix + "attention.output.LayerNorm");
      add_linear(prefix + "intermediate.dense", kInner, kModel);
      add_linear(prefix + "output.dense", kModel, kInner);
      add_norm(prefix + "output.LayerNorm");
    }
  }

  void add_linear(const std::string& name, std::int64_t out, std::int64_t in) {
    add(name + ".weight", out, in);
    add(name + ".bias", 0, out);
  }
  void add_norm(const std::string& name) {
    add(name + ".weight", 0, kModel);
    add(name + ".bias", 0, kModel);
  }
  /// A vector when there are no rows.
  void add(const std::string& name, std::int64_t rows, std::int64_t columns) {
    const Shape shape = rows == 0 ? Shape{columns} : Shape{rows, columns};
    const Tensor tensor = zeros(shape);
    std::normal_distribution<float> normal(0, 0.6F);
    for (std::int64_t i = 0; i < tensor.size(); ++i) tensor.data<float>()[i] = normal(generator);
    const auto values = tensor.astype(f64).to_vector<double>();
    matrices[name] = {static_cast<std::size_t>(rows == 0 ? 1 : rows),
                      static_cast<std::size_t>(columns), values};
    tensors.add(name, tensor);
  }

  std::mt19937 generator{21};
};

}  // namespace

TEST_SUITE("examples") {
  TEST_CASE("sentences of several lengths at once, against float64") {
    for (const int blocks : {0, 1, 3}) {
      CAPTURE(blocks);
      const RandomWeights weights(blocks);
      const sentence::Encoder encoder(weights.tensors, {.heads = kHeads, .eps = 1e-12});
      CHECK(encoder.blocks() == static_cast<std::size_t>(blocks));
      const std::vector<std::vector<std::int64_t>> sentences = {
          {2, 5, 3}, {16}, {0, 1, 2, 3, 4, 5, 6, 7, 8}, {7, 7, 7, 7}};
      for (const bool fuse : {true, false}) {
        const Tensor vectors = encoder.embed(sentences, {.fuse = fuse});
        REQUIRE(vectors.shape() == Shape{4, kModel});
        for (std::size_t i = 0; i < sentences.size(); ++i) {
          const auto want = test::encode_sentence(weights.matrices, sentences[i], kHeads, 1e-12);
          for (std::size_t j = 0; j < want.size(); ++j) {
            CHECK(std::abs(vectors(i, j).item<double>() - want[j]) < 2e-6);
          }
        }
      }
    }
  }

  TEST_CASE("weights and sentences that do not fit the encoder") {
    const RandomWeights weights(1);
    const sentence::Encoder encoder(weights.tensors, {.heads = kHeads, .eps = 1e-12});
    CHECK_THROWS_WITH_AS(encoder.embed({{1}, {}}), "embed: a sentence has no pieces", ValueError);
    CHECK_THROWS_WITH_AS(encoder.embed({std::vector<std::int64_t>(10, 1)}),
                         "embed: a sentence has 10 pieces, more than the 9 positions", ValueError);
    CHECK_THROWS_AS(encoder.embed({{17}}), ValueError);
    CHECK_THROWS_AS(sentence::Encoder(weights.tensors, {.heads = 5, .eps = 0}), Error);
    NamedTensors few;
    for (const auto& [name, tensor] : weights.tensors) {
      if (name != "encoder.layer.0.attention.self.key.bias") few.add(name, tensor);
    }
    CHECK_THROWS_AS(sentence::Encoder(few, {.heads = kHeads}), ValueError);
  }
}
