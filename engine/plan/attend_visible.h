// SPDX-License-Identifier: Apache-2.0
// What a mask leaves of the scores of an Attend step, before it runs.
#pragma once

#include <span>

#include "step.h"

namespace einkern::plan {

/// Upper bounds of the shares of scores, and of keys that some row sees.
struct VisibleShare {
  double scores = 1, keys = 1;
};

/// By positions and scalars alone (`scalars` is the whole table of the plan): tensors may hold
/// anything. At most 64 by 64 boxes of rows and keys are looked at, each as a whole.
VisibleShare visible_share(const Attend& step, std::span<const map::Scalar> scalars);

/// Does the score program decide anything?
bool has_mask(const Attend& step);

}  // namespace einkern::plan
