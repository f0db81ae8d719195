// SPDX-License-Identifier: Apache-2.0
// The published sentence encoder against its reference implementation, when the model is there.
#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "../../examples/sentence_encoder/encoder.h"
#include "../../examples/sentence_encoder/word_pieces.h"
#include "../engine/tensor/io/scratch.h"
#include "../tools/contains.h"
#include "../tools/process.h"

using namespace einkern;
using test::Finished;
using test::Process;

namespace {

const std::filesystem::path kModelFolder = EINKERN_SENTENCE_MODEL;
const std::filesystem::path kReference =
    std::filesystem::path(EINKERN_TEST_DATA) / "sentence_encoder";

/// Says so, in the form that tools/test counts, when there is no model.
bool has_model(const char* what) {
  if (std::filesystem::exists(kModelFolder / "model.safetensors")) return true;
  std::printf(
      "SKIPPED: no model in models/sentence_encoder (examples/sentence_encoder/fetch), so %s "
      "not checked\n",
      what);
  return false;
}

struct Reference {
  std::vector<std::string> sentences;
  std::vector<std::vector<std::int64_t>> ids;
  Tensor embeddings;

  Reference() {
    std::ifstream file(kReference / "sentences.txt");
    for (std::string line; std::getline(file, line);) sentences.push_back(line);
    const NamedTensors arrays = load_npz(kReference / "reference.npz");
    embeddings = arrays["embeddings"];
    const auto all = arrays["ids"].astype(i64).to_vector<std::int64_t>();
    auto at = all.begin();
    for (const std::int64_t length : arrays["lengths"].astype(i64).to_vector<std::int64_t>()) {
      ids.emplace_back(at, at + length);
      at += length;
    }
  }
};

}  // namespace

TEST_SUITE("examples") {
  TEST_CASE("word pieces of the published vocabulary are the reference's") {
    if (!has_model("its word pieces were")) return;
    const Reference reference;
    const sentence::WordPieces pieces(kModelFolder / "vocab.txt");
    CHECK(pieces.size() == 30522);
    REQUIRE(reference.sentences.size() == 12);
    REQUIRE(reference.ids.size() == 12);
    for (std::size_t i = 0; i < 12; ++i) {
      CAPTURE(reference.sentences[i]);
      CHECK(pieces.encode(reference.sentences[i]) == reference.ids[i]);
    }
  }

  TEST_CASE("vectors of the published encoder agree with the reference to 1e-5") {
    if (!has_model("its vectors were")) return;
    const Reference reference;
    const sentence::Encoder encoder(load_safetensors(kModelFolder / "model.safetensors").tensors);
    CHECK(encoder.blocks() == 6);
    const Tensor vectors = encoder.embed(reference.ids);
    REQUIRE(vectors.shape() == Shape{12, 384});
    const auto got = vectors.to_vector<float>(), want = reference.embeddings.to_vector<float>();
    float worst = 0;
    for (std::size_t i = 0; i < got.size(); ++i) {
      REQUIRE(std::isfinite(got[i]));
      worst = std::max(worst, std::abs(got[i] - want[i]));
    }
    CHECK(worst < 1e-5F);
  }

  TEST_CASE("the program embeds sentences") {
    if (!has_model("the program was")) return;
    const Finished done = Process(EINKERN_SENTENCE_ENCODER,
                                  {"A man is eating food.", "A man is eating bread.", "Rain."}, "/")
                              .wait();
    CHECK(done.code == 0);
    CHECK(done.err == "");
    CHECK(done.out.starts_with(" 1.000 0."));
    CHECK(test::contains(done.out, "1.000  Rain.\n"));
    test::ScratchFolder folder;
    const std::string file = (folder / "v.npy").string();
    CHECK(Process(EINKERN_SENTENCE_ENCODER, {"--output", file, "--threads", "1", "Rain."}, "/")
              .wait()
              .code == 0);
    CHECK(load_npy(file).shape() == Shape{1, 384});
  }

  TEST_CASE("without a model the program says what to do") {
    const Finished done =
        Process(EINKERN_SENTENCE_ENCODER, {"--model", "/nowhere", "Rain."}, "/").wait();
    CHECK(done.code == 1);
    CHECK(done.out == "");
    CHECK(done.err ==
          "sentence_encoder: no '/nowhere/model.safetensors'; examples/sentence_encoder/fetch "
          "downloads the model\n");
  }

  TEST_CASE("options of the sentence encoder that are wrong") {
    const auto message = [](const std::vector<std::string>& arguments) {
      const Finished done = Process(EINKERN_SENTENCE_ENCODER, arguments, "/").wait();
      CHECK(done.code == 1);
      return done.err;
    };
    CHECK(message({"--model"}) == "sentence_encoder: --model needs a value\n");
    CHECK(message({"--threads", "x"}) == "sentence_encoder: --threads needs a number, not 'x'\n");
    CHECK(message({"--time", "a.npy", "text"}) == "sentence_encoder: --time takes no sentences\n");
    CHECK(message({"--what"})
              .starts_with("sentence_encoder: unknown option --what\nusage: sentence_encoder"));
  }
}
