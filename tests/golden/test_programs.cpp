// SPDX-License-Identifier: Apache-2.0
// The programs of examples/programs against the C++ functions: equal bits, and the same plan.
#include <doctest/doctest.h>

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "program_forms.h"

using namespace einkern;
using namespace einkern::test;

namespace {

using Inputs = std::map<std::string, Expr>;

std::filesystem::path programs() {
  return std::filesystem::path(EINKERN_SOURCE_ROOT) / "examples/programs";
}

bool equal_bits(const Tensor& a, const Tensor& b) {
  return a.dtype() == b.dtype() && a.shape() == b.shape() && a.is_contiguous() &&
         b.is_contiguous() &&
         std::memcmp(a.bytes(), b.bytes(),
                     static_cast<std::size_t>(a.size()) * size_of(a.dtype())) == 0;
}

}  // namespace

TEST_SUITE("golden") {
  TEST_CASE("programs give the bits of the C++ functions, by the same plan") {
    std::set<std::string> seen;
    std::vector<ProgramForm> examples = seed_forms();
    for (const auto& more : {attention_forms(), variant_forms(), plain_forms()}) {
      examples.insert(examples.end(), more.begin(), more.end());
    }
    for (const ProgramForm& example : examples) {
      CAPTURE(example.file);
      seen.insert(example.file + ".ein");
      const Program program = Program::from_file(programs() / (example.file + ".ein"));
      Inputs inputs(example.inputs.begin(), example.inputs.end());
      const std::vector<Expr> text = program.build(inputs);
      const std::vector<Expr> cpp = example.cpp(example.inputs);
      REQUIRE(text.size() == cpp.size());
      CHECK(explain(text) == explain(cpp));
      CHECK(explain_json(text, {.fuse = false}) == explain_json(cpp, {.fuse = false}));
      const std::vector<Tensor> got = eval(text), want = eval(cpp);
      for (std::size_t i = 0; i < got.size(); ++i) CHECK(equal_bits(got[i], want[i]));

      // Compiled for these types it is the same again.
      std::map<std::string, InputType> types;
      std::vector<Tensor> values;
      for (const std::string& name : program.inputs()) {
        const Tensor& tensor = example.inputs.at(name);
        types.emplace(name, InputType(tensor.shape(), tensor.dtype()));
        values.push_back(tensor);
      }
      const std::vector<Tensor> compiled = program.compile(types)(values);
      for (std::size_t i = 0; i < got.size(); ++i) CHECK(equal_bits(compiled[i], want[i]));
    }
    // Every program of the folder is run.
    for (const auto& entry : std::filesystem::directory_iterator(programs())) {
      if (entry.path().extension() != ".ein") continue;
      CAPTURE(entry.path().string());
      CHECK(seen.contains(entry.path().filename().string()));
    }
  }

  TEST_CASE("pairs around a softmax are one streamed pass") {
    std::vector<ProgramForm> examples = attention_forms();
    for (ProgramForm& form : variant_forms()) examples.push_back(std::move(form));
    for (const ProgramForm& example : examples) {
      CAPTURE(example.file);
      const Program program = Program::from_file(programs() / (example.file + ".ein"));
      const Inputs inputs(example.inputs.begin(), example.inputs.end());
      CHECK(explain_json(program.build(inputs)).find("\"attend\"") != std::string::npos);
    }
    for (const ProgramForm& example : plain_forms()) {
      CAPTURE(example.file);
      const Program program = Program::from_file(programs() / (example.file + ".ein"));
      const Inputs inputs(example.inputs.begin(), example.inputs.end());
      CHECK(explain_json(program.build(inputs)).find("\"attend\"") == std::string::npos);
    }
  }
}
