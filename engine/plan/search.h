// SPDX-License-Identifier: Apache-2.0
// What the path searches share: the labels of a contraction as a network, and paths by identity.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "path.h"

namespace einkern::plan {

/// A contraction as a path search sees it. Labels are numbered in order of first appearance, so
/// that no choice depends on how they are named; labels of size 1 and labels that one operand has
/// alone and the output lacks (they are summed first) are left out.
struct Network {
  std::vector<std::vector<LabelId>> terms;  // sorted, without repetition
  std::vector<double> sizes;                // by label
  std::vector<char> kept;                   // by label: is it in the output?
};

Network make_network(const Spec& spec);

/// A pairwise order by identity: operands are 0..n-1, the result of step s is n + s.
using Pairs = std::vector<std::array<std::int32_t, 2>>;

/// Exact: fewest multiplications, then smallest sum of intermediates. Up to kMostOptimal operands.
inline constexpr std::size_t kMostOptimal = 16;
Pairs optimal_pairs(const Network& network);

/// Smallest size(result) - size(inputs) first, from a heap.
Pairs greedy_pairs(const Network& network);

/// The linear form (positions in the shrinking list of operands) of an order by identity, and back.
Path to_linear(const Pairs& pairs, std::size_t operands);
std::vector<std::vector<std::int32_t>> to_identities(const Path& path, std::size_t operands);

}  // namespace einkern::plan
