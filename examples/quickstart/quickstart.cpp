// SPDX-License-Identifier: Apache-2.0
// A short sentence to attention on the screen: program, plan, weights, deviation, time and memory.
#include <einkern.h>
#include <fmt/format.h>
#include <sys/resource.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <exception>
#include <fstream>
#include <sstream>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include "formula.h"
#include "formula_text.h"
#include "heat_map.h"
#include "real_model.h"

namespace {

constexpr double kTolerance = 2e-6;  // of f32 against float64, numbers around 1

std::string indented(std::string_view text) {
  std::istringstream lines{std::string(text)};
  std::string result;
  for (std::string line; std::getline(lines, line);)
    result += line.empty() ? "\n" : "  " + line + "\n";
  return result;
}

/// The part of formula.h that is a formula.
std::string_view shown_program() {
  const std::string_view text = kFormulaText;
  return text.substr(text.find("inline Attention attend"));
}

/// A table of `explain` that fits a terminal: without the columns from one heading to another.
std::string without_columns(const std::string& plan) {
  std::istringstream lines(plan);
  std::size_t type = 0, size = 0, flops = 0, written = 0;
  std::string result;
  for (std::string line; std::getline(lines, line);) {
    if (line.starts_with("step")) {
      type = line.find("dtype"), size = line.find("M x N");
      flops = line.find("flops") + 5, written = line.find("written") + 7;  // aligned to the right
    }
    if (written != 0 && line.size() > written && written > flops && flops > size && size > type) {
      line.erase(flops, written - flops).erase(type, size - type);
    }
    result += line + "\n";
  }
  return result;
}

std::vector<std::string> read_tokens(const std::string& path) {
  std::ifstream file(path);
  std::vector<std::string> tokens;
  for (std::string token; file >> token;) tokens.push_back(token);
  if (tokens.empty()) throw std::runtime_error("no tokens in '" + path + "'");
  return tokens;
}

/// Largest absolute difference; NaN counts as infinite.
double deviation(const ek::Tensor& value, const ek::Tensor& reference) {
  if (!(value.shape() == reference.shape())) {
    throw std::runtime_error(fmt::format("shape {} instead of {}", ek::to_string(value.shape()),
                                         ek::to_string(reference.shape())));
  }
  const auto got = value.astype(ek::f64).to_vector<double>(), want = reference.to_vector<double>();
  double largest = 0;
  for (std::size_t i = 0; i < got.size(); ++i) {
    const double difference = std::fabs(got[i] - want[i]);
    largest = std::max(largest, std::isnan(difference) ? ek::inf : difference);
  }
  return largest;
}

struct Variant {
  std::string name;
  ek::Tensor weights = {};
  double weights_deviation = 0, output_deviation = 0;
  double milliseconds = 0;  // of the output, in the second run, whose plan is known

  bool is_right() const {
    return weights_deviation <= kTolerance && output_deviation <= kTolerance;
  }
};

Variant run(const std::string& name, bool causal, const ek::Tensor& x, const Weights& w,
            const std::string& folder) {
  Variant variant{.name = name};
  ek::Tensor output;
  for (int repetition = 0; repetition < 2; ++repetition) {
    const auto start = std::chrono::steady_clock::now();
    output = attend(x, w, causal).output;  // becoming a Tensor makes it real
    const auto time = std::chrono::steady_clock::now() - start;
    variant.milliseconds = std::chrono::duration<double, std::milli>(time).count();
  }
  variant.weights = attend(x, w, causal).weights;
  const std::string reference = folder + "/" + name;
  variant.weights_deviation = deviation(variant.weights, ek::load_npy(reference + "_weights.npy"));
  variant.output_deviation = deviation(output, ek::load_npy(reference + "_output.npy"));
  return variant;
}

double peak_memory_mebibytes() {
  rusage usage = {};
  getrusage(RUSAGE_SELF, &usage);
  return static_cast<double>(usage.ru_maxrss) / 1024;
}

int quickstart(const std::string& folder) {
  const std::vector<std::string> tokens = read_tokens(folder + "/sentence.txt");
  const auto load = [&](const char* name) { return ek::load_npy(folder + "/" + name + ".npy"); };
  const ek::Tensor x = load("x");
  const Weights w{load("q"), load("k"), load("v"), load("out")};
  const Variant variants[] = {run("plain", false, x, w, folder), run("causal", true, x, w, folder)};

  fmt::print("einkern {}: attention of \"{}\" to itself\n\n", ek::version(),
             fmt::join(tokens, " "));
  fmt::print("The program, from examples/quickstart/formula.h:\n\n{}\n", indented(shown_program()));
  const std::string plan = without_columns(ek::explain({attend(x, w, false).output}));
  fmt::print("Its plan for {} words, {} numbers each:\n\n{}\n", tokens.size(), x.shape(-1),
             indented(plan));
  if (plan.find("  attend  ") != plan.npos) {
    fmt::print("attend is s, p and o in one pass: no score is stored.\n\n");
  }

  const HeatMapStyle style{.colour = wants_colour()};
  fmt::print("What each word (a row) attends to: {}.\n", heat_map_legend(style));
  for (const Variant& variant : variants) {
    fmt::print("\n{}", heat_maps(variant.weights, tokens,
                                 {variant.name + ", head 1: alike words",
                                  variant.name + ", head 2: the word before"},
                                 style));
  }

  fmt::print("\nLargest deviation from float64 (at most {:g} is right):\n\n", kTolerance);
  bool right = true;
  double milliseconds = 0;
  for (const Variant& variant : variants) {
    fmt::print("  {:<6}  weights {:.1e}, output {:.1e}  {}\n", variant.name,
               variant.weights_deviation, variant.output_deviation,
               variant.is_right() ? "right" : "WRONG");
    right = right && variant.is_right();
    milliseconds += variant.milliseconds;
  }
  fmt::print("\nTime {:.3f} ms for both outputs, peak memory {:.1f} MiB.\n", milliseconds,
             peak_memory_mebibytes());
  fmt::print("\n{}", real_model(EINKERN_SENTENCE_MODEL));
  return right ? 0 : 1;
}

}  // namespace

int main(int argc, char** argv) {
  try {
    if (argc > 2) throw std::runtime_error("at most one argument, the folder of the data");
    return quickstart(argc == 2 ? argv[1] : EINKERN_QUICKSTART_DATA);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "quickstart: %s\n", error.what());
    return 1;
  }
}
