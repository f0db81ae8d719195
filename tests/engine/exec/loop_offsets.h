// SPDX-License-Identifier: Apache-2.0
// Where the elements of loops lie, counted out: the last loop runs fastest.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "../../../engine/plan/step.h"

namespace einkern::test {

using plan::Loop;
using plan::Loops;
using StrideOf = std::int64_t Loop::*;

inline std::int64_t positions(const Loops& loops) {
  std::int64_t product = 1;
  for (const Loop& loop : loops) product *= loop.size;
  return product;
}

inline std::int64_t offset(const Loops& loops, std::int64_t index, StrideOf stride) {
  std::int64_t sum = 0;
  for (auto loop = loops.rbegin(); loop != loops.rend(); ++loop) {
    sum += index % loop->size * ((*loop).*stride);
    index /= loop->size;
  }
  return sum;
}

inline std::vector<std::int64_t> offsets(const Loops& loops, StrideOf stride) {
  std::vector<std::int64_t> all(static_cast<std::size_t>(positions(loops)));
  for (std::size_t i = 0; i < all.size(); ++i) {
    all[i] = offset(loops, static_cast<std::int64_t>(i), stride);
  }
  return all;
}

}  // namespace einkern::test
