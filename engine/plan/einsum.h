// SPDX-License-Identifier: Apache-2.0
// A contraction of any number of operands as steps of a plan.
#pragma once

#include <vector>

#include "../spec/spec.h"
#include "builder.h"
#include "path.h"

namespace einkern::plan {

/// Adds the steps that compute `spec` over `operands` (dtypes may differ; they are converted to the
/// compute dtype of `out`, f16 and bf16 while they are packed where that is possible) into `out`.
/// Labels owned by one operand and absent from the output are summed first; diagonals are views; a
/// repeated output label writes the diagonal over zeros; an operand that is already what is wanted
/// is copied, never aliased.
void add_einsum(Builder& builder, const Spec& spec, const std::vector<Operand>& operands,
                const Operand& out, const PathChoice& path = {});

/// Index groups of a pair: which loops belong to batch, m (a's own), n (b's own), k (contracted).
/// Loops of size 1 are dropped, neighbours whose strides nest are fused, and the result does not
/// depend on how labels are named. When the unit-stride loop of c is one of a's own, a and b are
/// swapped. `labels_x[i]` is the label of axis i of operand x; every label of c occurs in a or b; a
/// label of a alone that is missing in c must have been summed before.
Contract make_contract(const Operand& a, const std::vector<LabelId>& labels_a, const Operand& b,
                       const std::vector<LabelId>& labels_b, const Operand& c,
                       const std::vector<LabelId>& labels_c, const Target& target);

/// May the operands of a contraction stay f16 or bf16, because it widens them on the way?
bool reads_halves(const Contract& contract);

/// The selecting form: the same groups, never swapped, with `visible` (labels a subset of a's)
/// addressed along the loops.
SelectContract make_select_contract(const Operand& weights, const std::vector<LabelId>& labels_w,
                                    const Operand& values, const std::vector<LabelId>& labels_v,
                                    const Operand& c, const std::vector<LabelId>& labels_c,
                                    const Operand& visible,
                                    const std::vector<LabelId>& labels_visible,
                                    const Target& target);

}  // namespace einkern::plan
