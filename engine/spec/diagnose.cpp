// SPDX-License-Identifier: Apache-2.0
// From the place where a text stops following the grammar to a message that says what is wrong.
#include "diagnose.h"

#include <fmt/format.h>

#include <algorithm>
#include <unordered_set>

namespace einkern {
namespace {

constexpr std::size_t kNowhere = std::u32string_view::npos;

// What stands before the place of failure, which follows the grammar.
struct Before {
  std::size_t bracket = kNowhere;  // the open one
  std::size_t arrow = kNowhere;
};

Before look_back(std::u32string_view text, std::size_t where) {
  Before before;
  for (std::size_t i = 0; i < where; ++i) {
    if (text[i] == U'[') before.bracket = i;
    if (text[i] == U']') before.bracket = kNowhere;
    if (text[i] == U'>') before.arrow = i - 1;
  }
  return before;
}

// The dots around a place, blanks between them included. Three good ones may stand in front, as in
// `... .`: the message is about all of them.
Span dots_around(std::u32string_view text, std::size_t where) {
  const std::size_t before = text.substr(0, where).find_last_not_of(U" .");
  const std::size_t begin = text.find(U'.', before == kNowhere ? 0 : before + 1);
  const std::size_t behind = std::min(text.find_first_not_of(U" .", where), text.size());
  const std::size_t end = text.substr(0, behind).find_last_of(U'.') + 1;
  return {begin, end - begin};
}

std::string describe(char32_t c) {
  std::string number = fmt::format("U+{:04X}", static_cast<std::uint32_t>(c));
  if (is_invisible(c)) return number;
  return fmt::format("'{}' ({})", encode_utf8({&c, 1}), number);
}

class Diagnosis {
 public:
  Diagnosis(std::string_view text, std::u32string_view code_points, const Mismatch& mismatch,
            TextKind kind, const char* function)
      : text_(text),
        points_(code_points),
        expected_(mismatch.expected),
        where_(std::min(points_.find_first_not_of(U' ', mismatch.where), points_.size())),
        before_(look_back(points_, mismatch.where)),
        kind_(kind),
        function_(function) {}

  [[noreturn]] void fail() const {
    if (expected_ == "three dots") fail_dots();
    if (expected_ == "'->'") fail_hyphen();
    if (where_ == points_.size()) fail_open();
    const char32_t c = points_[where_];
    if (before_.bracket != kNowhere) fail_in_bracket(c);
    switch (c) {
      case U'>':
        fail_head();
      case U']':
        say("']' without '['", here());
      case U',':
        if (kind_ == TextKind::term) say("one term expected, but ',' follows it", here());
        say("the output is one term, but ',' follows it", here());
      case U'-':
        fail_arrow();
      default:
        fail_character(c);
    }
  }

 private:
  using Spans = std::vector<Span>;

  [[noreturn]] void say(const std::string& fact, const Spans& spans) const {
    fail_at<SyntaxError>(function_, fact, text_, spans);
  }
  Spans here() const { return {{where_, 1}}; }

  [[noreturn]] void fail_dots() const {
    const Span span = dots_around(points_, where_);
    const std::u32string_view run = points_.substr(span.begin, span.size);
    if (run.find(U' ') != kNowhere) say("an ellipsis is three adjacent dots", {span});
    say(fmt::format("an ellipsis is three dots, not {}", run.size()), {span});
  }

  // A '-' that no '>' follows.
  [[noreturn]] void fail_hyphen() const {
    const std::size_t hyphen = points_.rfind(U'-', where_ == 0 ? 0 : where_ - 1);
    if (where_ < points_.size() && points_[where_] == U'>') {
      say("the arrow '->' is split by blanks", {{hyphen, where_ - hyphen + 1}});
    }
    say("'-' without '>': the arrow is '->'", {{hyphen, 1}});
  }

