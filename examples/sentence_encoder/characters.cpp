// SPDX-License-Identifier: Apache-2.0
// Tables of characters, read once from the text that make_unicode.py wrote.
#include "characters.h"

#include <algorithm>
#include <cstdint>
#include <map>
#include <sstream>
#include <stdexcept>
#include <unordered_map>
#include <vector>

#include "unicode_text.h"

namespace sentence {
namespace {

constexpr char32_t kReplacement = 0xfffd;

/// Characters as ranges in increasing order.
class Ranges {
 public:
  void add(char32_t first, char32_t last) { ranges_.push_back({first, last}); }
  bool contains(char32_t c) const {
    const auto after = std::upper_bound(ranges_.begin(), ranges_.end(), c,
                                        [](char32_t x, const Range& r) { return x < r.first; });
    return after != ranges_.begin() && c <= std::prev(after)->last;
  }

 private:
  struct Range {
    char32_t first, last;
  };
  std::vector<Range> ranges_;
};

struct Tables {
  Ranges drop, space, mark, punctuation;
  std::unordered_map<char32_t, std::u32string> fold;

  Tables() {
    std::istringstream lines(kUnicodeText);
    const std::map<std::string, Ranges*> kinds = {
        {"drop", &drop}, {"space", &space}, {"mark", &mark}, {"punctuation", &punctuation}};
    for (std::string line; std::getline(lines, line);) {
      std::istringstream words(line);
      std::string kind;
      words >> kind >> std::hex;
      std::vector<std::uint32_t> numbers;
      for (std::uint32_t number = 0; words >> number;) numbers.push_back(number);
      const auto ranges = kinds.find(kind);
      if (ranges != kinds.end()) {
        ranges->second->add(numbers.at(0), numbers.at(1));
      } else if (kind == "fold") {
        fold[numbers.at(0)] = std::u32string(numbers.begin() + 1, numbers.end());
      } else if (kind == "run") {
        for (std::uint32_t c = numbers.at(0); c <= numbers.at(1); c += numbers.at(2)) {
          fold[c] = std::u32string(1, numbers.at(3) + (c - numbers.at(0)));
        }
      } else if (kind != "#") {
        throw std::logic_error("unicode.txt has a line of kind '" + kind + "'");
      }
    }
  }
};

const Tables& tables() {
  static const Tables kTables;
  return kTables;
}

/// The parts of a Hangul syllable. Source: The Unicode Standard, section 3.12.
std::u32string syllable_parts(char32_t c) {
  constexpr char32_t kSyllables = 0xac00, kLeads = 0x1100, kVowels = 0x1161, kTails = 0x11a7;
  constexpr char32_t kVowelCount = 21, kTailCount = 28;
  const char32_t index = c - kSyllables, tail = index % kTailCount;
  std::u32string parts = {kLeads + index / (kVowelCount * kTailCount),
                          kVowels + index / kTailCount % kVowelCount};
  if (tail > 0) parts += kTails + tail;
  return parts;
}

}  // namespace

std::u32string decode(std::string_view text) {
  std::u32string result;
  for (std::size_t at = 0; at < text.size();) {
    const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(text[at + i]); };
    const unsigned head = byte(0);
    const std::size_t length = head < 0x80   ? 1
                               : head < 0xc2 ? 0
                               : head < 0xe0 ? 2
                               : head < 0xf0 ? 3
                               : head < 0xf5 ? 4
                                             : 0;
    char32_t c = length == 1 ? head : head & (0xffU >> (length + 1));
    bool whole = length > 0 && length <= text.size() - at;
    for (std::size_t i = 1; whole && i < length; ++i) {
      whole = (byte(i) & 0xc0U) == 0x80;
      c = c << 6 | (byte(i) & 0x3fU);
    }
    const bool overlong = (length == 3 && c < 0x800) || (length == 4 && c < 0x10000);
    const bool valid = whole && !overlong && c <= 0x10ffff && (c < 0xd800 || c > 0xdfff);
    result += valid ? c : kReplacement;
    at += valid ? length : 1;
  }
  return result;
}

void append(std::string& text, char32_t c) {
  const auto put = [&](char32_t bits) { text += static_cast<char>(bits); };
  if (c < 0x80) {
    put(c);
  } else if (c < 0x800) {
    put(0xc0 | c >> 6);
    put(0x80 | (c & 0x3f));
  } else {
    if (c < 0x10000) {
      put(0xe0 | c >> 12);
    } else {
      put(0xf0 | c >> 18);
      put(0x80 | (c >> 12 & 0x3f));
    }
    put(0x80 | (c >> 6 & 0x3f));
    put(0x80 | (c & 0x3f));
  }
}

bool is_dropped(char32_t c) { return tables().drop.contains(c); }
bool is_space(char32_t c) { return tables().space.contains(c); }
bool is_punctuation(char32_t c) { return tables().punctuation.contains(c); }

bool is_ideograph(char32_t c) {
  // The blocks that the original tokenizer of BERT names.
  static constexpr char32_t kBlocks[][2] = {
      {0x3400, 0x4dbf},   {0x4e00, 0x9fff},   {0xf900, 0xfaff},   {0x20000, 0x2a6df},
      {0x2a700, 0x2b73f}, {0x2b740, 0x2b81f}, {0x2b820, 0x2ceaf}, {0x2f800, 0x2fa1f}};
  return std::any_of(std::begin(kBlocks), std::end(kBlocks),
                     [&](const auto& block) { return block[0] <= c && c <= block[1]; });
}

std::u32string folded(char32_t c) {
  if (tables().mark.contains(c)) return {};
  if (c >= 0xac00 && c <= 0xd7a3) return syllable_parts(c);
  const auto found = tables().fold.find(c);
  return found == tables().fold.end() ? std::u32string(1, c) : found->second;
}

}  // namespace sentence
