// SPDX-License-Identifier: Apache-2.0
// What names mean, before anything is built: variables, functions, words, labels, inputs.
#pragma once

#include <functional>

#include "module.h"

namespace einkern::program {

/// The names of single values that every program has: inf, nan, pi, true, false.
std::optional<Value> constant(std::string_view name);

/// The arguments of a call by parameter: `result[p]` lists the children that parameter p takes.
/// SyntaxError for too many, missing, repeated and unknown ones.
std::vector<std::vector<std::size_t>> bind_call(const Source& source, const Node& call,
                                                const Word& word);

/// Finds the text of an import statement.
using Import = std::function<const Module&(const Module& importer, const Statement& statement)>;

/// Checks all statements and fills `functions`, `inputs` and `declares`. SyntaxError with carets.
/// A module that is imported holds functions and imports only.
void resolve(Module& module, const Words& words, const Import& import, bool imported);

/// The dtype of that name.
std::optional<DType> dtype_named(std::string_view name);

}  // namespace einkern::program
