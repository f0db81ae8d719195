// SPDX-License-Identifier: Apache-2.0
// The core of the seed forms, as its formula.
#include "scaled.h"

#include <cmath>

#include "../ops/ops.h"

namespace einkern {

Expr scaled_attention(const Expr& q, const Expr& k, const Expr& v,
                      const std::optional<Causal>& placed) {
  const auto width = static_cast<double>(q.shape().back());
  Expr s = einsum("...qd,...kd->...qk", q, k) / std::sqrt(width);
  if (placed) s = mask(s, causal("q", "k", *placed));
  return einsum("...qk,...kd->...qd", softmax(s, "k"), v);
}

}  // namespace einkern
