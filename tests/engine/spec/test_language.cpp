// SPDX-License-Identifier: Apache-2.0
// The examples of docs/language.md are run: shapes that come out, and messages word for word.
#include <doctest/doctest.h>

#include <fstream>
#include <sstream>

#include "../../../engine/base/error.h"
#include "../../../engine/spec/spec.h"

namespace einkern {
namespace {

// Lines of all blocks fenced with this word.
std::vector<std::string> fenced_lines(const std::string& word) {
  std::ifstream file(EINKERN_LANGUAGE_PAGE);
  REQUIRE(file);
  std::vector<std::string> lines;
  bool inside = false;
  for (std::string line; std::getline(file, line);) {
    if (line.starts_with("```")) {
      inside = line == "```" + word;
    } else if (inside) {
      lines.push_back(line);
    }
  }
  return lines;
}

struct Example {
  std::string equation;
  std::vector<Shape> shapes;  // of the operands
  Shape output;               // what stands behind `=`
};

// `"ij,jk" (2,3) (3,4) = (2,4)  # remark`
Example parse_example(const std::string& line) {
  const std::size_t quote = line.find('"', 1);
  REQUIRE(line.starts_with('"'));
  REQUIRE(quote != std::string::npos);
  Example example{line.substr(1, quote - 1), {}, {}};
  std::istringstream rest(line.substr(quote + 1, line.find('#') - quote - 1));
  Shape shape;
  bool is_output = false;
  for (char c; rest >> c;) {
    if (c == '(') shape = {};
    if (c == '=') is_output = true;
    if (c == ')' && is_output) example.output = shape;
    if (c == ')' && !is_output) example.shapes.push_back(shape);
    if (c >= '0' && c <= '9') {
      rest.unget();
      std::int64_t size = 0;
      rest >> size;
      shape.push_back(size);
    }
  }
  return example;
}

}  // namespace

TEST_SUITE("spec") {
  TEST_CASE("the examples of the language page give the shapes they say") {
    const std::vector<std::string> lines = fenced_lines("equations");
    for (const std::string& line : lines) {
      CAPTURE(line);
      const Example example = parse_example(line);
      CHECK(make_spec(example.equation, example.shapes).output_shape() == example.output);
    }
    CHECK(lines.size() >= 30);
  }

  TEST_CASE("the errors of the language page are the errors one gets") {
    std::size_t errors = 0;
    const std::vector<std::string> lines = fenced_lines("errors");
    for (std::size_t i = 0; i < lines.size();) {
      const Example example = parse_example(lines[i++]);
      std::string message;
      for (; i < lines.size() && !lines[i].starts_with('"'); ++i) {
        if (!lines[i].empty()) message += (message.empty() ? std::string() : "\n") + lines[i];
      }
      CHECK_THROWS_WITH_AS(make_spec(example.equation, example.shapes), message.c_str(), Error);
      ++errors;
    }
    CHECK(errors >= 7);
  }
}

}  // namespace einkern
