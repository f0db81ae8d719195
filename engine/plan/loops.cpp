// SPDX-License-Identifier: Apache-2.0
// Groups of loops: ordered by the strides of one tensor, then fused where strides nest.
#include "loops.h"

#include <algorithm>
#include <cstdlib>

namespace einkern::plan {
namespace {

std::int64_t rank_of(std::int64_t stride) noexcept {
  return stride == 0 ? INT64_MAX : std::abs(stride);
}

bool nest(const AddressedLoop& outer, const AddressedLoop& inner) noexcept {
  return outer.a == inner.a * inner.size && outer.b == inner.b * inner.size &&
         outer.c == inner.c * inner.size && outer.v == inner.v * inner.size;
}

}  // namespace

void order_loops(AddressedLoops& loops, std::int64_t Loop::*by) {
  std::stable_sort(loops.begin(), loops.end(), [by](const auto& x, const auto& y) {
    for (const auto stride : {by, &Loop::c, &Loop::a, &Loop::b}) {
      const std::int64_t of_x = rank_of(x.*stride), of_y = rank_of(y.*stride);
      if (of_x != of_y) return of_x > of_y;
    }
    return false;
  });
}

void fuse_loops(AddressedLoops& loops) {
  AddressedLoops fused;
  for (const AddressedLoop& loop : loops) {
    if (loop.size == 1) continue;
    if (!fused.empty() && nest(fused.back(), loop)) {
      const std::int64_t outer_size = fused.back().size;
      fused.back() = loop;
      fused.back().size *= outer_size;
    } else {
      fused.push_back(loop);
    }
  }
  loops = std::move(fused);
}

Loops plain(const AddressedLoops& loops) { return {loops.begin(), loops.end()}; }

std::vector<std::int64_t> fourth_strides(const AddressedLoops& loops) {
  std::vector<std::int64_t> strides;
  for (const AddressedLoop& loop : loops) strides.push_back(loop.v);
  return strides;
}

double extent(const Loops& loops) noexcept {
  double product = 1;
  for (const Loop& loop : loops) product *= static_cast<double>(loop.size);
  return product;
}

}  // namespace einkern::plan
