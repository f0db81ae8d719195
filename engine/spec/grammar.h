// SPDX-License-Identifier: Apache-2.0
// The grammar of einsum texts as two functions: code points in, terms or the place of failure out.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "equation.h"

namespace einkern {

/// Where a text stops following the grammar, and what could have stood there.
struct Mismatch {
  std::size_t where = 0;  // in code points; the length of the text when it ends too early
  std::string expected;   // name of a grammar rule
};

/// Fills the terms of `equation` from the code points of its text. The terms follow the grammar and
/// nothing more: labels and ellipses may repeat.
std::optional<Mismatch> match_equation(std::u32string_view code_points, Equation& equation);

/// The same for one term without comma and arrow.
std::optional<Mismatch> match_term(std::u32string_view code_points, Term& term);

/// Can the code point be a label by itself: an ASCII letter, or from U+00A1 up no white space?
bool is_letter(char32_t code_point) noexcept;
/// Is the name (UTF-8) one such code point, which needs no brackets?
bool is_letter(std::string_view name);
/// Can it be a part of a name in brackets: a letter, an ASCII digit or an underscore?
bool is_name_character(char32_t code_point) noexcept;
/// Is it white space or a control character: nothing that a message can show between quotes?
bool is_invisible(char32_t code_point) noexcept;

}  // namespace einkern
