// SPDX-License-Identifier: Apache-2.0
// Random bytes and damaged equations either parse or raise einkern::Error, and nothing else
// happens.
#include <doctest/doctest.h>

#include <random>
#include <set>

#include "../../../engine/base/error.h"
#include "../../../engine/spec/spec.h"
#include "../../support/sanitizer.h"

namespace einkern {
namespace {

// What a text led to: "parsed", or the fact of its message up to the first quote or digit.
std::string outcome(const std::string& text) {
  try {
    const Equation equation = parse_equation(text);
    REQUIRE(parse_equation(equation.str()).str() == equation.str());
    std::vector<std::size_t> ranks;
    for (const Term& term : equation.inputs) ranks.push_back(term.items.size());
    resolve(equation, ranks);
    return "parsed";
  } catch (const Error& error) {
    const std::string what = error.what();
    return what.substr(0, what.find_first_of("'0123456789\n", what.find(':') + 3));
  }
}

constexpr std::string_view kValid[] = {
    "ij,jk->ik",
    "bhqd,bhkd->bhqk",
    "...ij,...jk->...ik",
    "[batch head] q,[head q]->q",
    "ii->i",
    " i , j -> i j ",
    "[... m2 k2],[n2]",
    "\xC3\xA4\xCE\xB1,\xCE\xB1->",
    "a,b,c,d,e->abcde",
    "->",
    "",
    "[a,b,c]d[e f],...[g]",
};

}  // namespace

TEST_SUITE("spec") {
  TEST_CASE("random bytes") {
    std::mt19937 random(1);
    std::set<std::string> outcomes;
    for (int round = 0; round < test::fewer_if_sanitized(10000); ++round) {
      std::string text(random() % 40, '\0');
      for (char& byte : text) byte = static_cast<char>(random());
      outcomes.insert(outcome(text));
    }
    CHECK(outcomes.size() >= 3);
  }

  TEST_CASE("random characters of the language") {
    constexpr std::string_view kAlphabet = "aabijkZ,,--->>...  [[]]2_%\t\xC3\xA4";
    std::mt19937 random(2);
    std::set<std::string> outcomes;
    for (int round = 0; round < test::fewer_if_sanitized(20000); ++round) {
      std::string text(random() % 12, '\0');
      for (char& byte : text) byte = kAlphabet[random() % kAlphabet.size()];
      outcomes.insert(outcome(text));
    }
    // Nearly every kind of message comes up.
    CHECK(outcomes.contains("parsed"));
    CHECK(outcomes.size() >= 14);
  }

  TEST_CASE("damaged equations") {
    std::mt19937 random(3);
    int parsed = 0, refused = 0;
    for (int round = 0; round < test::fewer_if_sanitized(20000); ++round) {
      std::string text(kValid[random() % std::size(kValid)]);
      for (std::size_t damage = 1 + random() % 3; damage > 0; --damage) {
        const std::size_t at = random() % (text.size() + 1);
        switch (random() % 4) {
          case 0:
            text.insert(at, 1, static_cast<char>(random()));
            break;
          case 1:
            text.erase(at, 1 + random() % 3);
            break;
          case 2:
            text.insert(at, text.substr(random() % (text.size() + 1), random() % 6));
            break;
          default:
            if (at < text.size()) text[at] = ",->.[] ai"[random() % 9];
        }
      }
      (outcome(text) == "parsed" ? parsed : refused) += 1;
    }
    CHECK(parsed > test::fewer_if_sanitized(1000));
    CHECK(refused > test::fewer_if_sanitized(1000));
  }

  TEST_CASE("random terms") {
    std::mt19937 random(4);
    for (int round = 0; round < test::fewer_if_sanitized(10000); ++round) {
      std::string text(random() % 10, '\0');
      for (char& byte : text) byte = "abcq[] ,.2->"[random() % 12];
      try {
        parse_term(text, "named");
      } catch (const SyntaxError&) {
      }
    }
  }
}

}  // namespace einkern
