// SPDX-License-Identifier: Apache-2.0
// Texts that make up one program: the one that was named and those it imports.
#pragma once

#include <filesystem>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "ast.h"
#include "source.h"
#include "words.h"

namespace einkern::program {

struct Module;

/// A function that programs define, and the text it stands in.
struct Function {
  const Module* module = nullptr;
  const Statement* statement = nullptr;

  /// Its parameters as those of a word.
  std::vector<Parameter> parameters() const;
};

/// One text with what its names mean.
struct Module {
  Source source;
  Tree tree;
  std::map<std::string, Function, std::less<>> functions = {};  // its own and imported ones
  std::vector<std::string> inputs = {};  // names that it takes from outside, in order of use
  bool declares = false;                 // are inputs declared?
};

/// All texts of a program; the main one first. Never changed once it is made.
struct Modules {
  const Words* words = nullptr;
  std::vector<std::unique_ptr<Module>> all = {};
  Module& main() const { return *all.front(); }
};

/// Parses a text and what it imports, beside `file`, and resolves every name. SyntaxError with
/// file, line and carets; IoError for an import that cannot be read.
Modules load_modules(Source source, const std::optional<std::filesystem::path>& file,
                     const Words& words);

/// The text of a file. IoError.
std::string read_program(const std::filesystem::path& path);

}  // namespace einkern::program
