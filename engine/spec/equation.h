// SPDX-License-Identifier: Apache-2.0
// An einsum text as a value: terms of labels, nothing about sizes yet.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "../base/caret.h"

namespace einkern {

/// One item of a term: a label, or an ellipsis (then `label` is empty).
struct TermItem {
  std::string label;  // UTF-8; one code point, or any name written inside brackets
  Span span;          // where it stands in the text, in code points
  bool is_ellipsis() const noexcept { return label.empty(); }
};

/// The labels of one operand (or of the output), in axis order.
struct Term {
  std::vector<TermItem> items;
  Span span;  // of the whole term; size 0 for an empty term
  bool has_ellipsis() const noexcept;
};

/// A parsed einsum equation. Made by `parse_equation`; prints itself in canonical form with
/// `str()`.
struct Equation {
  std::string text;  // as the user wrote it; spans count its code points
  std::vector<Term> inputs;
  std::optional<Term> output;  // without an arrow: implicit
  std::string str() const;
};

/// Parses an einsum equation (the language of NumPy, PyTorch and opt_einsum; extensions: labels
/// from U+00A1 up, `[batch head q]` terms of multi-character labels). Errors: SyntaxError with
/// carets; the text is bounded to 1 MiB and 65,535 labels and operands. `function` begins the
/// messages.
Equation parse_equation(std::string_view text, const char* function = "einsum");

/// Parses a single term such as `"bhqd"` or `"[batch head] q"`: what `named` and `t["hk"]` take.
/// No ellipsis, no repeated label. Errors: SyntaxError with carets.
std::vector<std::string> parse_term(std::string_view text, const char* function);

}  // namespace einkern
