// SPDX-License-Identifier: Apache-2.0
// Runs a plan over bound memory.
#pragma once

#include <span>
#include <vector>

#include "../base/machine.h"
#include "../map/program.h"
#include "../plan/plan.h"

namespace einkern::exec {

/// The memory a plan runs over: first elements of inputs and outputs by position, and the scalar
/// table.
struct Bindings {
  std::span<const void* const> inputs;
  std::span<void* const> outputs;
  std::span<const map::Scalar> scalars;
};

/// The SIMD target that plans run on now.
const Target& current_target();

/// Executes the steps in order. Temporaries come from the pool and return to it when dead.
/// `threads` 0: section "Threads" of docs/route.md. Errors: ValueError for integer overflow,
/// integer division by zero, a negative integer power, max or min over an empty axis.
void execute(const plan::Plan& plan, const Bindings& bindings, int threads = 0);

}  // namespace einkern::exec
