// SPDX-License-Identifier: Apache-2.0
// Runs an elementwise program over a whole tensor, tile by tile.
#pragma once

#include <atomic>
#include <cstdint>
#include <span>
#include <vector>

#include "../kernel/map_tile.h"
#include "../plan/step.h"
#include "frame.h"

namespace einkern::exec {

/// Side of a tile whose inputs are dense along different axes: two lines of f32 either way.
inline constexpr std::int64_t kTransposeSide = 32;

/// out[i] = program(inputs[i]..., scalars, i). Returns the first fault in program order; what `out`
/// holds then is not defined.
kernel::TileFault run_elementwise(const map::Program& program,
                                  std::span<const plan::Operand> inputs, const plan::Operand& out,
                                  std::span<const map::Scalar> scalars, const Frame& frame);

/// The smaller of a fault and those of other tasks.
void keep_least(std::atomic<kernel::TileFault>& least, kernel::TileFault fault) noexcept;

/// ValueError that says what the fault of a program is.
[[noreturn]] void raise_fault(const map::Program& program, kernel::TileFault fault);

}  // namespace einkern::exec
