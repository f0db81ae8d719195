// SPDX-License-Identifier: Apache-2.0
// Accepted texts: their terms, their spans, their canonical form, and the bounds.
#include "../../../engine/spec/equation.h"

#include <doctest/doctest.h>

#include <random>

#include "../../../engine/base/error.h"
#include "../../../engine/spec/grammar.h"

namespace einkern {
namespace {

using Names = std::vector<std::string>;

Names labels_of(const Term& term) {
  Names names;
  for (const TermItem& item : term.items) {
    names.push_back(item.is_ellipsis() ? "..." : item.label);
  }
  return names;
}

struct Terms {
  std::vector<Names> inputs;
  std::optional<Names> output;
  friend bool operator==(const Terms&, const Terms&) = default;
};

Terms terms_of(const Equation& equation) {
  Terms terms;
  for (const Term& term : equation.inputs) terms.inputs.push_back(labels_of(term));
  if (equation.output) terms.output = labels_of(*equation.output);
  return terms;
}

Terms parsed(std::string_view text) { return terms_of(parse_equation(text)); }

// A random equation as terms, and one of the many texts that mean it.
class RandomEquation {
 public:
  explicit RandomEquation(std::uint32_t seed) : random_(seed) {
    const std::size_t operands = 1 + draw(4);
    Names pool;
    for (std::size_t p = 0; p < operands; ++p) {
      terms.inputs.push_back(draw_term(draw(6), [&] { return draw_name(); }));
      for (const std::string& name : terms.inputs.back()) {
        if (name != "...") pool.push_back(name);
      }
    }
    if (draw(3) > 0) {
      const auto from_pool = [&] { return pool[draw(pool.size())]; };
      terms.output = draw_term(pool.empty() ? 0 : draw(4), from_pool);
    }
    for (std::size_t p = 0; p < operands; ++p) {
      if (p > 0) text += ",";
      write(terms.inputs[p]);
    }
    if (!terms.output) return;
    text += "->";
    write(*terms.output);
  }

  Terms terms;
  std::string text;
  std::size_t ellipses = 0, groups = 0, wide = 0;  // what this equation covers

 private:
  std::size_t draw(std::size_t below) { return below == 0 ? 0 : random_() % below; }

  Names draw_term(std::size_t size, const auto& draw_label) {
    Names names;
    for (std::size_t i = 0; i < size; ++i) names.push_back(draw_label());
    if (draw(3) == 0) {
      names.insert(names.begin() + static_cast<std::ptrdiff_t>(draw(names.size() + 1)), "...");
      ++ellipses;
    }
    return names;
  }

  std::string draw_name() {
    static const Names kNames = {"a",
                                 "b",
                                 "Z",
                                 "q",
                                 "batch",
                                 "k2",
                                 "7",
                                 "_",
                                 "head_dim",
                                 "\xC3\xA4",
                                 "\xCE\xB1",
                                 "17",
                                 "qq",
                                 "\xF0\x9F\x90\x99",
                                 "\xCE\xB1\xCE\xB2",
                                 "\xEF\xBF\xBD"};
    return kNames[draw(kNames.size())];
  }

  // Letters stand in brackets or not, names always in brackets, groups of any length side by side.
  void write(const Names& names) {
    blanks();
    bool open = false;
    for (const std::string& name : names) {
      wide += name.size() > 1 && name != "...";
      const bool letter = name == "..." || is_letter(name);
      if (open && (draw(4) == 0 || (letter && draw(2) == 0))) {
        text += "]";
        open = false;
      } else if (open) {
        text += draw(2) == 0 ? " " : ",";
      }
      blanks();
      if (!open && (!letter || draw(3) == 0)) {
        text += "[";
        ++groups;
        open = true;
        blanks();
      }
      text += name;
      blanks();
    }
    if (open) text += "]";
    blanks();
  }
  void blanks() { text.append(draw(3) == 0 ? draw(3) : 0, ' '); }

