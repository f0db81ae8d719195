// SPDX-License-Identifier: Apache-2.0
// The fusion rules: contraction, anything elementwise, softmax, contraction become one Attend node.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "rewrite.h"

namespace einkern::graph {

/// An einsum of two operands, one of which comes by views and factors from a softmax (by the word
/// or by hand) of scores made from one product, becomes an Attend node; null for anything else.
/// `why` then says what stopped it, where there is such a softmax.
NodePtr attend_rule(const Site& site, std::string* why);
NodePtr attend_rule(const Site& site);

/// einsum(exp(s - max(s)), v) divided by the sum of these exponentials.
NodePtr divided_rule(const Site& site);

/// The same without a softmax: einsum, anything elementwise, einsum. Asked when the others are
/// done, since a projection and the scores' product look like this too.
NodePtr plain_pair_rule(const Site& site);

/// The logsumexp of scores of an Attend node becomes a second result of that node.
std::vector<NodePtr> share_logsumexp(const std::vector<NodePtr>& roots);

}  // namespace einkern::graph
