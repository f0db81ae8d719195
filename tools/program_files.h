// SPDX-License-Identifier: Apache-2.0
// Programs of a command line: a file, or `-` for standard input.
#pragma once

#include <string>

#include "../engine/program/program.h"

namespace einkern::tools {

/// SyntaxError, IoError.
Program load_program(const std::string& file);

/// The text alone.
std::string load_program_text(const std::string& file);

/// How messages call the file.
std::string program_name(const std::string& file);

}  // namespace einkern::tools
