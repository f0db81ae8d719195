// SPDX-License-Identifier: Apache-2.0
// Shapes meet labels: one size per label, broadcasting, conflicts, and canonical texts of Specs.
#include <doctest/doctest.h>

#include <algorithm>
#include <map>
#include <random>

#include "../../../engine/base/error.h"
#include "../../../engine/spec/spec.h"
#include "malformed.h"

namespace einkern {
namespace {

Shape shape_of(std::string_view text, const std::vector<Shape>& shapes) {
  return make_spec(text, shapes).output_shape();
}

struct Conflict {
  std::string_view text;
  std::vector<Shape> shapes;
  std::string_view fact, carets;
};

// Sizes from the definition, for equations of letters: nullopt when they conflict.
std::optional<std::map<char, std::int64_t>> sizes_by_definition(
    const std::vector<std::string>& terms, const std::vector<Shape>& shapes) {
  std::map<char, std::vector<std::int64_t>> all;
  for (std::size_t p = 0; p < terms.size(); ++p) {
    for (std::size_t i = 0; i < terms[p].size(); ++i) {
      for (std::size_t j = 0; j < i; ++j) {
        if (terms[p][i] == terms[p][j] && shapes[p][i] != shapes[p][j]) return std::nullopt;
      }
      all[terms[p][i]].push_back(shapes[p][i]);
    }
  }
  std::map<char, std::int64_t> sizes;
  for (const auto& [label, seen] : all) {
    sizes[label] = 1;
    for (const std::int64_t size : seen) {
      if (size != 1) sizes[label] = size;
    }
    for (const std::int64_t size : seen) {
      if (size != 1 && size != sizes[label]) return std::nullopt;
    }
  }
  return sizes;
}

}  // namespace

TEST_SUITE("spec") {
  TEST_CASE("sizes broadcast across operands") {
    CHECK(shape_of("i,i->i", {{1}, {4}}) == Shape{4});
    CHECK(shape_of("i,i->i", {{4}, {1}}) == Shape{4});
    CHECK(shape_of("i,i->i", {{0}, {1}}) == Shape{0});
    CHECK(shape_of("i,i->i", {{1}, {0}}) == Shape{0});
    CHECK(shape_of("i,i->i", {{1}, {1}}) == Shape{1});
    CHECK(shape_of("ii,i->i", {{1, 1}, {5}}) == Shape{5});
    CHECK(shape_of("...,...->...", {{3, 1, 5}, {4, 1}}) == Shape{3, 4, 5});
    CHECK(shape_of("...,...", {{0, 1}, {1, 3}}) == Shape{0, 3});
    CHECK(shape_of("ij,jk", {{0, 3}, {3, 2}}) == Shape{0, 2});
    CHECK(shape_of("...chw->...cchw", {{2, 3, 2, 2}}) == Shape{2, 3, 3, 2, 2});
    CHECK(shape_of("", {{}}) == Shape{});
    const Spec spec = make_spec("ij,...j->...i", {{2, 1}, {7, 4}});
    CHECK(spec.sizes == std::vector<std::int64_t>{7, 2, 4});
    CHECK(spec.names == std::vector<std::string>{"", "i", "j"});
    CHECK(spec.output_names() == std::vector<std::string>{"", "i"});
    CHECK(spec.shapes == std::vector<Shape>{{2, 1}, {7, 4}});
  }

  TEST_CASE("sizes that conflict are shown with both places") {
    const Conflict kConflicts[] = {
        {"bhqd,bhkd->bhqk",
         {{1, 2, 3, 64}, {1, 2, 5, 32}},
         "label 'd' is 64 in operand 0 but 32 in operand 1",
         "   ^    ^"},
        {"i,i", {{0}, {3}}, "label 'i' is 0 in operand 0 but 3 in operand 1", "^ ^"},
        {"i,i,i", {{1}, {3}, {2}}, "label 'i' is 3 in operand 1 but 2 in operand 2", "  ^ ^"},
        {"a, ba", {{2}, {2, 3}}, "label 'a' is 2 in operand 0 but 3 in operand 1", "^   ^"},
        {"ii->i", {{1, 3}}, "label 'i' is 1 and 3 in operand 0", "^^"},
        {"ii->i", {{3, 1}}, "label 'i' is 3 and 1 in operand 0", "^^"},
        {"i,jii", {{3}, {2, 1, 3}}, "label 'i' is 1 and 3 in operand 1", "   ^^"},
        {"iii", {{2, 2, 0}}, "label 'i' is 2 and 0 in operand 0", " ^^"},
        {"aabcb,abc", {{3, 3, 4, 5, 6}, {3, 4, 5}}, "label 'b' is 4 and 6 in operand 0", "  ^ ^"},
        {"[batch head],[head q]",
         {{2, 3}, {4, 5}},
         "label 'head' is 3 in operand 0 but 4 in operand 1",
         "       ^^^^   ^^^^"},
        {"\xC3\xA4\xC3\xB6,\xC3\xB6",
         {{2, 3}, {4}},
         "label '\xC3\xB6' is 3 in operand 0 but 4 in operand 1",
         " ^ ^"},
        {"...i,...i",
         {{2, 3, 4}, {5, 4}},
         "ellipsis axis -1 is 3 in operand 0 but 5 in operand 1",
         "^^^  ^^^"},
        {"...i,i...",
         {{2, 3, 4}, {4, 5, 3}},
         "ellipsis axis -2 is 2 in operand 0 but 5 in operand 1",
         "^^^   ^^^"},
    };
    for (const Conflict& conflict : kConflicts) {
      const std::string expected = test::message(conflict.fact, conflict.text, conflict.carets);
      CHECK_THROWS_WITH_AS(make_spec(conflict.text, conflict.shapes), expected.c_str(), ShapeError);
    }
  }

  TEST_CASE("shapes that no tensor has") {
    CHECK_THROWS_WITH_AS(make_spec("ij", {{2, -1}}), "einsum: negative size in shape (2, -1)",
                         ShapeError);
    const std::int64_t large = std::int64_t{1} << 40;
    CHECK_THROWS_WITH_AS(
        make_spec("i,j->ij", {{large}, {large}}, "outer"),
        "outer: shape (1099511627776, 1099511627776) has more elements than 64-bit offsets can "
        "reach",
        ShapeError);
    CHECK(shape_of("i,j->i", {{large}, {large}}) == Shape{large});
    CHECK_THROWS_AS(make_spec("i->iii", {{std::int64_t{1} << 21}}), ShapeError);
  }

  TEST_CASE("random letter equations get the sizes of the definition") {
    std::mt19937 random(7);
    std::size_t bound = 0, refused = 0, repeated = 0;
    for (int round = 0; round < 20000; ++round) {
      std::vector<std::string> terms(1 + random() % 3);
      std::vector<Shape> shapes(terms.size());
      std::string text;
      for (std::size_t p = 0; p < terms.size(); ++p) {
        for (std::size_t i = random() % 4; i > 0; --i) {
          terms[p] += static_cast<char>('a' + random() % 5);
          // Mostly a size that goes with the label, so that many equations fit.
          const std::int64_t own = 2 * std::int64_t{terms[p].back() - 'a'};
          shapes[p].push_back(random() % 8 > 0 ? own : static_cast<std::int64_t>(random() % 3));
        }
        text += (p > 0 ? "," : "") + terms[p];
      }
      CAPTURE(text);
      const auto sizes = sizes_by_definition(terms, shapes);
      if (!sizes) {
        REQUIRE_THROWS_AS(make_spec(text, shapes), ShapeError);
        ++refused;
        continue;
      }
      const Spec spec = make_spec(text, shapes);
      Shape expected;
      for (const auto& [label, size] : *sizes) {  // in code-point order
        std::ptrdiff_t count = 0;
        for (const std::string& term : terms) count += std::count(term.begin(), term.end(), label);
        if (count == 1) expected.push_back(size);
        repeated += count > 1;
      }
      REQUIRE(spec.output_shape() == expected);
      REQUIRE(spec.sizes.size() == sizes->size());
      for (std::size_t p = 0; p < terms.size(); ++p) {
        for (std::size_t i = 0; i < terms[p].size(); ++i) {
          const auto id = static_cast<std::size_t>(spec.inputs[p][i]);
          REQUIRE(spec.sizes[id] == sizes->at(terms[p][i]));
          REQUIRE(spec.names[id] == terms[p].substr(i, 1));
        }
      }
      ++bound;
    }
    CHECK(bound > 5000);
    CHECK(refused > 1000);
    CHECK(repeated > 1000);
  }

  TEST_CASE("canonical texts of Specs") {
    CHECK(make_spec(" i j, jk", {{2, 3}, {3, 4}}).str() == "ij,jk->ik");
    CHECK(make_spec("...i,i->...", {{5, 2, 3}, {3}}).str() == "abi,i->ab");
    CHECK(make_spec("b...a->...ab", {{1, 2, 3}}).str() == "bca->cab");
    CHECK(make_spec("[batch head q],[head q b]", {{2, 3, 4}, {3, 4, 5}}).str() == "acq,cqb->ba");
    CHECK(make_spec("[batch 7]", {{2, 3}}).str() == "ab->ba");
    CHECK(make_spec("", {{}}).str() == "->");
    CHECK(make_spec("\xC3\xA4\xC3\xA4->", {{2, 2}}).str() == "\xC3\xA4\xC3\xA4->");
    // More axes than letters: numbers in brackets go on.
    const Spec wide = make_spec("...->...", {Shape(54, 1)});
    CHECK(wide.str() ==
          "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ[52][53]->"
          "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ[52][53]");
    CHECK(make_spec(wide.str(), wide.shapes).output == wide.output);
  }

  TEST_CASE("65,000 operands") {
    // A chain: operand p holds label p and label p + 1.
    constexpr std::size_t kOperands = 65000;
    std::vector<std::string> names;
    for (char32_t c = 0x3400; names.size() <= kOperands; ++c) {
      if (c < 0xD800 || c >= 0xE000) names.push_back(encode_utf8({&c, 1}));
    }
    std::string text;
    for (std::size_t p = 0; p < kOperands; ++p) {
      text += (p > 0 ? "," : "") + names[p] + names[p + 1];
    }
    const Spec spec = make_spec(text, std::vector<Shape>(kOperands, Shape{2, 2}));
    CHECK(spec.output == std::vector<LabelId>{0, kOperands});
    CHECK(spec.sizes.size() == kOperands + 1);
    std::vector<Shape> shapes(kOperands, Shape{2, 2});
    shapes.back() = {3, 2};
    CHECK_THROWS_AS(make_spec(text, shapes), ShapeError);
  }
}

}  // namespace einkern
