// SPDX-License-Identifier: Apache-2.0
// The fusion rule: scores, softmax and weighted sum become one streamed pass.
#pragma once

#include "rewrite.h"

namespace einkern::graph {

/// An einsum of a softmax result and values, whose scores are elementwise over one einsum of
/// queries and keys, becomes an Attend node; null otherwise. Matches structure, never names: any
/// number of batch, row, streamed, inner and column axes in any order; views (permuted, split,
/// merged, relabelled axes) anywhere between. Nobody else may use the weights.
NodePtr attend_rule(const Site& site);

/// A logsumexp over the scores of an Attend node comes from that node.
std::vector<NodePtr> share_logsumexp(const std::vector<NodePtr>& roots);

}  // namespace einkern::graph