  std::mt19937 random_;
};

}  // namespace

TEST_SUITE("spec") {
  TEST_CASE("terms of letters, names and ellipses") {
    CHECK(parsed("ij,jk->ik") == Terms{{{"i", "j"}, {"j", "k"}}, Names{"i", "k"}});
    CHECK(parsed(" i j , j k  ->  i k ") == Terms{{{"i", "j"}, {"j", "k"}}, Names{"i", "k"}});
    CHECK(parsed("") == Terms{{{}}, {}});
    CHECK(parsed("->") == Terms{{{}}, Names{}});
    CHECK(parsed(" , -> ") == Terms{{{}, {}}, Names{}});
    CHECK(parsed(",,") == Terms{{{}, {}, {}}, {}});
    CHECK(parsed("a...b->...") == Terms{{{"a", "...", "b"}}, Names{"..."}});
    CHECK(parsed("[batch head] q") == Terms{{{"batch", "head", "q"}}, {}});
    CHECK(parsed("[batch,head]q[k2]") == Terms{{{"batch", "head", "q", "k2"}}, {}});
    CHECK(parsed("[ batch ,head...q ]") == Terms{{{"batch", "head", "...", "q"}}, {}});
    CHECK(parsed("[q]") == parsed("q"));
    CHECK(parsed("[]") == parsed(""));
    CHECK(parsed("ii->ii") == Terms{{{"i", "i"}}, Names{"i", "i"}});
    CHECK(parsed("[m2,k2],[n2,k2]->[n2,m2]") ==
          Terms{{{"m2", "k2"}, {"n2", "k2"}}, Names{"n2", "m2"}});
    CHECK(parsed("\xC3\xA4\xCE\xB1\xF0\x9F\x90\x99") ==
          Terms{{{"\xC3\xA4", "\xCE\xB1", "\xF0\x9F\x90\x99"}}, {}});
    CHECK(parsed("\xC2\xA1") == Terms{{{"\xC2\xA1"}}, {}});
    // No normalisation: a letter and a combining mark are two labels.
    CHECK(parsed("e\xCC\x81").inputs[0].size() == 2);
  }

  TEST_CASE("spans count code points") {
    const Equation equation = parse_equation(" \xC3\xA4i, [batch q] ,->i");
    REQUIRE(equation.inputs.size() == 3);
    CHECK(equation.inputs[0].span.begin == 1);
    CHECK(equation.inputs[0].span.size == 2);
    CHECK(equation.inputs[0].items[1].span.begin == 2);
    CHECK(equation.inputs[1].span.begin == 5);
    CHECK(equation.inputs[1].span.size == 9);
    CHECK(equation.inputs[1].items[0].span.begin == 6);
    CHECK(equation.inputs[1].items[0].span.size == 5);
    CHECK(equation.inputs[2].span.begin == 16);
    CHECK(equation.inputs[2].span.size == 0);
    CHECK(equation.output->span.begin == 18);
    CHECK(equation.text == " \xC3\xA4i, [batch q] ,->i");
  }

  TEST_CASE("canonical form") {
    CHECK(parse_equation(" i j , [j] k -> k i").str() == "ij,jk->ki");
    CHECK(parse_equation("[batch,head] q...,q").str() == "[batch head q ...],q");
    CHECK(parse_equation(" -> ").str() == "->");
    CHECK(parse_equation("[7]i").str() == "[7 i]");
    CHECK(parse_equation("[]").str() == "");
  }

  TEST_CASE("single terms") {
    CHECK(parse_term("bhqd", "named") == Names{"b", "h", "q", "d"});
    CHECK(parse_term("[batch head] q", "named") == Names{"batch", "head", "q"});
    CHECK(parse_term(" ", "named") == Names{});
    CHECK(parse_term("", "named") == Names{});
  }

  TEST_CASE("random equations parse to their terms, and so does their canonical form") {
    std::size_t ellipses = 0, groups = 0, wide = 0, implicit = 0, scalars = 0;
    for (std::uint32_t seed = 0; seed < 5000; ++seed) {
      const RandomEquation random(seed);
      CAPTURE(random.text);
      const Equation equation = parse_equation(random.text);
      REQUIRE(terms_of(equation) == random.terms);
      const Equation again = parse_equation(equation.str());
      REQUIRE(terms_of(again) == random.terms);
      REQUIRE(again.str() == equation.str());
      ellipses += random.ellipses;
      groups += random.groups;
      wide += random.wide;
      implicit += !random.terms.output;
      scalars += random.terms.inputs[0].empty();
    }
    CHECK(ellipses > 1000);
    CHECK(groups > 1000);
    CHECK(wide > 1000);
    CHECK(implicit > 500);
    CHECK(scalars > 100);
  }

  TEST_CASE("every code point is a label, or refused for a reason") {
    std::size_t labels = 0;
    for (char32_t c = 1; c <= 0x10FFFF; c += c < 0x3100 ? 1 : 61) {
      if (c >= 0xD800 && c < 0xE000) continue;
      const std::string text = encode_utf8({&c, 1});
      const bool structure = c == U' ' || c == U',';
      if (is_letter(c)) {
        const Equation equation = parse_equation(text);
        REQUIRE(equation.inputs[0].items[0].label == text);
        ++labels;
      } else if (!structure) {
        CAPTURE(static_cast<std::uint32_t>(c));
        REQUIRE_THROWS_AS(parse_equation(text), SyntaxError);
      }
    }
    CHECK(labels > 25000);
  }

  TEST_CASE("texts are bounded") {
    const std::string longest(std::size_t{1} << 20, ' ');
    CHECK(parse_equation(longest).inputs.size() == 1);
    CHECK_THROWS_WITH_AS(parse_equation(longest + " "),
                         "einsum: the text has 1048577 bytes, at most 1048576 are read",
                         SyntaxError);
    CHECK_THROWS_WITH_AS(parse_term(longest + " ", "named"),
                         "named: the text has 1048577 bytes, at most 1048576 are read",
                         SyntaxError);

    const std::string commas(65534, ',');
    CHECK(parse_equation(commas).inputs.size() == 65535);
    CHECK_THROWS_WITH_AS(parse_equation(commas + ","),
                         "einsum: the equation has 65536 operands, at most 65535 are read",
                         SyntaxError);

    std::string labels;
    std::size_t count = 0;
    for (char32_t c = 0x3400; count < 65535; ++c) {
      if ((c >= 0xD800 && c < 0xE000) || !is_letter(c)) continue;
      labels += encode_utf8({&c, 1});
      ++count;
    }
    CHECK(parse_equation(labels + labels.substr(0, 3)).inputs[0].items.size() == 65536);
    CHECK_THROWS_WITH_AS(parse_equation(labels + "a"),
                         "einsum: the equation has 65536 different labels, at most 65535 are read",
                         SyntaxError);
  }

  TEST_CASE("a text of a mebibyte is read without recursion") {
    std::string brackets;
    while (brackets.size() + 4 <= (std::size_t{1} << 20)) brackets += "[a ]";
    CHECK(parse_equation(brackets).inputs[0].items.size() == brackets.size() / 4);
    const std::string letters(std::size_t{1} << 20, 'i');
    CHECK(parse_equation(letters).inputs[0].items.size() == letters.size());
    CHECK_THROWS_AS(parse_equation(std::string(std::size_t{1} << 20, '[')), SyntaxError);
    CHECK_THROWS_AS(parse_equation(std::string(std::size_t{1} << 20, '.')), SyntaxError);
    CHECK_THROWS_AS(parse_equation(std::string(std::size_t{1} << 20, '-')), SyntaxError);
  }
}

}  // namespace einkern
