// SPDX-License-Identifier: Apache-2.0
// `einkern fmt`: the canonical form of a program.
#include <fmt/format.h>

#include <string>
#include <vector>

#include "../engine/program/parse.h"
#include "../engine/program/print.h"
#include "commands.h"
#include "exit_code.h"
#include "files.h"
#include "program_files.h"

namespace einkern::tools {

void fmt_command(const std::vector<std::string>& arguments) {
  Options options({
      .command = "fmt",
      .usage = "FILE.ein [OPTIONS]",
      .summary =
          "Prints the canonical form of a program; names are not looked up. - is standard input.",
      .examples = {"einkern fmt window.ein", "einkern fmt window.ein --write",
                   "einkern fmt window.ein --check"},
  });
  bool write = false, check = false;
  options.flag("-w,--write", write, "replace the file");
  options.flag("--check", check, "print nothing; exit code 1 unless the file has this form");
  const auto positional = options.parse(arguments);
  if (!positional) return;
  if (positional->size() != 1) {
    options.refuse(fmt::format("one program is needed, not {}", positional->size()));
  }
  const std::string& file = positional->front();
  if (write && check) options.refuse("--write and --check exclude each other");
  if (write && file == "-") options.refuse("--write needs a file, not standard input");

  const std::string text = load_program_text(file);
  const std::string canonical =
      program::print_tree(program::parse_tree(program::Source(program_name(file), text)));
  if (check && canonical != text) {
    throw CheckFailed(fmt::format("fmt: '{}' is not in canonical form", program_name(file)));
  }
  if (check) return;
  if (!write) return print(canonical);
  if (canonical != text) write_text_output(file, canonical);
}

}  // namespace einkern::tools
