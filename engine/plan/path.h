// SPDX-License-Identifier: Apache-2.0
// The order in which the operands of an einsum are contracted.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "../spec/spec.h"

namespace einkern {

/// A contraction order in opt_einsum's linear form: every step names positions in the current list
/// of operands; they are removed and the result is appended.
using Path = std::vector<std::vector<std::int32_t>>;

/// How to find an order. `automatic`: exact up to 12 operands, greedy beyond.
enum class PathMethod : std::uint8_t { automatic, optimal, greedy, given };

/// A method and, for `given`, the order itself.
struct PathChoice {
  PathMethod method = PathMethod::automatic;
  Path path;
  friend bool operator==(const PathChoice&, const PathChoice&) = default;
};

/// `"auto"`, `"optimal"`, `"greedy"` or a linear path such as `"0,1;0,1"`; ValueError listing the
/// choices.
PathChoice parse_path(std::string_view text);

/// Finds the order for a contraction. Optimal: dynamic programming over subsets by total flops (as
/// opt_einsum's `dp`; Pfeifer et al., "Faster identification of optimal contraction sequences for
/// tensor networks", 2014), ties broken by memory; greedy: smallest size(result) - size(inputs)
/// first. A given path is checked: ValueError naming the step that is wrong.
Path find_path(const Spec& spec, const PathChoice& choice);

/// `"0,1;0,1"`.
std::string to_string(const Path& path);

}  // namespace einkern
