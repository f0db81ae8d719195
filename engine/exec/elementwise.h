// SPDX-License-Identifier: Apache-2.0
// Runs an elementwise program over a whole tensor, tile by tile.
#pragma once

#include <span>
#include <vector>

#include "../kernel/map_tile.h"
#include "../plan/step.h"
#include "frame.h"

namespace einkern::exec {

/// out[i] = program(inputs[i]..., scalars, i). Returns the first fault in program order; what `out`
/// holds then is not defined.
kernel::TileFault run_elementwise(const map::Program& program,
                                  std::span<const plan::Operand> inputs, const plan::Operand& out,
                                  std::span<const map::Scalar> scalars, const Frame& frame);

}  // namespace einkern::exec
