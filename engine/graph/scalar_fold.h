// SPDX-License-Identifier: Apache-2.0
// Arithmetic among scalars, done before a plan runs.
#pragma once

#include <optional>
#include <vector>

#include "../map/program.h"

namespace einkern::graph {

/// The value of `op` over scalars, in `dtype` (f64, i64 or bool); nothing for operations that are
/// left to the kernels. ValueError for integer overflow, division by zero and negative integer
/// powers.
std::optional<map::Scalar> fold(map::Op op, DType dtype, const std::vector<map::Scalar>& operands);

}  // namespace einkern::graph
