// SPDX-License-Identifier: Apache-2.0
// Dropout whose choices depend on a seed and on where an element stands, and on nothing else.
#pragma once

#include "../engine/graph/expr.h"

namespace einkern {

/// x / (1 - p) with probability 1 - p, else 0: whether the element at a position is kept is a
/// function of the seed and of its position along each axis, so that any route, number of threads
/// and dtype drops the same ones. `seed`: an integer, a number or a tensor without axes. Errors:
/// ValueError unless 0 <= p <= 1, TypeError for a seed that is no integer, ShapeError for one with
/// axes. Source: Srivastava et al., "Dropout", 2014; the generator: Salmon et al., "Parallel random
/// numbers: as easy as 1, 2, 3", 2011.
Expr dropout(const Expr& x, double p, const Expr& seed);

}  // namespace einkern
