// SPDX-License-Identifier: Apache-2.0
// The grammar of programs: code points in, statements or the place of failure out.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

#include "tree_builder.h"

namespace einkern::program {

/// Where a text stops following the grammar, and what could have stood there.
struct Mismatch {
  std::size_t where = 0;  // in code points; the length of the text when it ends too early
  std::string expected;   // name of a grammar rule
};

/// Hands the tokens of a program to the builder. Brackets must not nest deeper than the stack
/// allows: the caller checks.
std::optional<Mismatch> match_program(std::u32string_view points, TreeBuilder& builder);

/// Can the code point be a part of a name; of its first letter?
bool is_name_part(char32_t c) noexcept;
bool is_name_start(char32_t c) noexcept;

}  // namespace einkern::program
