// SPDX-License-Identifier: Apache-2.0
// An einsum text to an equation, and an equation back to its canonical text.
#include "equation.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "diagnose.h"
#include "grammar.h"
#include "label_ids.h"

namespace einkern {
namespace {

constexpr std::size_t kMostBytes = std::size_t{1} << 20;
constexpr std::size_t kMostLabels = 65535;
constexpr std::size_t kMostOperands = 65535;

std::u32string decode(std::string_view text, const char* function) {
  if (text.size() > kMostBytes) {
    fail<SyntaxError>(fmt::format("{}: the text has {} bytes, at most {} are read", function,
                                  text.size(), kMostBytes));
  }
  std::u32string code_points = decode_utf8(text);
  // An invalid byte became U+FFFD, which is a label when the user wrote it.
  if (code_points.find(U'\uFFFD') == code_points.npos) return code_points;
  std::size_t byte = 0;
  for (std::size_t i = 0; i < code_points.size(); ++i) {
    const std::string encoded = encode_utf8({&code_points[i], 1});
    if (text.substr(byte, encoded.size()) != encoded) {
      fail_at<SyntaxError>(function, "the text is not valid UTF-8", text, {{i, 1}});
    }
    byte += encoded.size();
  }
  return code_points;
}

// What the grammar leaves open: one ellipsis a term, output labels from the inputs, the bounds.
void check(const Equation& equation, const char* function) {
  if (equation.inputs.size() > kMostOperands) {
    fail<SyntaxError>(fmt::format("{}: the equation has {} operands, at most {} are read", function,
                                  equation.inputs.size(), kMostOperands));
  }
  check_ellipses(equation, function);
  LabelIds ids;
  std::size_t labels = 0;
  for (const Term& term : equation.inputs) {
    for (const TermItem& item : term.items) {
      if (item.is_ellipsis() || std::exchange(ids[item.label], 0) != LabelIds::kNone) continue;
      ++labels;
    }
  }
  if (labels > kMostLabels) {
    fail<SyntaxError>(fmt::format("{}: the equation has {} different labels, at most {} are read",
                                  function, labels, kMostLabels));
  }
  if (!equation.output) return;
  for (const TermItem& item : equation.output->items) {
    if (!item.is_ellipsis() && ids[item.label] == LabelIds::kNone) {
      fail_unknown_output(equation, item, function);
    }
  }
}

// `bh...d`, or `[batch ... d]` as soon as one label needs the brackets.
void append(std::string& text, const Term& term) {
  const bool plain = std::all_of(term.items.begin(), term.items.end(), [](const TermItem& item) {
    return item.is_ellipsis() || is_letter(item.label);
  });
  if (!plain) text += '[';
  for (std::size_t i = 0; i < term.items.size(); ++i) {
    if (!plain && i > 0) text += ' ';
    text += term.items[i].is_ellipsis() ? "..." : term.items[i].label;
  }
  if (!plain) text += ']';
}

}  // namespace

bool Term::has_ellipsis() const noexcept {
  return std::any_of(items.begin(), items.end(),
                     [](const TermItem& item) { return item.is_ellipsis(); });
}

std::string Equation::str() const {
  std::string text;
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    if (i > 0) text += ',';
    append(text, inputs[i]);
  }
  if (output) {
    text += "->";
    append(text, *output);
  }
  return text;
}

Equation parse_equation(std::string_view text, const char* function) {
  Equation equation{std::string(text), {}, {}};
  const std::u32string code_points = decode(text, function);
  if (const auto mismatch = match_equation(code_points, equation)) {
    fail_mismatch(text, code_points, *mismatch, TextKind::equation, function);
  }
  check(equation, function);
  return equation;
}

std::vector<std::string> parse_term(std::string_view text, const char* function) {
  Term term;
  const std::u32string code_points = decode(text, function);
  if (const auto mismatch = match_term(code_points, term)) {
    fail_mismatch(text, code_points, *mismatch, TextKind::term, function);
  }
  LabelIds ids;
  std::vector<std::string> labels;
  for (const TermItem& item : term.items) {
    if (item.is_ellipsis()) {
      fail_at<SyntaxError>(function, "a term of labels takes no ellipsis", text, {item.span});
    }
    const auto axis = static_cast<std::int32_t>(labels.size());
    const std::int32_t earlier = std::exchange(ids[item.label], axis);
    if (earlier != LabelIds::kNone) {
      fail_at<SyntaxError>(function, fmt::format("label '{}' stands twice", item.label), text,
                           {term.items[static_cast<std::size_t>(earlier)].span, item.span});
    }
    labels.push_back(item.label);
  }
  return labels;
}

}  // namespace einkern
