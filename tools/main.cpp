// SPDX-License-Identifier: Apache-2.0
// The `einkern` command: its first argument to one of the commands, exceptions to exit codes.
#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <string>
#include <vector>

#include "commands.h"
#include "exit_code.h"
#include "files.h"
#include "interrupt.h"
#include "version.h"

namespace einkern::tools {
namespace {

std::string help_text() {
  std::string text =
      "einkern computes einsums, attention and tensor programs over files of tensors.\n\n"
      "usage: einkern COMMAND ARGUMENTS...\n\ncommands:\n";
  for (const Command& command : kCommands) {
    text += fmt::format("  {:<10} {}\n", command.name, command.summary);
  }
  return text +
         "\n"
         "  einkern COMMAND --help    options and examples of a command\n"
         "  einkern --version         version, compiler, SIMD targets, threads\n\n"
         "examples (quote the equation: to a shell, an unquoted -> writes a file):\n"
         "  einkern eval 'ij,jk->ik' A.npy B.npy -o C.npy\n"
         "  einkern explain 'ab,bc,cd->ad' --shapes 10x1000,1000x10,10x1000\n"
         "  einkern attention Q.npy K.npy V.npy --causal -o O.npy\n"
         "  einkern run window.ein q=Q.npy k=K.npy v=V.npy slope=S.npy -o O.npy\n"
         "  einkern show O.npy\n"
         "  einkern bench 'ik,kj->ij' --shapes 1024x1024,1024x1024\n\n"
         "exit codes: 0 done, 1 a check failed, 2 usage or syntax, 3 bad input, 4 memory\n"
         "limit, 70 internal error, 130 interrupted\n";
}

void run(const std::vector<std::string>& arguments) {
  std::string choices;
  for (const Command& command : kCommands) {
    choices += fmt::format("{}{}", choices.empty() ? "" : ", ", command.name);
  }
  if (arguments.empty()) {
    throw UsageError("no command given; choices: " + choices + " (and --help)");
  }
  const std::string& name = arguments[0];
  if (name == "--help" || name == "-h" || name == "help") return print(help_text());
  if (name == "--version") return print(version_text());
  for (const Command& command : kCommands) {
    if (name == command.name) return command.run({arguments.begin() + 1, arguments.end()});
  }
  throw UsageError(fmt::format("unknown command '{}'; choices: {}", name, choices));
}

}  // namespace
}  // namespace einkern::tools

int main(int argc, char** argv) {
  using namespace einkern::tools;
  ExitCode code = ExitCode::ok;
  try {
    watch_for_interrupts();
    run({argv + std::min(1, argc), argv + argc});
  } catch (...) {
    code = report_current_exception();
  }
  return static_cast<int>(code);
}
