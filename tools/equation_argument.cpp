// SPDX-License-Identifier: Apache-2.0
// The equation of a command line, given first or with -e, told apart from the files.
#include "equation_argument.h"

#include <fmt/format.h>

#include <filesystem>
#include <utility>

#include "../engine/base/error.h"
#include "../engine/spec/equation.h"
#include "exit_code.h"

namespace einkern::tools {

void add_equation_option(Options& options, std::optional<std::string>& equation) {
  options.value("-e,--equation", "EQUATION", equation,
                "the equation, when it begins with '-'; then all arguments are files");
}

EquationArgument take_equation(const Options& options, const std::optional<std::string>& equation,
                               std::vector<std::string> positional) {
  EquationArgument taken;
  if (equation) {
    taken = {*equation, std::move(positional)};
  } else {
    if (positional.empty()) options.refuse("no equation given");
    taken = {positional.front(), {positional.begin() + 1, positional.end()}};
  }
  const std::string& text = taken.equation;
  if (const std::size_t last = text.find_last_not_of(' '); last != text.npos && text[last] == '-') {
    options.refuse(
        fmt::format("the equation '{}' ends in '-'; put it in quotes, for to a shell an "
                    "unquoted > names an output file",
                    text));
  }
  try {
    parse_equation(text);
  } catch (const SyntaxError&) {
    std::error_code ignored;
    if (!equation && std::filesystem::is_regular_file(text, ignored)) {
      options.refuse(
          fmt::format("'{}' is a file; the equation comes first, as in 'ij,jk->ik'", text));
    }
    throw;
  }
  return taken;
}

}  // namespace einkern::tools
