// SPDX-License-Identifier: Apache-2.0
// Four sentences through the published encoder of examples/sentence_encoder.
#include "real_model.h"

#include <einkern.h>
#include <fmt/format.h>

#include <chrono>
#include <vector>

#include "../sentence_encoder/encoder.h"
#include "../sentence_encoder/word_pieces.h"

namespace ek = einkern;

std::string real_model(const std::filesystem::path& folder) {
  const auto file = folder / "model.safetensors";
  if (!std::filesystem::exists(file)) {
    return "examples/sentence_encoder/fetch gets a published model (84 MB) to be shown here.\n";
  }
  const std::vector<std::string> sentences = {
      "You say what you mean and it runs fast.", "Write the formula, and it is executed quickly.",
      "The cat sleeps on a warm stove.", "A kitten naps beside the oven."};
  const sentence::Encoder encoder(ek::load_safetensors(file).tensors);
  const sentence::WordPieces pieces(folder / "vocab.txt");
  std::vector<std::vector<std::int64_t>> ids;
  for (const std::string& text : sentences) ids.push_back(pieces.encode(text));
  ek::Tensor vectors = encoder.embed(ids);  // makes the plan
  const auto start = std::chrono::steady_clock::now();
  vectors = encoder.embed(ids);
  const std::chrono::duration<double, std::milli> passed = std::chrono::steady_clock::now() - start;

  const ek::Tensor alike = ek::einsum("im,jm->ij", vectors, vectors);
  std::string text = fmt::format(
      "A published encoder of {} blocks, from examples/sentence_encoder; how alike four\n"
      "sentences are to it (the cosines of their vectors):\n\n",
      encoder.blocks());
  for (std::int64_t i = 0; i < alike.shape(0); ++i) {
    text += " ";
    for (std::int64_t j = 0; j < alike.shape(1); ++j) {
      text += fmt::format(" {:5.2f}", alike(i, j).item<float>());
    }
    text += fmt::format("  {}\n", sentences[static_cast<std::size_t>(i)]);
  }
  return text + fmt::format("\nTime {:.1f} ms from word pieces to vectors.\n", passed.count());
}
