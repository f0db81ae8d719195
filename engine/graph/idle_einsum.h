// SPDX-License-Identifier: Apache-2.0
// Einsums that sum nothing, as the views and products that they are.
#pragma once

#include "rewrite.h"

namespace einkern::graph {

/// An einsum over something computed that only permutes it becomes a view, one that multiplies it
/// with an operand of fewer axes an elementwise product: scores are looked through either.
NodePtr idle_einsum(const Site& site);

}  // namespace einkern::graph
