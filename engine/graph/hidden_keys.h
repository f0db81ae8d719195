// SPDX-License-Identifier: Apache-2.0
// The rule by which hidden keys contribute nothing, whatever their values hold.
#pragma once

#include "node.h"

namespace einkern::graph {

/// An einsum that contracts a softmax result (seen through views) over a normalised label, whose
/// scores select -inf somewhere, becomes a SelectEinsum; null otherwise. A weight of 0 times NaN or
/// infinity would be NaN; a key hidden by a selection is skipped instead. Scores that reach -inf by
/// arithmetic stay IEEE.
NodePtr hidden_keys(const NodePtr& node);

}  // namespace einkern::graph
