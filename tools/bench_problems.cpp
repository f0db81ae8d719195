// SPDX-License-Identifier: Apache-2.0
// Problem files of the benchmark: one equation a line, sizes by label.
#include <fmt/format.h>

#include <fstream>
#include <map>

#include "../engine/base/error.h"
#include "../engine/spec/equation.h"
#include "bench_measure.h"
#include "values.h"

namespace einkern::tools {
namespace {

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

}  // namespace

std::vector<Problem> read_problems(const std::string& path, DType dtype) {
  std::ifstream file(path);
  if (!file) fail<IoError>(fmt::format("bench: {}: cannot be read", path));
  std::vector<Problem> problems;
  std::string line;
  for (std::size_t number = 1; std::getline(file, line); ++number) {
    if (line.empty() || line[0] == '#') continue;
    const std::string where = fmt::format("bench: {}:{}", path, number);
    const std::vector<std::string_view> fields = split_at(line, '\t');
    if (fields.size() != 3) {
      fail<IoError>(
          fmt::format("{}: {} fields, not name, equation and sizes", where, fields.size()));
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
    problems.push_back(std::move(problem));
  }
  if (problems.empty()) fail<IoError>(fmt::format("bench: {}: no problem in it", path));
  return problems;
}

}  // namespace einkern::tools
