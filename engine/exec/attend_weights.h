// SPDX-License-Identifier: Apache-2.0
// What an Attend step asks of values when a weight of 0 is no promise that they do not matter.
#pragma once

#include "../plan/step.h"
#include "frame.h"

namespace einkern::exec {

/// Is every element of v finite? One pass over it.
bool values_are_finite(const plan::Attend& step, const Frame& frame);

}  // namespace einkern::exec
