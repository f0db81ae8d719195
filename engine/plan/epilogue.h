// SPDX-License-Identifier: Apache-2.0
// Elementwise steps that become the last touch of the contraction before them.
#pragma once

#include "plan.h"

namespace einkern::plan {

/// Turns every pair
///   t = contract(a, b);  out = program(t, inputs...)
/// into one contraction with an epilogue that writes `out`, where t is a temporary of floats that
/// nothing else reads and that lies as `out` does. The sums themselves stay what they were, bit for
/// bit. To be called before lifetimes are known.
void join_epilogues(Plan& plan);

}  // namespace einkern::plan
