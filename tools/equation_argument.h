// SPDX-License-Identifier: Apache-2.0
// The equation of a command line, given first or with -e, told apart from the files.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "options.h"

namespace einkern::tools {

struct EquationArgument {
  std::string equation;            // follows the grammar
  std::vector<std::string> files;  // the other arguments
};

/// Declares `-e, --equation`.
void add_equation_option(Options& options, std::optional<std::string>& equation);

/// Takes the equation from the option, or else from the front of the positional arguments. Errors:
/// SyntaxError with carets; UsageError where a shell has eaten the equation's arrow or a file
/// stands in its place.
EquationArgument take_equation(const Options& options, const std::optional<std::string>& equation,
                               std::vector<std::string> positional);

}  // namespace einkern::tools
