// SPDX-License-Identifier: Apache-2.0
// Takes the weighted sum out of an einsum that does more.
#pragma once

#include "rewrite.h"

namespace einkern::graph {

/// An einsum of weights, values and more becomes the einsum of that pair and the rest:
/// `bhqk,bhkd,hde->bqe` is `bhqk,bhkd->bhqd` and `bhqd,hde->bqe`, `hqk,hkd->hd` is `hqk,hkd->hqd`
/// and `hqd->hd`. Operands that have labels of the weights only, one that is summed among them,
/// are factors of the weights: `qk,qk,kd->qd`. Null unless the pair then runs as one streamed pass.
NodePtr pair_weights(const Site& site);

}  // namespace einkern::graph
