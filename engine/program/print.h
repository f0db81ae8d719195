// SPDX-License-Identifier: Apache-2.0
// A tree to its canonical text: what `parse_tree` reads back as the same tree.
#pragma once

#include <string>

#include "ast.h"

namespace einkern::program {

/// One statement a line, one blank around operators, lines over 100 columns broken at commas.
std::string print_tree(const Tree& tree);

/// One expression on one line.
std::string print_expression(const Node& node);

}  // namespace einkern::program
