// SPDX-License-Identifier: Apache-2.0
// Malformed texts and the whole messages that they get.
#include "../../../engine/spec/grammar.h"

#include <doctest/doctest.h>

#include "../../../engine/base/error.h"
#include "malformed.h"

namespace einkern {
namespace {

struct Malformed {
  std::string_view text, fact, carets;
};

// clang-format off
const Malformed kEquations[] = {
    // Arrows.
    {"ij- >i", "the arrow '->' is split by blanks", "  ^^^"},
    {"ij -   > i", "the arrow '->' is split by blanks", "   ^^^^^"},
    {"- >", "the arrow '->' is split by blanks", "^^^"},
    {"ij-", "'-' without '>': the arrow is '->'", "  ^"},
    {"ij-  ", "'-' without '>': the arrow is '->'", "  ^"},
    {"ij-i", "'-' without '>': the arrow is '->'", "  ^"},
    {"ij--i", "'-' without '>': the arrow is '->'", "  ^"},
    {"ij-->i", "'-' without '>': the arrow is '->'", "  ^"},
    {"-", "'-' without '>': the arrow is '->'", "^"},
    {"a,-b", "'-' without '>': the arrow is '->'", "  ^"},
    {"ij>i", "'>' without '-': the arrow is '->'", "  ^"},
    {">", "'>' without '-': the arrow is '->'", "^"},
    {"ij > i", "'>' without '-': the arrow is '->'", "   ^"},
    {"ij->>i", "'>' without '-': the arrow is '->'", "    ^"},
    {"ij->i>", "'>' without '-': the arrow is '->'", "     ^"},
    {"ij>-i", "the arrow is '->', not '>-'", "  ^^"},
    {"ij->i->j", "an equation has one arrow", "  ^^ ^^"},
    {"->->", "an equation has one arrow", "^^^^"},
    {"a->b -> c", "an equation has one arrow", " ^^  ^^"},
    {"a->a - > c", "an equation has one arrow", " ^^  ^^^"},
    {"a->a-", "'-' without '>': the arrow is '->'", "    ^"},
    {"a->a-b", "'-' without '>': the arrow is '->'", "    ^"},
    {"ij=>i", "unknown character '=' (U+003D)", "  ^"},
    // Dots.
    {".", "an ellipsis is three dots, not 1", "^"},
    {"i..", "an ellipsis is three dots, not 2", " ^^"},
    {"i..j", "an ellipsis is three dots, not 2", " ^^"},
    {"....", "an ellipsis is three dots, not 4", "^^^^"},
    {"i.....j", "an ellipsis is three dots, not 5", " ^^^^^"},
    {"......", "an ellipsis is three dots, not 6", "^^^^^^"},
    {". ..", "an ellipsis is three adjacent dots", "^^^^"},
    {".. .", "an ellipsis is three adjacent dots", "^^^^"},
    {"i. . .j", "an ellipsis is three adjacent dots", " ^^^^^"},
    {"... .", "an ellipsis is three adjacent dots", "^^^^^"},
    {"i.,j", "an ellipsis is three dots, not 1", " ^"},
    {"a->..", "an ellipsis is three dots, not 2", "   ^^"},
    {"a..->a", "an ellipsis is three dots, not 2", " ^^"},
    {"[a ..]", "an ellipsis is three dots, not 2", "   ^^"},
    {"...i...", "two ellipses in one term", "^^^ ^^^"},
    {"i, ... ...", "two ellipses in one term", "   ^^^ ^^^"},
    {"[... a ...]", "two ellipses in one term", " ^^^   ^^^"},
    {"...[a ...]", "two ellipses in one term", "^^^   ^^^"},
    {"...i->...i...", "two ellipses in one term", "      ^^^ ^^^"},
    // Brackets.
    {"[a b", "'[' without ']'", "^"},
    {"[", "'[' without ']'", "^"},
    {"a,[", "'[' without ']'", "  ^"},
    {"[a b->a", "'[' without ']'", "^"},
    {"[a b>a", "'[' without ']'", "^"},
    {"[a],[b->a", "'[' without ']'", "    ^"},
    {"[a,", "'[' without ']'", "^"},
    {"a]", "']' without '['", " ^"},
    {"]", "']' without '['", "^"},
    {"[a]]", "']' without '['", "   ^"},
    {"[a [b]]", "brackets do not nest", "^  ^"},
    {"[[a]]", "brackets do not nest", "^^"},
    {"[a,]", "',' in brackets stands between two labels", "  ^"},
    {"[a , ]", "',' in brackets stands between two labels", "   ^"},
    {"[,a]", "',' in brackets stands between two labels", " ^"},
    {"[,]", "',' in brackets stands between two labels", " ^"},
    {"[a,,b]", "',' in brackets stands between two labels", "   ^"},
    {"[a-b]", "'[' without ']'", "^"},
    // Characters.
    {"i%...", "unknown character '%' (U+0025)", " ^"},
    {"ij;jk", "unknown character ';' (U+003B)", "  ^"},
    {"i*j", "unknown character '*' (U+002A)", " ^"},
    {"(ij)k", "unknown character '(' (U+0028)", "^"},
    {"'ij'", "unknown character ''' (U+0027)", "^"},
    {"ij->i+j", "unknown character '+' (U+002B)", "     ^"},
    {"[a b$c]", "unknown character '$' (U+0024)", "    ^"},
    {"\xC3\xA9\xC3\xA9,i@", "unknown character '@' (U+0040)", "    ^"},
    {"i_j", "'_' (U+005F) is no label outside brackets, where names such as [k2] stand", " ^"},
    {"i2", "'2' (U+0032) is no label outside brackets, where names such as [k2] stand", " ^"},
    {"[a b]2", "'2' (U+0032) is no label outside brackets, where names such as [k2] stand", "     ^"},
    // The output.
    {"ij->i,j", "the output is one term, but ',' follows it", "     ^"},
    {"ij->,", "the output is one term, but ',' follows it", "    ^"},
    {"ij->k", "output label 'k' is in no input, whose labels are 'i', 'j'", "    ^"},
    {"ij,jk->il", "output label 'l' is in no input, whose labels are 'i', 'j', 'k'", "        ^"},
    {"->i", "output label 'i' is in no input, whose labels are none", "  ^"},
    {"...->i", "output label 'i' is in no input, whose labels are none", "     ^"},
    {"[batch q]->[head q]", "output label 'head' is in no input, whose labels are 'batch', 'q'",
     "            ^^^^"},
    {"ab->aB", "output label 'B' is in no input, whose labels are 'a', 'b'", "     ^"},
    {"abcdefghijklmnopqrstuvwxyz->A",
     "output label 'A' is in no input, whose labels are 'a', 'b', 'c', 'd', 'e', 'f', 'g', 'h', "
     "'i', 'j', 'k', 'l', 'm', 'n', 'o', 'p', 'q', 'r', 's', 't', ...",
     "                            ^"},
};

const Malformed kTerms[] = {
    {"b,h", "one term expected, but ',' follows it", " ^"},
    {",", "one term expected, but ',' follows it", "^"},
    {"bh->hb", "one term expected, but an arrow follows it", "  ^^"},
    {"bh - > hb", "one term expected, but an arrow follows it", "   ^^^"},
    {"bh-", "'-' without '>': the arrow is '->'", "  ^"},
    {"b>", "'>' without '-': the arrow is '->'", " ^"},
    {"...b", "a term of labels takes no ellipsis", "^^^"},
    {"[b ...]", "a term of labels takes no ellipsis", "   ^^^"},
    {"bhb", "label 'b' stands twice", "^ ^"},
    {"[batch q]q", "label 'q' stands twice", "       ^ ^"},
    {"[batch", "'[' without ']'", "^"},
    {"b1", "'1' (U+0031) is no label outside brackets, where names such as [k2] stand", " ^"},
    {"b?", "unknown character '?' (U+003F)", " ^"},
    {"b..", "an ellipsis is three dots, not 2", " ^^"},
};

// Characters that a message cannot show: control characters stand as U+FFFD.
struct Invisible {
  std::string_view text, code_point, shown, carets;
};
const Invisible kInvisible[] = {
    {"i\tj", "U+0009", "i\xEF\xBF\xBDj", " ^"},
    {"ij\n", "U+000A", "ij\xEF\xBF\xBD", "  ^"},
    {"\r", "U+000D", "\xEF\xBF\xBD", "^"},
    {{"i\0j", 3}, "U+0000", "i\xEF\xBF\xBDj", " ^"},
    {"[a\tb]", "U+0009", "[a\xEF\xBF\xBD" "b]", "  ^"},
    {"i\x1B", "U+001B", "i\xEF\xBF\xBD", " ^"},
    {"i\x7F", "U+007F", "i\xEF\xBF\xBD", " ^"},
    {"i\xC2\x80", "U+0080", "i\xEF\xBF\xBD", " ^"},
    {"i\xC2\xA0j", "U+00A0", "i\xC2\xA0j", " ^"},
    {"i\xE2\x80\x83j", "U+2003", "i\xE2\x80\x83j", " ^"},
    {"i\xE3\x80\x80j", "U+3000", "i\xE3\x80\x80j", " ^"},
};
// clang-format on

}  // namespace

TEST_SUITE("spec") {
  TEST_CASE("malformed equations get a fact and carets") {
    for (const Malformed& malformed : kEquations) {
      const std::string expected = test::message(malformed.fact, malformed.text, malformed.carets);
      CHECK_THROWS_WITH_AS(parse_equation(malformed.text), expected.c_str(), SyntaxError);
    }
  }

  TEST_CASE("malformed terms get a fact and carets") {
    for (const Malformed& malformed : kTerms) {
      const std::string expected =
          test::message(malformed.fact, malformed.text, malformed.carets, "named");
      CHECK_THROWS_WITH_AS(parse_term(malformed.text, "named"), expected.c_str(), SyntaxError);
    }
  }

  TEST_CASE("white space other than the blank and control characters are named by number") {
    for (const Invisible& invisible : kInvisible) {
      const std::string fact =
          "unknown character " + std::string(invisible.code_point) + "; only U+0020 is a blank";
      const std::string expected = test::message(fact, invisible.shown, invisible.carets);
      CHECK_THROWS_WITH_AS(parse_equation(invisible.text), expected.c_str(), SyntaxError);
    }
  }

  TEST_CASE("bytes that are not UTF-8 are no labels") {
    const std::string_view replacement = "\xEF\xBF\xBD";
    for (const std::string_view bytes :
         {"\xFF", "\x80", "\xC3", "\xF8", "\xC0\x80", "\xED\xA0\x80", "\xF4\x90\x80\x80"}) {
      CHECK_THROWS_AS(parse_equation(bytes), SyntaxError);
      CHECK_THROWS_AS(parse_term(bytes, "named"), SyntaxError);
    }
    const std::string expected =
        test::message("the text is not valid UTF-8", "ij" + std::string(replacement), "  ^");
    CHECK_THROWS_WITH_AS(parse_equation("ij\xFF"), expected.c_str(), SyntaxError);
    // U+FFFD itself is a code point like any other, and the carets find the byte behind it.
    CHECK(parse_equation(replacement).inputs[0].items[0].label == replacement);
    const std::string both = test::message(
        "the text is not valid UTF-8", std::string(replacement) + std::string(replacement), " ^");
    CHECK_THROWS_WITH_AS(parse_equation("\xEF\xBF\xBD\xFF"), both.c_str(), SyntaxError);
  }

  TEST_CASE("messages begin with the function that was called") {
    CHECK_THROWS_WITH_AS(parse_equation("i%", "einsum_into"),
                         "einsum_into: unknown character '%' (U+0025)\n    i%\n     ^",
                         SyntaxError);
  }

  TEST_CASE("mismatches carry the name of a rule") {
    Equation equation;
    const auto mismatch = match_equation(U"ij%", equation);
    REQUIRE(mismatch.has_value());
    CHECK(mismatch->where == 2);
    CHECK(mismatch->expected == "the end");
    Term term;
    CHECK(match_term(U"[a", term)->expected == "']'");
    CHECK(match_term(U"[a,", term)->expected == "a label or '...'");
    CHECK_FALSE(match_term(U"[a]", term).has_value());
  }
}

}  // namespace einkern
