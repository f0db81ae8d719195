// SPDX-License-Identifier: Apache-2.0
// Groups of loops: ordered by the strides of one tensor, then fused where strides nest.
#pragma once

#include <cstdint>
#include <vector>

#include "step.h"

namespace einkern::plan {

/// A loop with a stride in a fourth tensor, the mask of a selecting contraction.
struct AddressedLoop : Loop {
  std::int64_t v = 0;
};
using AddressedLoops = std::vector<AddressedLoop>;

/// Orders loops from the largest to the smallest stride of one tensor, so that the last is the
/// innermost. A loop that does not move that tensor (stride 0) goes outside; ties look at the other
/// tensors, then keep their order.
void order_loops(AddressedLoops& loops, std::int64_t Loop::*by);

/// Drops loops of size 1 and joins neighbours whose strides nest in every tensor.
void fuse_loops(AddressedLoops& loops);

/// The loops without their fourth stride.
Loops plain(const AddressedLoops& loops);
/// The fourth strides alone, one per loop.
std::vector<std::int64_t> fourth_strides(const AddressedLoops& loops);

/// Number of iterations of a group; a double, since a product of groups need not fit an integer.
double extent(const Loops& loops) noexcept;

}  // namespace einkern::plan
