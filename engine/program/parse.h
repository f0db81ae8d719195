// SPDX-License-Identifier: Apache-2.0
// A program text to its tree.
#pragma once

#include "ast.h"
#include "source.h"

namespace einkern::program {

/// Statements as written, comments with them; nothing about what names mean. SyntaxError with file,
/// line and carets.
Tree parse_tree(const Source& source);

}  // namespace einkern::program
