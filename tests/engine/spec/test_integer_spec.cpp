// SPDX-License-Identifier: Apache-2.0
// Specs from integer labels of any value, and the messages that show them as numbers.
#include <doctest/doctest.h>

#include <random>

#include "../../../engine/base/error.h"
#include "../../../engine/spec/spec.h"

namespace einkern {
namespace {

using Labels = std::vector<std::int64_t>;

}  // namespace

TEST_SUITE("spec") {
  TEST_CASE("integer labels mean what letters mean") {
    const Spec spec = make_spec({{0, 1}, {1, 2}}, Labels{2, 0}, {{2, 3}, {3, 4}});
    CHECK(spec.str() == "ab,bc->ca");
    CHECK(spec.output_shape() == Shape{4, 2});
    CHECK(spec.names == std::vector<std::string>{"", "", ""});
    CHECK(make_spec({{0, 0}}, Labels{0}, {{3, 3}}).str() == "aa->a");
    CHECK(make_spec({{}}, Labels{}, {{}}).str() == "->");
    CHECK(make_spec({{4}}, Labels{4, 4}, {{3}}).output_shape() == Shape{3, 3});
  }

  TEST_CASE("implicit output is in increasing order of the labels") {
    CHECK(make_spec({{1000, 1001}, {1001, 7}}, {}, {{2, 3}, {3, 4}}).output_shape() == Shape{4, 2});
    CHECK(make_spec({{10, 9}}, {}, {{2, 3}}).output_shape() == Shape{3, 2});
    CHECK(make_spec({{0, -5}}, {}, {{2, 3}}).output_shape() == Shape{3, 2});
    CHECK(make_spec({{INT64_MAX, INT64_MIN + 1}}, {}, {{2, 3}}).output_shape() == Shape{3, 2});
    CHECK(make_spec({{-1, kEllipsis}, {kEllipsis, -2}}, {}, {{2, 3, 4}, {4, 5}}).output_shape() ==
          Shape{3, 4, 5, 2});
    CHECK(make_spec({{3, 3}}, {}, {{2, 2}}).output_shape() == Shape{});
  }

  TEST_CASE("messages show integer labels as numbers") {
    CHECK_THROWS_WITH_AS(make_spec({{0, 17}, {17, 2}}, Labels{0, 2}, {{2, 64}, {32, 3}}),
                         "einsum: label 17 is 64 in operand 0 but 32 in operand 1\n"
                         "    [0 17],[17 2]->[0 2]\n"
                         "       ^^   ^^",
                         ShapeError);
    CHECK_THROWS_WITH_AS(make_spec({{-3, -3}}, {}, {{2, 1}}),
                         "einsum: label -3 is 2 and 1 in operand 0\n"
                         "    [-3 -3]\n"
                         "     ^^ ^^",
                         ShapeError);
    CHECK_THROWS_WITH_AS(make_spec({{0, 1}}, Labels{5}, {{2, 3}}),
                         "einsum: output label 5 is in no input, whose labels are 0, 1\n"
                         "    [0 1]->[5]\n"
                         "            ^",
                         SyntaxError);
    CHECK_THROWS_WITH_AS(make_spec({{kEllipsis, 1, kEllipsis}}, {}, {{2, 3}}),
                         "einsum: two ellipses in one term\n"
                         "    [... 1 ...]\n"
                         "     ^^^   ^^^",
                         SyntaxError);
    CHECK_THROWS_WITH_AS(make_spec({{0}, {1}}, {}, {{2}}),
                         "einsum: the equation has 2 terms but 1 operand was given\n"
                         "    [0],[1]\n"
                         "        ^^^",
                         ShapeError);
    CHECK_THROWS_WITH_AS(make_spec({{0, 1}}, {}, {{2}}),
                         "einsum: operand 0 has 1 axis but its term has 2 labels\n"
                         "    [0 1]\n"
                         "    ^^^^^",
                         ShapeError);
    CHECK_THROWS_WITH_AS(make_spec(std::vector<Labels>{}, {}, {}), "einsum: there are no operands",
                         ShapeError);
  }

  TEST_CASE("integers and letters of the same order agree") {
    std::mt19937 random(11);
    for (int round = 0; round < 2000; ++round) {
      std::vector<Labels> lists(1 + random() % 3);
      std::vector<Shape> shapes;
      std::string text;
      for (Labels& list : lists) {
        if (!shapes.empty()) text += ',';
        Shape& shape = shapes.emplace_back();
        for (std::size_t i = random() % 4; i > 0; --i) {
          const auto label = static_cast<std::int64_t>(random() % 6);
          list.push_back(label * 1000003 - 7);
          text += static_cast<char>('a' + label);
          shape.push_back(label + 1);
        }
      }
      CAPTURE(text);
      const Spec letters = make_spec(text, shapes);
      const Spec integers = make_spec(lists, {}, shapes);
      REQUIRE(integers.inputs == letters.inputs);
      REQUIRE(integers.output == letters.output);
      REQUIRE(integers.sizes == letters.sizes);
    }
  }

  TEST_CASE("integer labels have no bound of their own") {
    constexpr std::int64_t kCount = 70000;
    std::vector<Labels> lists;
    for (std::int64_t i = 0; i < kCount; ++i) lists.push_back({i, i + 1});
    const Spec spec = make_spec(lists, {}, std::vector<Shape>(kCount, Shape{2, 2}));
    CHECK(spec.sizes.size() == kCount + 1);
    CHECK(spec.output == std::vector<LabelId>{0, kCount});
  }
}

}  // namespace einkern
