// SPDX-License-Identifier: Apache-2.0
// Every program of docs/language.md: results with the types it says, or the error word for word.
#include <doctest/doctest.h>

#include <fstream>
#include <map>
#include <sstream>
#include <string>
#include <vector>

#include "../../einkern.h"
#include "../../engine/graph/extent.h"

using namespace einkern;

namespace {

/// A block fenced as `ein`: a program, shapes of its inputs behind `---`, what it gives.
struct Block {
  std::string program, given, want;
};

std::vector<Block> blocks() {
  std::ifstream file(std::string(EINKERN_SOURCE_ROOT) + "/docs/language.md");
  std::vector<Block> result;
  bool inside = false, behind = false;
  for (std::string line; std::getline(file, line);) {
    if (line.starts_with("```")) {
      inside = line == "```ein";
      behind = false;
      if (inside) result.emplace_back();
    } else if (inside && line.starts_with("---")) {
      result.back().given = line.substr(3);
      behind = true;
    } else if (inside) {
      (behind ? result.back().want : result.back().program) += line + "\n";
    }
  }
  return result;
}

/// `q=2x3 n=4:i64`.
std::map<std::string, InputType> types_of(const std::string& given) {
  std::map<std::string, InputType> types;
  std::istringstream words(given);
  for (std::string word; words >> word;) {
    const std::size_t equals = word.find('='), colon = word.find(':');
    std::istringstream sizes(word.substr(equals + 1, colon - equals - 1));
    Shape shape;
    for (std::string size; std::getline(sizes, size, 'x');) shape.push_back(std::stoll(size));
    const bool wide = colon != word.npos && word.substr(colon + 1) == "f64";
    types.emplace(word.substr(0, equals), InputType(shape, wide ? f64 : f32));
  }
  return types;
}

/// `f32[b=2, 16]`.
std::string type_text(const Expr& expr) {
  std::string axes;
  for (std::size_t d = 0; d < expr.rank(); ++d) {
    const std::string size = graph::extent_text(expr.shape()[d]), &label = expr.labels()[d];
    if (d > 0) axes += ", ";
    if (!label.empty() && label != size) axes.append(label).append("=");
    axes += size;
  }
  return std::string(name_of(expr.dtype())) + "[" + axes + "]";
}

}  // namespace

TEST_SUITE("golden") {
  TEST_CASE("the programs of the language page give what it says") {
    int right = 0, wrong = 0;
    for (const Block& block : blocks()) {
      CAPTURE(block.program);
      std::string got;
      try {
        const Program program = Program::parse(block.program);
        const auto types = types_of(block.given);
        for (const auto& [name, expr] : program.outline(types).outputs) {
          got += name + ": " + type_text(expr) + "\n";
        }
        CHECK(Program::parse(program.str()).str() == program.str());
        if (!types.empty()) {
          // With data, results have these sizes too.
          std::map<std::string, Expr> inputs;
          for (const auto& [name, type] : types) {
            inputs.emplace(name, random(type.shape, 1).astype(type.dtype));
          }
          std::string computed;
          const std::vector<Tensor> values = program(inputs);
          for (std::size_t i = 0; i < values.size(); ++i) {
            computed += program.outputs()[i] + ": " + type_text(values[i]) + "\n";
          }
          CHECK(computed == block.want);
        }
        ++right;
      } catch (const Error& error) {
        got = std::string(error.what()) + "\n";
        ++wrong;
      }
      CHECK(got == block.want);
    }
    CHECK(right >= 8);
    CHECK(wrong >= 3);
  }
}
