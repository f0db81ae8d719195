// SPDX-License-Identifier: Apache-2.0
// Partial results of attention over parts of the keys, put together.
#pragma once

#include "../engine/graph/expr.h"

namespace einkern {

/// Output (..., q, e) and natural logsumexp (..., q) of attention over some of the keys.
struct PartialAttention {
  Expr output, logsumexp;
};

/// What attention over the keys of both would give:
///   l = log(exp(l1) + exp(l2)),   o = o1 exp(l1 - l) + o2 exp(l2 - l)
/// A part that sees no key (logsumexp -inf) takes no part, whatever its output; of two such parts,
/// 0 and -inf. Associative and commutative up to rounding. With sinks, give them to one part only.
/// Errors: ShapeError when shapes disagree. Source: Dao et al., "Flash-decoding", 2023; Liu et al.,
/// "Ring attention", 2023.
PartialAttention merge_attention(const PartialAttention& first, const PartialAttention& second);

}  // namespace einkern
