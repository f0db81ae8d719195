// SPDX-License-Identifier: Apache-2.0
// From the place where a text stops following the grammar to a message that says what is wrong.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "../base/error.h"
#include "grammar.h"

namespace einkern {

enum class TextKind { equation, term };

/// Throws the SyntaxError of a text that does not follow the grammar.
[[noreturn]] void fail_mismatch(std::string_view text, std::u32string_view code_points,
                                const Mismatch& mismatch, TextKind kind, const char* function);

/// Throws the SyntaxError of an output label that no input has; `quote` stands around labels.
[[noreturn]] void fail_unknown_output(const Equation& equation, const TermItem& label,
                                      const char* function, std::string_view quote = "'");

/// SyntaxError when a term of the equation has more than one ellipsis.
void check_ellipses(const Equation& equation, const char* function);

/// `fail<E>` with the text and carets below the message `<function>: <fact>`.
template <class E>
[[noreturn]] void fail_at(const char* function, const std::string& fact, std::string_view text,
                          const std::vector<Span>& spans) {
  fail<E>(with_carets(std::string(function) + ": " + fact, text, spans));
}

}  // namespace einkern
