// SPDX-License-Identifier: Apache-2.0
// UTF-8 to code points and back, and error messages with carets under a text.
#include "caret.h"

#include <algorithm>

namespace einkern {
namespace {

constexpr char32_t kReplacement = U'\uFFFD';
constexpr std::size_t kShownCodePoints = 200;

// Would this code point break the line or the terminal that shows it?
bool is_control(char32_t c) noexcept {
  return c < 0x20 || (c >= 0x7F && c < 0xA0) || c == 0x2028 || c == 0x2029;
}

bool is_scalar_value(char32_t c) noexcept { return c < 0xD800 || (c >= 0xE000 && c <= 0x10FFFF); }

struct Decoded {
  char32_t code_point = kReplacement;
  std::size_t bytes = 1;
};

// The code point at the front of a non-empty text. Overlong forms and surrogates are invalid.
Decoded decode_front(std::string_view text) noexcept {
  const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(text[i]); };
  const unsigned char lead = byte(0);
  if (lead < 0x80) return {lead, 1};
  const std::size_t length = lead >= 0xF0 ? 4 : lead >= 0xE0 ? 3 : 2;
  if (lead < 0xC2 || lead > 0xF4 || text.size() < length) return {};
  char32_t code_point = lead & (0x7Fu >> length);
  for (std::size_t i = 1; i < length; ++i) {
    if ((byte(i) & 0xC0) != 0x80) return {};
    code_point = code_point << 6 | (byte(i) & 0x3Fu);
  }
  constexpr char32_t kSmallest[] = {0, 0, 0x80, 0x800, 0x10000};
  if (code_point < kSmallest[length] || !is_scalar_value(code_point)) return {};
  return {code_point, length};
}

}  // namespace

std::u32string decode_utf8(std::string_view text) {
  std::u32string points;
  points.reserve(text.size());
  while (!text.empty()) {
    const auto [code_point, bytes] = decode_front(text);
    points += code_point;
    text.remove_prefix(bytes);
  }
  return points;
}

std::string encode_utf8(std::u32string_view text) {
  std::string bytes;
  bytes.reserve(text.size());
  for (char32_t c : text) {
    if (!is_scalar_value(c)) c = kReplacement;
    const auto continuation = [c](int shift) {
      return static_cast<char>(0x80 | (c >> shift & 0x3F));
    };
    if (c < 0x80) {
      bytes += static_cast<char>(c);
    } else if (c < 0x800) {
      bytes += {static_cast<char>(0xC0 | c >> 6), continuation(0)};
    } else if (c < 0x10000) {
      bytes += {static_cast<char>(0xE0 | c >> 12), continuation(6), continuation(0)};
    } else {
      bytes +=
          {static_cast<char>(0xF0 | c >> 18), continuation(12), continuation(6), continuation(0)};
    }
  }
  return bytes;
}

std::string with_carets(std::string_view message, std::string_view text,
                        const std::vector<Span>& spans) {
  std::u32string shown = decode_utf8(text);
  std::replace_if(shown.begin(), shown.end(), is_control, kReplacement);

  std::u32string carets;
  for (const Span& span : spans) {
    const std::size_t begin = std::min(span.begin, shown.size());
    const std::size_t room = std::max<std::size_t>(shown.size() - begin, 1);
    const std::size_t size = std::clamp<std::size_t>(span.size, 1, room);
    carets.resize(std::max(carets.size(), begin + size), U' ');
    std::fill_n(carets.begin() + static_cast<std::ptrdiff_t>(begin), size, U'^');
  }

  if (shown.size() > kShownCodePoints) {
    const std::size_t focus = spans.empty() ? 0 : std::min(spans.front().begin, shown.size());
    const std::size_t begin =
        std::min(focus - std::min(focus, kShownCodePoints / 2), shown.size() - kShownCodePoints);
    const std::u32string front = begin > 0 ? U"..." : U"";
    const std::u32string back = begin + kShownCodePoints < shown.size() ? U"..." : U"";
    // A caret one past the end of the text stays in the window.
    carets.resize(std::max(carets.size(), begin), U' ');
    carets =
        std::u32string(front.size(), U' ') + carets.substr(begin, kShownCodePoints + back.empty());
    shown = front + shown.substr(begin, kShownCodePoints) + back;
    carets.resize(carets.find_last_of(U'^') + 1);
  }

  std::string result(message);
  result += "\n    " + encode_utf8(shown);
  if (!carets.empty()) result += "\n    " + encode_utf8(carets);
  return result;
}

}  // namespace einkern
