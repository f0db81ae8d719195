// SPDX-License-Identifier: Apache-2.0
// Can a run stop half-way?
#pragma once

#include <span>

#include "plan.h"

namespace einkern::plan {

/// May a run of the plan stop at an error of its data (integer overflow, division by zero, a value
/// that does not fit, a failed Check) after it has begun to write an output? Ranges of programs
/// decide: positions along axes are known, integers of the inputs may be anything. `scalars` are
/// the caller's.
bool may_fail_half_way(const Plan& plan, std::span<const map::Scalar> scalars);

}  // namespace einkern::plan
