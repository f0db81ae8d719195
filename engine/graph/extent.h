// SPDX-License-Identifier: Apache-2.0
// Sizes that may be unknown until a plan is called: a non-negative number, or a dyn symbol.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace einkern::graph {

/// Is this size a symbol? Sizes of a node's type are numbers or symbols, nothing else.
constexpr bool is_dyn(std::int64_t extent) noexcept { return extent < 0; }

/// The symbol of this name, as a negative number; the same name gives the same number.
std::int64_t dyn_extent(std::string_view name);

/// Is this number, which a caller gave, that of a symbol? Other negative numbers are no sizes.
bool is_symbol(std::int64_t extent);

/// `"64"`, or the symbol's name.
std::string extent_text(std::int64_t extent);

/// Product of two sizes; a symbol named `a*b` when one of them is a symbol.
std::int64_t multiply_extents(std::int64_t a, std::int64_t b);

/// The size that both become when axes meet elementwise: equal ones stay, 1 stretches, a symbol
/// gives way to a number (the call checks it). False when they cannot meet.
bool unify_extents(std::int64_t a, std::int64_t b, std::int64_t* result);

}  // namespace einkern::graph
