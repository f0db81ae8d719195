// SPDX-License-Identifier: Apache-2.0
// The words of this folder as rows for programs (.ein).
#pragma once

#include <optional>

#include "../engine/program/words.h"
#include "mask.h"

namespace einkern {

/// Operators and words of ops.
const WordTable& ops_words();

/// How the argument `name` places a causal mask: true, a name of an alignment, or an offset;
/// nothing for false and when it is not given.
std::optional<Causal> placement(const Arguments& arguments, const char* function, const char* name);

}  // namespace einkern
