// SPDX-License-Identifier: Apache-2.0
// Contraction paths as text and back, and the choice between the searches.
#include "path.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>

#include "../base/error.h"
#include "search.h"

namespace einkern {
namespace {

/// `automatic` searches exactly up to here: 3^12 / 2 splits take a few milliseconds.
constexpr std::size_t kMostExact = 12;

[[noreturn]] void fail_unknown(std::string_view text) {
  fail<ValueError>(fmt::format(
      "path: unknown path '{}'; choices: auto, optimal, greedy, or positions such as 0,1;0,1",
      text));
}

/// Every step names different operands of the list as it then is, and one is left at the end.
void check_given(const Path& path, std::size_t operands) {
  std::size_t left = operands;
  for (std::size_t s = 0; s < path.size(); ++s) {
    if (path[s].empty()) fail<ValueError>(fmt::format("einsum: step {} of the path is empty", s));
    std::vector<std::int32_t> sorted = path[s];
    std::sort(sorted.begin(), sorted.end());
    for (const std::int32_t position : {sorted.front(), sorted.back()}) {
      if (position >= 0 && static_cast<std::size_t>(position) < left) continue;
      fail<ValueError>(
          fmt::format("einsum: step {} of the path names position {} of a list of {} operand{}", s,
                      position, left, left == 1 ? "" : "s"));
    }
    const auto twice = std::adjacent_find(sorted.begin(), sorted.end());
    if (twice != sorted.end()) {
      fail<ValueError>(
          fmt::format("einsum: step {} of the path names position {} twice", s, *twice));
    }
    left -= path[s].size() - 1;
  }
  if (left > 1) {
    fail<ValueError>(
        fmt::format("einsum: the path leaves {} operands of {} uncontracted", left, operands));
  }
}

}  // namespace

PathChoice parse_path(std::string_view text) {
  if (text == "auto") return {};
  if (text == "optimal") return {PathMethod::optimal, {}};
  if (text == "greedy") return {PathMethod::greedy, {}};
  PathChoice choice{PathMethod::given, {{}}};
  const char* at = text.data();
  const char* const end = at + text.size();
  while (true) {
    std::int32_t position = 0;
    const auto [stop, error] = std::from_chars(at, end, position);
    if (error != std::errc{} || position < 0) fail_unknown(text);
    choice.path.back().push_back(position);
    if (stop == end) return choice;
    if (*stop == ';') {
      choice.path.emplace_back();
    } else if (*stop != ',') {
      fail_unknown(text);
    }
    at = stop + 1;
  }
}

Path find_path(const Spec& spec, const PathChoice& choice) {
  const std::size_t operands = spec.inputs.size();
  if (choice.method == PathMethod::given) {
    check_given(choice.path, operands);
    return choice.path;
  }
  if (operands == 0) return {};
  if (operands == 1) return {{0}};
  if (choice.method == PathMethod::optimal && operands > plan::kMostOptimal) {
    fail<ValueError>(
        fmt::format("einsum: the optimal path is searched for at most {} operands, not {}; use "
                    "greedy or give a path",
                    plan::kMostOptimal, operands));
  }
  const plan::Network network = plan::make_network(spec);
  const bool exact = choice.method == PathMethod::optimal ||
                     (choice.method == PathMethod::automatic && operands <= kMostExact);
  return plan::to_linear(exact ? plan::optimal_pairs(network) : plan::greedy_pairs(network),
                         operands);
}

std::string to_string(const Path& path) {
  std::string text;
  for (const std::vector<std::int32_t>& step : path) {
    if (!text.empty()) text += ';';
    text += fmt::format("{}", fmt::join(step, ","));
  }
  return text;
}

}  // namespace einkern
