// SPDX-License-Identifier: Apache-2.0
// Texts that follow no grammar, at the bounds and at random: a SyntaxError, never worse.
#include <doctest/doctest.h>

#include <random>
#include <string>

#include "../../../engine/program/parse.h"
#include "../../../engine/program/print.h"
#include "../../support/sanitizer.h"
#include "random_tree.h"

using namespace einkern;
using namespace einkern::test;

namespace {

/// Empty when the text parses.
std::string syntax_error(const std::string& text) {
  try {
    program::parse_tree(program::Source("t.ein", text));
  } catch (const SyntaxError& error) {
    return error.what();
  }
  return "";
}

std::string repeated(const std::string& text, int times) {
  std::string result;
  for (int i = 0; i < times; ++i) result += text;
  return result;
}

}  // namespace

TEST_SUITE("program") {
  TEST_CASE("depth is bounded") {
    CHECK(syntax_error("x = " + repeated("(", 256) + "y" + repeated(")", 256)) == "");
    CHECK(syntax_error("x = " + repeated("f([", 128) + "y" + repeated("])", 128)) == "");
    CHECK(syntax_error("x = " + repeated("(", 257) + "y" + repeated(")", 257))
              .starts_with("t.ein:1: brackets nest deeper than 256"));
    CHECK(syntax_error("x = " + repeated("(", 500'000))
              .starts_with("t.ein:1: brackets nest deeper than 256"));
    for (const std::string& text :
         {"x = " + repeated("-", 100'000) + "y", "x = " + repeated("not ", 100'000) + "y",
          "x = y" + repeated("[0]", 100'000), "x = y" + repeated(".w", 100'000)}) {
      CHECK(syntax_error(text).find("the expression is nested too deeply") != std::string::npos);
    }
    CHECK(syntax_error("x = y" + repeated(" + y", 100'000)) == "");
    CHECK(syntax_error("x = y" + repeated(" ** -y", 100'000)) == "");
    CHECK(syntax_error(repeated("x = y\n", 100'000)) == "");
    CHECK(syntax_error(std::string((1 << 20) + 1, ' ')) ==
          "t.ein: the text has 1048577 bytes, at most 1048576 are read");
  }

  TEST_CASE("texts that are not UTF-8 say where") {
    CHECK(syntax_error("x = 1\ny = \xff") ==
          "t.ein:2: the text is not valid UTF-8\n    y = \xEF\xBF\xBD\n        ^");
    CHECK(syntax_error("x = a\xEF\xBF\xBD\r\ny = 2") == "");
  }

  TEST_CASE("programs with a few characters changed parse or are refused") {
    RandomTree random(3);
    std::mt19937 engine(5);
    static const std::u32string kLetters = U"()[]\"#,:=+-*/%<>!. \n\tax1e\u03B1def return not\\@;{";
    int refused = 0, parsed = 0;
    for (int i = 0; i < fewer_if_sanitized(4000); ++i) {
      std::u32string points = decode_utf8(program::print_tree(random.tree()));
      for (unsigned change = 1 + engine() % 3; change > 0; --change) {
        const std::size_t at = engine() % (points.size() + 1);
        if (engine() % 2 == 0 && at < points.size()) {
          points.erase(at, 1);
        } else {
          points.insert(at, 1, kLetters[engine() % kLetters.size()]);
        }
      }
      const std::string text = encode_utf8(points);
      CAPTURE(text);
      std::string message;
      REQUIRE_NOTHROW(message = syntax_error(text));
      if (message.empty()) {
        ++parsed;
      } else {
        ++refused;
        REQUIRE(message.starts_with("t.ein:"));
        REQUIRE(message.find('^') != std::string::npos);
      }
    }
    CHECK(refused > 200);
    CHECK(parsed > 200);
  }
}
