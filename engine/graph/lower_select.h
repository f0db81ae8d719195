// SPDX-License-Identifier: Apache-2.0
// The steps of an einsum that skips hidden weights.
#pragma once

#include "../plan/einsum.h"

namespace einkern::graph {

/// Adds the steps of `spec` where products of operand `weights` are skipped wherever `visible` (one
/// axis per axis of the weights, size 1 where it does not depend on one) is false. The operands
/// that share a contracted label with the weights are multiplied first, then contracted with the
/// weights by a selecting step; the others follow plainly.
void lower_select(plan::Builder& builder, const Spec& spec, std::size_t weights,
                  const std::vector<plan::Operand>& operands, const plan::Operand& visible,
                  const plan::Operand& out, const PathChoice& path);

}  // namespace einkern::graph
