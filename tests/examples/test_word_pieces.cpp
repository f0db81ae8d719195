// SPDX-License-Identifier: Apache-2.0
// Text to word pieces, over a small vocabulary whose numbers can be read off.
#include <doctest/doctest.h>

#include <fstream>
#include <stdexcept>
#include <string>
#include <vector>

#include "../../examples/sentence_encoder/characters.h"
#include "../../examples/sentence_encoder/word_pieces.h"
#include "../engine/tensor/io/scratch.h"

using namespace einkern;

namespace {

const std::vector<std::string> kPieces = {"[PAD]",  "[UNK]", "[CLS]", "[SEP]", "[MASK]", "un",
                                          "##able", "##ab",  "cafe",  "naive", ",",      "!",
                                          "北",     "京",    "a",     "##a",   "ss",     "##le",
                                          "able",   "ﬁ",     "##ᅡ",  "가",    "ᄀ",     "e"};

/// Pieces of a text between those that begin and end it, by name.
std::string cut(const std::string& text, std::size_t limit = 256) {
  static const sentence::WordPieces kTokenizer(kPieces);
  const std::vector<std::int64_t> ids = kTokenizer.encode(text, limit);
  REQUIRE(ids.size() >= 2);
  CHECK(ids.front() == 2);
  CHECK(ids.back() == 3);
  std::string names;
  for (std::size_t i = 1; i + 1 < ids.size(); ++i) {
    names += (i == 1 ? "" : " ") + kPieces.at(static_cast<std::size_t>(ids[i]));
  }
  return names;
}

}  // namespace

TEST_SUITE("examples") {
  TEST_CASE("words are cut into the longest pieces from the left") {
    CHECK(cut("unable able un") == "un ##able able un");
    CHECK(cut("unableable") == "un ##able ##able");
    CHECK(cut("unabable") == "un ##ab ##able");
    CHECK(cut("unabe") == "[UNK]");  // un ##ab fits, e does not: the whole word is unknown
    CHECK(cut("x able") == "[UNK] able");
    CHECK(cut("") == "");
    CHECK(cut(" \t\n ") == "");
  }

  TEST_CASE("accents go, letters become small, controls vanish") {
    CHECK(cut("Café CAFÉ cafe\u0301") == "cafe cafe cafe");
    CHECK(cut("NAÏVE") == "naive");
    CHECK(cut("un\u00adable un\u200bable ca\tfe") == "un ##able un ##able [UNK] [UNK]");
    CHECK(cut(std::string("un\0able", 7)) == "un ##able");
    CHECK(cut("un\xff\xc3\x28") == "un [UNK]");  // bytes that are no text vanish, ( stays
    CHECK(cut("un\xff") == "un");
    CHECK(cut("ﬁ") == "ﬁ");  // compatibility forms stay
  }

  TEST_CASE("punctuation and ideographs are words of their own") {
    CHECK(cut("un,able!!") == "un , able ! !");
    CHECK(cut("北京a") == "北 京 a");
    CHECK(cut("a\u3000a\u00a0a\u2028a") == "a a a a");
    CHECK(cut("a\u037ea") == "a [UNK] a");  // the Greek question mark decomposes to a semicolon
  }

  TEST_CASE("Hangul is decomposed") {
    CHECK(sentence::folded(U'한') == std::u32string{0x1112, 0x1161, 0x11ab});
    CHECK(sentence::folded(U'가') == std::u32string{0x1100, 0x1161});
    CHECK(cut("가") == "ᄀ ##ᅡ");
  }

  TEST_CASE("special pieces stand for themselves") {
    CHECK(cut("[CLS] able[MASK]un [sep]") == "[CLS] able [MASK] un [UNK] [UNK] [UNK]");
    CHECK(cut("[PAD][UNK]") == "[PAD] [UNK]");
  }

  TEST_CASE("long words and long texts") {
    CHECK(cut(std::string(100, 'a')).starts_with("a ##a ##a"));
    CHECK(cut(std::string(101, 'a')) == "[UNK]");
    std::string text, accented;
    for (int i = 0; i < 300; ++i) text += "able ";
    for (int i = 0; i < 100; ++i) accented += "á";  // 100 characters, more bytes
    CHECK(cut(accented) == cut(std::string(100, 'a')));
    const sentence::WordPieces tokenizer(kPieces);
    CHECK(tokenizer.encode(text).size() == 256);
    CHECK(tokenizer.encode(text, 10).size() == 10);
    CHECK(tokenizer.encode("able able", 4).size() == 4);
    CHECK(cut("able unable", 4) == "able un");
    CHECK(cut("able", 2) == "");
    CHECK_THROWS_AS(tokenizer.encode("able", 1), std::invalid_argument);
  }

  TEST_CASE("characters of every length, and bytes that are none") {
    CHECK(sentence::decode("aé北\U0001F44D") == U"aé北\U0001F44D");
    for (const char* bad : {"\x80", "\xc0\x80", "\xe0\x80\x80", "\xed\xa0\x80", "\xf4\x90\x80\x80",
                            "\xf8\x88\x80\x80", "\xc3", "\xe5\x8c", "\xf0\x9f\x91"}) {
      CAPTURE(bad);
      const std::u32string got = sentence::decode(bad);
      CHECK(got == std::u32string(got.size(), 0xfffd));
      CHECK_FALSE(got.empty());
    }
    std::string text;
    for (const char32_t c : std::u32string(U"aé北\U0001F44D")) sentence::append(text, c);
    CHECK(text == "aé北\U0001F44D");
  }

  TEST_CASE("vocabularies in files") {
    test::ScratchFolder folder;
    test::write_text(folder / "v", "[UNK]\r\n[CLS]\r\n[SEP]\r\nable\r\n");
    CHECK(sentence::WordPieces(folder / "v").encode("able") == std::vector<std::int64_t>{1, 3, 2});
    const auto refusal = [&](const std::string& text) -> std::string {
      test::write_text(folder / "v", text);
      try {
        sentence::WordPieces pieces(folder / "v");
      } catch (const std::runtime_error& error) {
        return error.what();
      }
      return "none";
    };
    CHECK(refusal("") == "cannot read the vocabulary '" + (folder / "v").string() + "'");
    CHECK(refusal("[UNK]\n[CLS]\n") == "the vocabulary has no [SEP]");
    CHECK(refusal("[UNK]\na\na\n") == "the vocabulary has 'a' twice");
    CHECK_THROWS_AS(sentence::WordPieces(folder / "none"), std::runtime_error);
  }
}
