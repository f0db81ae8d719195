// SPDX-License-Identifier: Apache-2.0
// Sentences to vectors with a published encoder, and how alike the sentences are.
#include <einkern.h>
#include <fmt/format.h>

#include <chrono>
#include <cstdio>
#include <exception>
#include <filesystem>
#include <iostream>
#include <sstream>
#include <stdexcept>
#include <string>
#include <vector>

#include "encoder.h"
#include "word_pieces.h"

namespace {

namespace ek = einkern;
using sentence::Encoder;
using sentence::WordPieces;

constexpr const char* kUsage = R"(usage: sentence_encoder [OPTION]... [SENTENCE]...
Prints how alike the sentences are: the cosines of the angles between their vectors.
  --model FOLDER    model.safetensors and vocab.txt; default: where examples/sentence_encoder/fetch
                    puts them
  --output F.npy    writes the vectors instead, of the lines of standard input if no sentence is given
  --time IDS.npy    embeds these numbers of word pieces (sentence, position) once for every line of
                    standard input and prints the milliseconds; the vectors go to --output
  --threads N       this many threads
)";

struct Arguments {
  std::filesystem::path model = EINKERN_SENTENCE_MODEL;
  std::string output, time;
  ek::EvalOptions options;
  std::vector<std::string> sentences;
};

Arguments parse(int argc, char** argv) {
  Arguments arguments;
  for (int i = 1; i < argc; ++i) {
    const std::string argument = argv[i];
    const auto value = [&]() -> std::string {
      if (++i == argc) throw std::runtime_error(argument + " needs a value");
      return argv[i];
    };
    if (argument == "--model") {
      arguments.model = value();
    } else if (argument == "--output") {
      arguments.output = value();
    } else if (argument == "--time") {
      arguments.time = value();
    } else if (argument == "--threads") {
      const std::string text = value();
      if (text.empty() || text.size() > 4 || text.find_first_not_of("0123456789") != text.npos) {
        throw std::runtime_error("--threads needs a number, not '" + text + "'");
      }
      arguments.options.threads = std::stoi(text);
    } else if (argument.starts_with("--")) {
      throw std::runtime_error("unknown option " + argument + "\n" + kUsage);
    } else {
      arguments.sentences.push_back(argument);
    }
  }
  if (!arguments.time.empty() && !arguments.sentences.empty()) {
    throw std::runtime_error("--time takes no sentences");
  }
  return arguments;
}

ek::NamedTensors weights_in(const std::filesystem::path& model) {
  const auto file = model / "model.safetensors";
  if (!std::filesystem::exists(file)) {
    throw std::runtime_error("no '" + file.string() +
                             "'; examples/sentence_encoder/fetch downloads the model");
  }
  return ek::load_safetensors(file).tensors;
}

/// Rows of an array of integers as sentences.
std::vector<std::vector<std::int64_t>> rows_of(const ek::Tensor& ids) {
  if (ids.rank() != 2) throw std::runtime_error("--time needs an array (sentence, position)");
  std::vector<std::vector<std::int64_t>> rows;
  for (std::int64_t i = 0; i < ids.shape(0); ++i) {
    rows.push_back(ids(i).astype(ek::i64).to_vector<std::int64_t>());
  }
  return rows;
}

/// The line of `explain` that names the SIMD target.
std::string target_line() {
  std::istringstream lines(
      ek::explain({ek::einsum("ij,jk->ik", ek::zeros({4, 4}), ek::zeros({4, 4}))}));
  for (std::string line; std::getline(lines, line);) {
    if (line.starts_with("target")) return line;
  }
  return "target unknown";
}

void time(const Arguments& arguments) {
  const Encoder encoder(weights_in(arguments.model));
  const auto rows = rows_of(ek::load_npy(arguments.time));
  const ek::Tensor vectors = encoder.embed(rows, arguments.options);  // makes the plan
  if (!arguments.output.empty()) ek::save_npy(arguments.output, vectors);
  fmt::print("einkern {}, {}\n", ek::version(), target_line());
  std::fflush(stdout);
  for (std::string line; std::getline(std::cin, line);) {
    const auto start = std::chrono::steady_clock::now();
    encoder.embed(rows, arguments.options);
    const std::chrono::duration<double, std::milli> passed =
        std::chrono::steady_clock::now() - start;
    fmt::print("{:.3f}\n", passed.count());
    std::fflush(stdout);
  }
}

void embed(Arguments arguments) {
  const Encoder encoder(weights_in(arguments.model));
  const WordPieces pieces(arguments.model / "vocab.txt");
  if (arguments.sentences.empty()) {
    for (std::string line; std::getline(std::cin, line);) arguments.sentences.push_back(line);
  }
  if (arguments.sentences.empty()) throw std::runtime_error("there are no sentences");
  std::vector<std::vector<std::int64_t>> ids;
  for (const std::string& text : arguments.sentences) ids.push_back(pieces.encode(text));
  const ek::Tensor vectors = encoder.embed(ids, arguments.options);
  if (!arguments.output.empty()) {
    ek::save_npy(arguments.output, vectors);
    return;
  }
  const ek::Tensor alike = ek::einsum("im,jm->ij", vectors, vectors);
  for (std::int64_t i = 0; i < alike.shape(0); ++i) {
    for (std::int64_t j = 0; j < alike.shape(1); ++j) {
      fmt::print("{:6.3f}", alike(i, j).item<float>());
    }
    fmt::print("  {}\n", arguments.sentences[static_cast<std::size_t>(i)]);
  }
}

}  // namespace

int main(int argc, char** argv) {
  try {
    Arguments arguments = parse(argc, argv);
    arguments.time.empty() ? embed(std::move(arguments)) : time(arguments);
    return 0;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "sentence_encoder: %s\n", error.what());
    return 1;
  }
}
