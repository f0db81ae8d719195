// SPDX-License-Identifier: Apache-2.0
// Programs from files and from standard input.
#include "program_files.h"

#include <iostream>
#include <iterator>

#include "../engine/program/module.h"

namespace einkern::tools {

std::string program_name(const std::string& file) { return file == "-" ? "stdin" : file; }

std::string load_program_text(const std::string& file) {
  if (file != "-") return program::read_program(file);
  std::cin >> std::noskipws;
  return {std::istreambuf_iterator<char>(std::cin), {}};
}

Program load_program(const std::string& file) {
  if (file != "-") return Program::from_file(file);
  return Program::parse(load_program_text(file), program_name(file));
}

}  // namespace einkern::tools
