// SPDX-License-Identifier: Apache-2.0
// Text to words, words to pieces.
#include "word_pieces.h"

#include <algorithm>
#include <array>
#include <fstream>
#include <stdexcept>

#include "characters.h"

namespace sentence {
namespace {

constexpr std::size_t kLongestWord = 100;  // in characters
constexpr std::array<std::string_view, 5> kSpecial = {"[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"};

/// Does a character of UTF-8 end before this byte?
bool is_boundary(std::string_view text, std::size_t at) {
  return at == text.size() || (static_cast<unsigned char>(text[at]) & 0xc0U) != 0x80;
}

std::size_t characters_in(std::string_view text) {
  return static_cast<std::size_t>(std::count_if(text.begin(), text.end(), [](char c) {
    return (static_cast<unsigned char>(c) & 0xc0U) != 0x80;
  }));
}

/// The first special piece in the text: its place, or the text's end.
std::size_t find_special(std::string_view text, std::string_view& piece) {
  std::size_t first = text.size();
  for (const std::string_view special : kSpecial) {
    const std::size_t at = text.find(special);
    if (at < first) {
      first = at;
      piece = special;
    }
  }
  return first;
}

}  // namespace

WordPieces::WordPieces(const std::filesystem::path& vocabulary) {
  std::ifstream file(vocabulary, std::ios::binary);
  for (std::string line; std::getline(file, line);) {
    if (line.ends_with('\r')) line.pop_back();
    add(std::move(line));
  }
  if (!file.eof() || numbers_.empty()) {
    throw std::runtime_error("cannot read the vocabulary '" + vocabulary.string() + "'");
  }
  check();
}

WordPieces::WordPieces(const std::vector<std::string>& pieces) {
  for (const std::string& piece : pieces) add(piece);
  check();
}

void WordPieces::add(std::string piece) {
  const auto number = static_cast<std::int64_t>(numbers_.size());
  if (!numbers_.emplace(piece, number).second) {
    throw std::runtime_error("the vocabulary has '" + piece + "' twice");
  }
}

void WordPieces::check() const {
  for (const char* piece : {"[UNK]", "[CLS]", "[SEP]"}) {
    if (numbers_.find(piece) == numbers_.end()) {
      throw std::runtime_error("the vocabulary has no " + std::string(piece));
    }
  }
}

std::vector<std::string> WordPieces::words_of(std::string_view text) const {
  std::vector<std::string> words(1);
  const auto end_word = [&] {
    if (!words.back().empty()) words.emplace_back();
  };
  for (const char32_t c : decode(text)) {
    if (is_dropped(c)) continue;
    const bool alone = is_ideograph(c);
    if (is_space(c) || alone) end_word();
    if (is_space(c)) continue;
    for (const char32_t part : folded(c)) {
      const bool sign = is_punctuation(part);
      if (sign) end_word();
      append(words.back(), part);
      if (sign) end_word();
    }
    if (alone) end_word();
  }
  if (words.back().empty()) words.pop_back();
  return words;
}

void WordPieces::append_pieces(std::vector<std::int64_t>& ids, std::string_view word) const {
  const std::size_t before = ids.size();
  bool known = characters_in(word) <= kLongestWord;
  for (std::size_t at = 0; known && at < word.size();) {
    std::string piece(at == 0 ? "" : "##");
    const std::size_t mark = piece.size();
    piece += word.substr(at);
    auto found = numbers_.end();
    // Shorter and shorter, until a piece is known.
    while (piece.size() > mark && (found = numbers_.find(piece)) == numbers_.end()) {
      do {
        piece.pop_back();
      } while (!is_boundary(word, at + piece.size() - mark));
    }
    known = found != numbers_.end();
    if (known) ids.push_back(found->second);
    at += piece.size() - mark;
  }
  if (known) return;
  ids.resize(before);
  ids.push_back(numbers_.find("[UNK]")->second);
}

std::vector<std::int64_t> WordPieces::encode(std::string_view text, std::size_t limit) const {
  if (limit < 2) throw std::invalid_argument("there is no room for [CLS] and [SEP]");
  std::vector<std::int64_t> ids = {numbers_.find("[CLS]")->second};
  while (!text.empty() && ids.size() < limit) {
    std::string_view special;
    const std::size_t at = find_special(text, special);
    for (const std::string& word : words_of(text.substr(0, at))) append_pieces(ids, word);
    text.remove_prefix(at + special.size());
    if (special.empty()) continue;
    const auto found = numbers_.find(special);
    ids.push_back(found == numbers_.end() ? numbers_.find("[UNK]")->second : found->second);
  }
  if (ids.size() > limit - 1) ids.resize(limit - 1);
  ids.push_back(numbers_.find("[SEP]")->second);
  return ids;
}

}  // namespace sentence
