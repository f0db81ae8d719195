// SPDX-License-Identifier: Apache-2.0
// The rule by which hidden keys contribute nothing, whatever their values hold.
#pragma once

#include "rewrite.h"

namespace einkern::graph {

/// An einsum that contracts a softmax result (seen through views) over a normalised label, whose
/// scores select -inf somewhere, becomes a SelectEinsum; null otherwise. A weight of 0 times NaN or
/// infinity would be NaN; a key hidden by a selection is skipped instead. Scores that reach -inf by
/// arithmetic stay IEEE.
NodePtr hidden_keys(const Site& site);

/// Where scores are not hidden by a selection, as a boolean with their axes (size 1 on axes that it
/// does not depend on, unless `full`); null when nothing is selected to be -inf.
NodePtr visible_part(const NodePtr& scores, bool full);

}  // namespace einkern::graph
