// SPDX-License-Identifier: Apache-2.0
// Takes the weighted sum out of an einsum of more than two operands.
#pragma once

#include "rewrite.h"

namespace einkern::graph {

/// An einsum of three operands or more, one of them a softmax result that shares contracted labels
/// with exactly one other, becomes the einsum of that pair and the rest: `bhqk,bhkd,hde->bqe` is
/// `bhqk,bhkd->bhqd` and `bhqd,hde->bqe`. Null unless the pair then runs as one streamed pass.
NodePtr pair_weights(const Site& site);

}  // namespace einkern::graph
