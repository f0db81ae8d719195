// SPDX-License-Identifier: Apache-2.0
// Problems of the benchmark: an equation and shapes, from the built-in sets or from files.
#pragma once

#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "../engine/base/dtype.h"
#include "../engine/base/layout.h"
#include "../engine/plan/path.h"
#include "exit_code.h"

namespace einkern::tools {

/// An equation over operands of these shapes.
struct Problem {
  std::string name;
  std::string equation;
  std::vector<Shape> shapes;
  DType dtype = f32;  // f16, bf16: of the last operand; the others and the output are f32
  PathChoice path;
};

/// A file of tools/bench that is part of the program.
struct ProblemSet {
  std::string_view name, text;
};
/// contractions, gemm, permutations, batches (together the default), layouts; and attention.
std::span<const ProblemSet> problem_sets();
/// tools/bench/blocks.ein: a program of 40 lines.
std::string_view program_text();

/// The problems of a built-in set, of all that make the default (`default`), or of the file of this
/// name: lines `name<TAB>equation<TAB>a=48,b=28`, perhaps a fourth field with a dtype, which
/// otherwise is `dtype`; sizes of one-letter labels; `#` begins a comment. IoError naming the file
/// and line.
std::vector<Problem> read_problems(const std::string& source, DType dtype);

/// The text of the built-in set or of the file of this name. IoError when there is neither.
std::string problem_text(const std::string& source);

/// Whether a name has a match of the regular expression (ECMAScript). UsageError, beginning with
/// `option`, for what is none.
std::function<bool(const std::string&)> name_matcher(const std::string& option,
                                                     const std::string& expression);

/// Those of the problems, of any kind, whose names match; UsageError when none does.
template <class Named>
std::vector<Named> select_named(const std::string& option, const std::string& expression,
                                std::vector<Named> problems) {
  const auto matches = name_matcher(option, expression);
  std::erase_if(problems, [&](const Named& problem) { return !matches(problem.name); });
  if (problems.empty()) {
    throw UsageError(option + ": no problem's name has a match of '" + expression + "'");
  }
  return problems;
}

}  // namespace einkern::tools
