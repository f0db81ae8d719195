// SPDX-License-Identifier: Apache-2.0
// The best pairwise order of a few operands, by dynamic programming over their subsets.
#include <bit>

#include "../base/error.h"
#include "search.h"

namespace einkern::plan {
namespace {

using Subset = std::uint32_t;

struct Best {
  double flops = 0, memory = 0;  // of all steps inside the subset
  double kept = 1;               // size of its result
  double closed = 1;             // product of the labels that live inside it alone
  Subset left = 0;               // one half of its last step
};

/// Bit of an operand. The first operand has the highest bit: counting through the halves that lack
/// it meets left-deep orders first, and those win ties.
Subset bit_of(std::size_t operand, std::size_t operands) {
  return Subset{1} << (operands - 1 - operand);
}

std::vector<Best> sizes_of_subsets(const Network& network) {
  const std::size_t n = network.terms.size();
  std::vector<Subset> holders(network.sizes.size());
  for (std::size_t p = 0; p < n; ++p) {
    for (const LabelId label : network.terms[p]) {
      holders[static_cast<std::size_t>(label)] |= bit_of(p, n);
    }
  }
  std::vector<Best> best(std::size_t{1} << n);
  for (Subset set = 1; set < best.size(); ++set) {
    for (std::size_t l = 0; l < holders.size(); ++l) {
      if ((holders[l] & set) == 0) continue;
      const bool closed = (holders[l] & ~set) == 0 && !network.kept[l];
      (closed ? best[set].closed : best[set].kept) *= network.sizes[l];
    }
  }
  return best;
}

/// Steps of a subset, the halves first; returns the identity of its result.
std::int32_t emit(const std::vector<Best>& best, Subset set, std::size_t operands, Pairs& pairs) {
  if (std::has_single_bit(set)) {
    return static_cast<std::int32_t>(operands) - std::bit_width(set);
  }
  const std::int32_t left = emit(best, best[set].left, operands, pairs);
  const std::int32_t right = emit(best, set & ~best[set].left, operands, pairs);
  pairs.push_back({left, right});
  return static_cast<std::int32_t>(operands + pairs.size() - 1);
}

}  // namespace

Pairs optimal_pairs(const Network& network) {
  const std::size_t n = network.terms.size();
  EINKERN_CHECK(n <= kMostOptimal);
  Pairs pairs;
  if (n < 2) return pairs;
  std::vector<Best> best = sizes_of_subsets(network);
  for (Subset set = 1; set < best.size(); ++set) {
    if (std::has_single_bit(set)) continue;
    const Subset rest = set & ~std::bit_floor(set);  // without its first operand
    Best& here = best[set];
    for (Subset right = rest & (~rest + 1); right != 0; right = (right - rest) & rest) {
      const Best& x = best[set & ~right];
      const Best& y = best[right];
      // A step runs over the labels of its result and over those that close with it.
      const double flops = x.flops + y.flops + here.kept * (here.closed / (x.closed * y.closed));
      const double memory = x.memory + y.memory + here.kept;
      if (here.left == 0 || flops < here.flops || (flops == here.flops && memory < here.memory)) {
        here.flops = flops;
        here.memory = memory;
        here.left = set & ~right;
      }
    }
  }
  emit(best, static_cast<Subset>(best.size() - 1), n, pairs);
  return pairs;
}

}  // namespace einkern::plan
