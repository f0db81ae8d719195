// SPDX-License-Identifier: Apache-2.0
// Comments and blank lines of a text, given to the statements they stand at.
#pragma once

#include "ast.h"
#include "source.h"

namespace einkern::program {

/// Fills `above`, `beside` and `below`. A comment inside the brackets of a statement goes above it.
/// Blank lines become one; none stands at the top or the bottom.
void attach_comments(const Source& source, Tree& tree);

}  // namespace einkern::program
