// SPDX-License-Identifier: Apache-2.0
// parse(print(p)) is p, and print(parse(t)) stays what it is.
#include <doctest/doctest.h>

#include "../../../engine/program/parse.h"
#include "../../../engine/program/print.h"
#include "../../support/sanitizer.h"
#include "random_tree.h"

using namespace einkern;
using namespace einkern::test;
using program::Node;

namespace {

program::Tree parsed(const std::string& text) {
  return program::parse_tree(program::Source("test.ein", text));
}

std::string canonical(const std::string& text) { return program::print_tree(parsed(text)); }

}  // namespace

TEST_SUITE("program") {
  TEST_CASE("random programs print and read back as themselves") {
    RandomTree random(7);
    int broken = 0;  // programs with a line that had to be broken
    for (int i = 0; i < fewer_if_sanitized(3000); ++i) {
      const program::Tree tree = random.tree();
      const std::string text = program::print_tree(tree);
      CAPTURE(text);
      broken += text.find("(\n") != text.npos || text.find("[\n") != text.npos;
      program::Tree back;
      REQUIRE_NOTHROW(back = parsed(text));
      REQUIRE(back == tree);
      REQUIRE(program::print_tree(back) == text);
    }
    CHECK(broken > 20);
    for (int kind = 0; kind <= static_cast<int>(Node::Kind::power); ++kind) {
      if (static_cast<Node::Kind>(kind) == Node::Kind::absent) continue;
      CAPTURE(kind);
      const auto found = random.counts().find(static_cast<Node::Kind>(kind));
      CHECK((found != random.counts().end() && found->second > 20));
    }
  }

  TEST_CASE("the canonical form") {
    CHECK(canonical("") == "");
    CHECK(canonical("\n\n# only\n\n\n# this \n\n") == "# only\n\n# this\n");
    CHECK(canonical("x=a+b*-c\nreturn x,  y") == "x = a + b * -c\nreturn x, y\n");
    CHECK(canonical("x = (a + b) * (c)\n") == "x = (a + b) * c\n");
    CHECK(canonical("x = f( a , # first\n  b=1.50,\n)") == "# first\nx = f(a, b=1.5)\n");
    CHECK(canonical("a = 1 # one\n\n\n\n  # two\nb = 2") == "a = 1  # one\n\n# two\nb = 2\n");
    CHECK(canonical("return x #\r") == "return x  #\n");
    CHECK(canonical("# one\r\r\nreturn x # two \r \r") == "# one\nreturn x  # two\n");
    CHECK(canonical("x = y[ : ,0:4, ::2,...,1]\n") == "x = y[:, 0:4, ::2, ..., 1]\n");
    CHECK(canonical("x = y [ \"b h\" ] . weights\n") == "x = y[\"b h\"].weights\n");
    CHECK(canonical("x = not a<b<=c and(d or e)") == "x = not a < b <= c and (d or e)\n");
    CHECK(canonical("x = -2**-3**y\nz = (-2)**2") == "x = -2 ** -3 ** y\nz = (-2) ** 2\n");
    CHECK(canonical("def f(a,b=1e-5): return a") == "def f(a, b=1e-5):\n    return a\n");
    CHECK(canonical("def f():\n  # in\n\n  x = 1\n  return x  # out\ny = f()") ==
          "def f():\n    # in\n\n    x = 1\n    return x  # out\ny = f()\n");
    CHECK(canonical("input q:f32[ b,h , 64 ]\ninput s: i64[]") ==
          "input q: f32[b, h, 64]\ninput s: i64[]\n");
    CHECK(canonical("x = 1e20 + 1.0e-300 + 12345678901234567890.0") ==
          "x = 1e20 + 1e-300 + 1.2345678901234567e19\n");
    CHECK(canonical("x = 1\r\ny = 2\r\n") == "x = 1\ny = 2\n");
    CHECK(canonical("\tx = 1") == "x = 1\n");
  }

  TEST_CASE("long calls are broken at their commas") {
    const std::string name(30, 'a');
    CHECK(canonical("y = f(" + name + ", " + name + ", k=" + name + ", l=" + name + ")") ==
          "y = f(\n    " + name + ",\n    " + name + ",\n    k=" + name + ",\n    l=" + name +
              ",\n)\n");
  }

  TEST_CASE("numbers keep their value") {
    const program::Node one = parsed("x = 9223372036854775807").statements[0].values[0];
    CHECK(one.kind == Node::Kind::integer);
    CHECK(one.integer == INT64_MAX);
    const program::Node large = parsed("x = 9223372036854775808").statements[0].values[0];
    CHECK(large.kind == Node::Kind::number);
    CHECK(large.number == 9223372036854775808.0);
    CHECK(parsed("x = 1e-400").statements[0].values[0].number == 0.0);
    CHECK(parsed("x = 0.1").statements[0].values[0].number == 0.1);
  }
}
