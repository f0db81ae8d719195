// SPDX-License-Identifier: Apache-2.0
// Runs the steps of a contraction plan by scalar loops, to test plans without kernels.
#pragma once

#include <vector>

#include "../../engine/plan/plan.h"

namespace einkern::test {

/// Executes a plan over raw memory (the first element of every input and output, by position).
/// Arithmetic is double for floats and i64 for integers; a temporary vanishes when the plan says it
/// is dead and is filled with 55 when it appears. Throws std::logic_error for what contractions do
/// not use and for an address outside a temporary.
void naive_execute(const plan::Plan& plan, const std::vector<const void*>& inputs,
                   const std::vector<void*>& outputs);

}  // namespace einkern::test