  // A '>' that no '-' stands before.
  [[noreturn]] void fail_head() const {
    if (where_ + 1 < points_.size() && points_[where_ + 1] == U'-') {
      say("the arrow is '->', not '>-'", {{where_, 2}});
    }
    say("'>' without '-': the arrow is '->'", here());
  }

  // A '-' behind everything that may stand before an end.
  [[noreturn]] void fail_arrow() const {
    const std::size_t head = std::min(points_.find_first_not_of(U' ', where_ + 1), points_.size());
    if (head == points_.size() || points_[head] != U'>') {
      say("'-' without '>': the arrow is '->'", here());
    }
    const Span arrow{where_, head - where_ + 1};
    if (kind_ == TextKind::term) say("one term expected, but an arrow follows it", {arrow});
    say("an equation has one arrow", {{before_.arrow, 2}, arrow});
  }

  // Only an open bracket keeps a text from ending.
  [[noreturn]] void fail_open() const {
    EINKERN_CHECK(before_.bracket != kNowhere);
    say("'[' without ']'", {{before_.bracket, 1}});
  }

  [[noreturn]] void fail_in_bracket(char32_t c) const {
    switch (c) {
      case U'[':
        say("brackets do not nest", {{before_.bracket, 1}, {where_, 1}});
      case U']':
      case U',':
        say("',' in brackets stands between two labels", {comma()});
      case U'-':
      case U'>':
        fail_open();
      default:
        fail_character(c);
    }
  }
  // The comma at fault: the one here, or the one before a bracket that closes.
  Span comma() const {
    if (points_[where_] == U',') return {where_, 1};
    return {points_.rfind(U',', where_), 1};
  }

  [[noreturn]] void fail_character(char32_t c) const {
    if (is_name_character(c)) {
      say(fmt::format("{} is no label outside brackets, where names such as [k2] stand",
                      describe(c)),
          here());
    }
    if (is_invisible(c)) {
      say(fmt::format("unknown character {}; only U+0020 is a blank", describe(c)), here());
    }
    say("unknown character " + describe(c), here());
  }

  std::string_view text_;
  std::u32string_view points_;
  const std::string& expected_;
  std::size_t where_;
  Before before_;
  TextKind kind_;
  const char* function_;
};

void check_ellipsis(const Equation& equation, const Term& term, const char* function) {
  const TermItem* first = nullptr;
  for (const TermItem& item : term.items) {
    if (!item.is_ellipsis()) continue;
    if (first != nullptr) {
      fail_at<SyntaxError>(function, "two ellipses in one term", equation.text,
                           {first->span, item.span});
    }
    first = &item;
  }
}

}  // namespace

void check_ellipses(const Equation& equation, const char* function) {
  for (const Term& term : equation.inputs) check_ellipsis(equation, term, function);
  if (equation.output) check_ellipsis(equation, *equation.output, function);
}

void fail_mismatch(std::string_view text, std::u32string_view code_points, const Mismatch& mismatch,
                   TextKind kind, const char* function) {
  Diagnosis(text, code_points, mismatch, kind, function).fail();
}

void fail_unknown_output(const Equation& equation, const TermItem& label, const char* function,
                         std::string_view quote) {
  constexpr std::size_t kMostListed = 20;
  std::unordered_set<std::string_view> seen;
  std::string list;
  for (const Term& term : equation.inputs) {
    for (const TermItem& item : term.items) {
      if (item.is_ellipsis() || seen.size() > kMostListed || !seen.insert(item.label).second) {
        continue;
      }
      list += list.empty() ? "" : ", ";
      list += seen.size() > kMostListed ? "..." : fmt::format("{0}{1}{0}", quote, item.label);
    }
  }
  fail_at<SyntaxError>(function,
                       fmt::format("output label {0}{1}{0} is in no input, whose labels are {2}",
                                   quote, label.label, list.empty() ? "none" : list),
                       equation.text, {label.span});
}

}  // namespace einkern
