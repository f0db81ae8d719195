// SPDX-License-Identifier: Apache-2.0
// Problem files of the benchmark: one equation a line, sizes by label.
#include "bench_problems.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <fstream>
#include <iterator>
#include <map>
#include <regex>
#include <sstream>

#include "../engine/base/error.h"
#include "../engine/spec/equation.h"
#include "values.h"

namespace einkern::tools {
namespace {

constexpr std::array<std::string_view, 4> kDefaultSets = {"contractions", "gemm", "permutations",
                                                          "batches"};

/// `a=48,b=28` as sizes by label.
std::map<std::string, std::int64_t> sizes_of(const std::string& where, std::string_view text) {
  std::map<std::string, std::int64_t> sizes;
  for (const std::string_view part : split_at(text, ',')) {
    const std::size_t equals = part.find('=');
    if (equals == std::string_view::npos || equals == 0) {
      fail<IoError>(fmt::format("{}: '{}' is not label=size", where, part));
    }
    sizes[std::string(part.substr(0, equals))] = parse_integer(where, part.substr(equals + 1), 0);
  }
  return sizes;
}

/// One line of a file.
Problem problem_from(const std::string& where, std::string_view line, DType dtype) {
  const std::vector<std::string_view> fields = split_at(line, '\t');
  if (fields.size() != 3 && fields.size() != 4) {
    fail<IoError>(fmt::format("{}: {} fields, not name, equation, sizes and perhaps a dtype", where,
                              fields.size()));
  }
  if (fields.size() == 4) {
    constexpr DType kFloats[] = {f16, bf16, f32, f64};
    const auto* const found = std::ranges::find(kFloats, fields[3], name_of);
    if (found == std::end(kFloats)) {
      fail<IoError>(fmt::format("{}: '{}' is not f16, bf16, f32 or f64", where, fields[3]));
    }
    dtype = *found;
  }
  const auto sizes = sizes_of(where, fields[2]);
  Problem problem{std::string(fields[0]), std::string(fields[1]), {}, dtype, {}};
  for (const Term& term : parse_equation(problem.equation, "bench").inputs) {
    Shape shape;
    for (const TermItem& item : term.items) {
      const auto size = sizes.find(item.label);
      if (size == sizes.end()) {
        fail<IoError>(fmt::format("{}: no size for label '{}'", where,
                                  item.is_ellipsis() ? "..." : item.label));
      }
      shape.push_back(size->second);
    }
    problem.shapes.push_back(std::move(shape));
  }
  return problem;
}

}  // namespace

std::string problem_text(const std::string& source) {
  for (const ProblemSet& set : problem_sets()) {
    if (set.name == source) return std::string(set.text);
  }
  std::ifstream file(source);
  if (!file) {
    std::string names;
    for (const ProblemSet& set : problem_sets()) names += fmt::format(", {}", set.name);
    fail<IoError>(fmt::format("bench: {}: no such file, and no set of this name; sets: default{}",
                              source, names));
  }
  return {std::istreambuf_iterator<char>(file), {}};
}

std::vector<Problem> read_problems(const std::string& source, DType dtype) {
  std::vector<Problem> problems;
  if (source == "default") {
    for (const std::string_view name : kDefaultSets) {
      std::ranges::move(read_problems(std::string(name), dtype), std::back_inserter(problems));
    }
    return problems;
  }
  std::istringstream text(problem_text(source));
  std::string line;
  for (std::size_t number = 1; std::getline(text, line); ++number) {
    if (line.empty() || line[0] == '#') continue;
    problems.push_back(problem_from(fmt::format("bench: {}:{}", source, number), line, dtype));
  }
  if (problems.empty()) fail<IoError>(fmt::format("bench: {}: no problem in it", source));
  return problems;
}

std::function<bool(const std::string&)> name_matcher(const std::string& option,
                                                     const std::string& expression) {
  try {
    return [regex = std::regex(expression)](const std::string& name) {
      return std::regex_search(name, regex);
    };
  } catch (const std::regex_error&) {
    throw UsageError(fmt::format("{}: '{}' is no regular expression", option, expression));
  }
}

}  // namespace einkern::tools
