// SPDX-License-Identifier: Apache-2.0
// Ranks meet equations: ellipses become labels, outputs explicit, and counts must agree.
#include <doctest/doctest.h>

#include "../../../engine/base/error.h"
#include "../../../engine/spec/spec.h"
#include "malformed.h"

namespace einkern {
namespace {

ResolvedEquation resolved(std::string_view text, const std::vector<std::size_t>& ranks) {
  return resolve(parse_equation(text), ranks);
}

// The output as names, `*` for an axis of an ellipsis.
std::string output_of(std::string_view text, const std::vector<std::size_t>& ranks) {
  const ResolvedEquation equation = resolved(text, ranks);
  std::string names;
  for (const LabelId label : equation.output) {
    const std::string& name = equation.names[static_cast<std::size_t>(label)];
    names += name.empty() ? "*" : name;
  }
  return names;
}

using Axes = std::vector<LabelId>;

}  // namespace

TEST_SUITE("spec") {
  TEST_CASE("implicit outputs: ellipsis axes, then labels that occur once, by code point") {
    CHECK(output_of("ij,jk", {2, 2}) == "ik");
    CHECK(output_of("ji", {2}) == "ij");
    CHECK(output_of("bA", {2}) == "Ab");
    CHECK(output_of("ii", {2}) == "");
    CHECK(output_of("iij", {3}) == "j");
    CHECK(output_of("i,i", {1, 1}) == "");
    CHECK(output_of("b...a", {4}) == "**ab");
    CHECK(output_of("...k,kj", {3, 2}) == "**j");
    CHECK(output_of("z...,...a", {1, 3}) == "**az");
    CHECK(output_of("", {0}) == "");
    CHECK(output_of("[q batch Z]", {3}) == "Zbatchq");
    CHECK(output_of("[b ab a]", {3}) == "aabb");
    // U+FF21 stands before U+1F419 in code points, though not in UTF-16.
    CHECK(output_of("\xF0\x9F\x90\x99\xEF\xBC\xA1z\xC3\xA4", {4}) ==
          "z\xC3\xA4\xEF\xBC\xA1\xF0\x9F\x90\x99");
  }

  TEST_CASE("explicit outputs") {
    CHECK(output_of("ij->", {2}) == "");
    CHECK(output_of("ij->ji", {2}) == "ji");
    CHECK(output_of("i->ii", {1}) == "ii");
    CHECK(output_of("ij->...j", {2}) == "j");  // no input has an ellipsis
    CHECK(output_of("...i->i...", {3}) == "i**");
    CHECK(output_of("...i->i", {3}) == "i");
    CHECK(output_of("...->", {3}) == "");
  }

  TEST_CASE("ellipses align from the right") {
    const ResolvedEquation equation = resolved("...i,i...,...->...", {3, 4, 0});
    CHECK(equation.ellipsis_rank == 3);
    CHECK(equation.inputs == std::vector<Axes>{{1, 2, 3}, {3, 0, 1, 2}, {}});
    CHECK(equation.output == Axes{0, 1, 2});
    CHECK(equation.names == std::vector<std::string>{"", "", "", "i"});
    REQUIRE(equation.spans[1].size() == 4);
    CHECK(equation.spans[1][0].begin == 5);
    CHECK(equation.spans[1][3].begin == 6);
    CHECK(equation.spans[1][3].size == 3);
  }

  TEST_CASE("labels are numbered as they appear, whatever their names") {
    const ResolvedEquation one = resolved("zy,yx->zx", {2, 2});
    const ResolvedEquation other = resolved("[left bond],[bond a]->[left a]", {2, 2});
    CHECK(one.inputs == other.inputs);
    CHECK(one.output == other.output);
    CHECK(one.inputs == std::vector<Axes>{{0, 1}, {1, 2}});
  }

  TEST_CASE("ranks and counts that do not fit") {
    struct Bad {
      std::string_view text;
      std::vector<std::size_t> ranks;
      std::string_view fact, carets;
    };
    const Bad kBad[] = {
        {"ij,jk", {2}, "the equation has 2 terms but 1 operand was given", "   ^^"},
        {"ij,jk", {2, 2, 2}, "the equation has 2 terms but 3 operands were given", "     ^"},
        {"ij", {2, 2}, "the equation has 1 term but 2 operands were given", "  ^"},
        {"ij", {}, "the equation has 1 term but 0 operands were given", "^^"},
        {"", {}, "the equation has 1 term but 0 operands were given", "^"},
        {"", {1, 1}, "the equation has 1 term but 2 operands were given", "^"},
        {",", {1}, "the equation has 2 terms but 1 operand was given", " ^"},
        {"i", {0}, "operand 0 has 0 axes but its term has 1 label", "^"},
        {"i", {2}, "operand 0 has 2 axes but its term has 1 label", "^"},
        {"ij,jkl->il", {2, 2}, "operand 1 has 2 axes but its term has 3 labels", "   ^^^"},
        {"ij,->", {2, 1}, "operand 1 has 1 axis but its term has 0 labels", "   ^"},
        {"", {1}, "operand 0 has 1 axis but its term has 0 labels", "^"},
        {"i...", {0}, "operand 0 has 0 axes but its term has 1 label beside the ellipsis", "^^^^"},
        {"a,i...j",
         {1, 1},
         "operand 1 has 1 axis but its term has 2 labels beside the ellipsis",
         "  ^^^^^"},
        {"[batch q],q", {1, 1}, "operand 0 has 1 axis but its term has 2 labels", "^^^^^^^^^"},
    };
    for (const Bad& bad : kBad) {
      const std::string expected = test::message(bad.fact, bad.text, bad.carets);
      CHECK_THROWS_WITH_AS(resolved(bad.text, bad.ranks), expected.c_str(), ShapeError);
    }
  }
}

}  // namespace einkern
