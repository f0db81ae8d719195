// SPDX-License-Identifier: Apache-2.0
// Checks UTF-8 conversion and the placing of carets.
#include <doctest/doctest.h>

#include <string>

#include "../../../engine/base/caret.h"

using namespace einkern;

TEST_SUITE("base") {
  TEST_CASE("decode_utf8 reads one code point of every length, at its borders") {
    CHECK(decode_utf8("") == U"");
    CHECK(decode_utf8("a\x7F") == U"a\x7F");
    CHECK(decode_utf8("\xC2\x80\xDF\xBF") == U"\u0080\u07FF");
    CHECK(decode_utf8("\xE0\xA0\x80\xEF\xBF\xBF") == U"\u0800\uFFFF");
    CHECK(decode_utf8("\xF0\x90\x80\x80\xF4\x8F\xBF\xBF") == U"\U00010000\U0010FFFF");
    CHECK(decode_utf8(std::string("a\0b", 3)) == std::u32string(U"a\0b", 3));
  }

  TEST_CASE("every invalid byte becomes one replacement character") {
    CHECK(decode_utf8("\x80x") == U"\uFFFDx");                              // stray continuation
    CHECK(decode_utf8("\xC3") == U"\uFFFD");                                // cut short
    CHECK(decode_utf8("\xE2\x82x") == U"\uFFFD\uFFFDx");                    // cut short by a letter
    CHECK(decode_utf8("\xC0\x80") == U"\uFFFD\uFFFD");                      // overlong NUL
    CHECK(decode_utf8("\xC1\xBF") == U"\uFFFD\uFFFD");                      // overlong
    CHECK(decode_utf8("\xE0\x9F\xBF") == U"\uFFFD\uFFFD\uFFFD");            // overlong
    CHECK(decode_utf8("\xF0\x8F\xBF\xBF") == U"\uFFFD\uFFFD\uFFFD\uFFFD");  // overlong
    CHECK(decode_utf8("\xED\xA0\x80") == U"\uFFFD\uFFFD\uFFFD");            // surrogate
    CHECK(decode_utf8("\xF4\x90\x80\x80") == U"\uFFFD\uFFFD\uFFFD\uFFFD");  // above 10FFFF
    CHECK(decode_utf8("\xF5\x80\xFF") == U"\uFFFD\uFFFD\uFFFD");            // never leads
  }

  TEST_CASE("encode_utf8 undoes decode_utf8 for every code point") {
    for (char32_t c = 0; c <= 0x10FFFF; ++c) {
      if (c >= 0xD800 && c < 0xE000) continue;
      const std::u32string one(1, c);
      if (decode_utf8(encode_utf8(one)) != one) FAIL("code point ", static_cast<unsigned>(c));
    }
    CHECK(encode_utf8(std::u32string{0xD800, 0x110000}) == "\uFFFD\uFFFD");
  }

  TEST_CASE("carets stand under their spans") {
    CHECK(with_carets("einsum: label 'd' is 64 in operand 0 but 32 in operand 1", "bhqd,bhkd->bhqk",
                      {{3, 1}, {8, 1}}) ==
          "einsum: label 'd' is 64 in operand 0 but 32 in operand 1\n"
          "    bhqd,bhkd->bhqk\n"
          "       ^    ^");
    CHECK(with_carets("m", "[batch head] q", {{1, 5}}) == "m\n    [batch head] q\n     ^^^^^");
    CHECK(with_carets("m", "abc", {{2, 1}, {0, 1}}) == "m\n    abc\n    ^ ^");  // any order
    CHECK(with_carets("m", "abc", {}) == "m\n    abc");
  }

  TEST_CASE("spans at and beyond the end point one past the text") {
    CHECK(with_carets("m", "ij->", {{4, 1}}) == "m\n    ij->\n        ^");
    CHECK(with_carets("m", "", {{0, 1}}) == "m\n    \n    ^");
    CHECK(with_carets("m", "ab", {{7, 3}}) == "m\n    ab\n      ^");
    CHECK(with_carets("m", "ab", {{1, 9}}) == "m\n    ab\n     ^");
    CHECK(with_carets("m", "ab", {{0, 0}}) == "m\n    ab\n    ^");
  }

  TEST_CASE("carets count code points, and control characters cannot break the line") {
    CHECK(with_carets("m", "αβ,βγ", {{4, 1}}) == "m\n    αβ,βγ\n        ^");
    CHECK(with_carets("m", "a\n\x1B[1m\x7F\u0085\u2028b", {{9, 1}}) ==
          "m\n    a\uFFFD\uFFFD[1m\uFFFD\uFFFD\uFFFDb\n             ^");
  }

  TEST_CASE("a long text is cut around the first span") {
    const std::string x(100, 'x');
    const std::string text = x + x + "E" + x + x;  // 401 code points
    CHECK(with_carets("m", text, {{200, 1}}) == "m\n    ..." + x + "E" + std::string(99, 'x') +
                                                    "...\n    " + std::string(103, ' ') + "^");
    CHECK(with_carets("m", text, {{0, 1}}) == "m\n    " + x + x + "...\n    ^");
    CHECK(with_carets("m", text, {}) == "m\n    " + x + x + "...");
    CHECK(with_carets("m", text, {{401, 1}}) ==
          "m\n    ..." + x + x + "\n    " + std::string(203, ' ') + "^");
    CHECK(with_carets("m", text, {{399, 1}, {0, 1}}) ==
          "m\n    ..." + x + x + "\n    " + std::string(201, ' ') + "^");
    CHECK(with_carets("m", x + x, {{199, 1}}) ==
          "m\n    " + x + x + "\n    " + std::string(199, ' ') + "^");
  }
}
