// SPDX-License-Identifier: Apache-2.0
// Lines of a program text, and messages that point into them.
#include "source.h"

#include <fmt/format.h>

#include <algorithm>

namespace einkern::program {
namespace {

constexpr std::size_t kMostBytes = std::size_t{1} << 20;

}  // namespace

Source::Source(std::string name, std::string_view text) : name_(std::move(name)) {
  if (text.size() > kMostBytes) {
    fail<SyntaxError>(fmt::format("{}: the text has {} bytes, at most {} are read", name_,
                                  text.size(), kMostBytes));
  }
  points_ = decode_utf8(text);
  for (std::size_t at = 0; (at = points_.find(U"\r\n", at)) != points_.npos;) points_.erase(at, 1);
  starts_.push_back(0);
  for (std::size_t i = 0; i < points_.size(); ++i) {
    if (points_[i] == U'\n') starts_.push_back(i + 1);
  }
  if (points_.find(U'\uFFFD') == points_.npos) return;
  std::size_t byte = 0;
  for (std::size_t i = 0; i < points_.size(); ++i) {
    const std::string encoded = encode_utf8({&points_[i], 1});
    if (points_[i] == U'\n' && text[byte] == '\r') ++byte;
    if (text.substr(byte, encoded.size()) != encoded) {
      fail_in<SyntaxError>(*this, {i, 1}, "the text is not valid UTF-8");
    }
    byte += encoded.size();
  }
}

std::size_t Source::line_of(std::size_t place) const {
  return static_cast<std::size_t>(std::upper_bound(starts_.begin(), starts_.end(), place) -
                                  starts_.begin()) -
         1;
}

std::u32string_view Source::line(std::size_t line) const {
  const std::size_t begin = starts_[line];
  const std::size_t end = line + 1 < starts_.size() ? starts_[line + 1] - 1 : points_.size();
  return std::u32string_view(points_).substr(begin, end - begin);
}

std::string Source::text(const Span& span) const {
  return encode_utf8(std::u32string_view(points_).substr(span.begin, span.size));
}

std::string Source::place(std::size_t at) const {
  return fmt::format("{}:{}", name_, line_of(at) + 1);
}

std::string Source::message(const std::string& fact, const std::vector<Span>& spans) const {
  const std::size_t at = std::min(spans.empty() ? 0 : spans.front().begin, points_.size());
  const std::size_t line = line_of(at);
  std::u32string shown(this->line(line));
  std::replace(shown.begin(), shown.end(), U'\t', U' ');
  // Blanks in front of a line say nothing; the caret moves with the text.
  const std::size_t indent = std::min(shown.find_first_not_of(U' '), shown.size());
  const std::size_t begin = starts_[line] + std::min(indent, at - starts_[line]);
  shown.erase(0, begin - starts_[line]);
  std::vector<Span> inside;
  for (const Span& span : spans) {
    const std::size_t end = std::min(span.begin + span.size, begin + shown.size());
    if (span.begin < begin || span.begin > begin + shown.size()) continue;
    inside.push_back({span.begin - begin, end > span.begin ? end - span.begin : 1});
  }
  return with_carets(fmt::format("{}:{}: {}", name_, line + 1, fact), encode_utf8(shown), inside);
}

}  // namespace einkern::program
