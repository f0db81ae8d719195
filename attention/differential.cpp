// SPDX-License-Identifier: Apache-2.0
// Differential attention, as its formula.
#include "differential.h"

#include <fmt/format.h>

#include "../engine/base/error.h"
#include "../engine/graph/build.h"
#include "../ops/ops.h"
#include "attend.h"
#include "visibility.h"

namespace einkern {

DifferentialResult differential_attention(const Expr& q1, const Expr& k1, const Expr& q2,
                                          const Expr& k2, const Expr& v, const Expr& lambda,
                                          const AttentionOptions& options) {
  constexpr const char* kName = "differential_attention";
  refuse_weights(kName, options);
  const AttentionResult first = attend(kName, q1, k1, v, options);
  const AttentionResult second = attend(kName, q2, k2, v, options);
  const Expr heads = unnamed(lambda);
  if (heads.rank() > 1 ||
      (heads.rank() == 1 && (q1.rank() < 3 || heads.shape()[0] != q1.shape()[q1.rank() - 3]))) {
    fail<ShapeError>(fmt::format("{}: lambda {} is neither a number nor one for each head of q {}",
                                 kName, to_string(heads.shape()), to_string(q1.shape())));
  }
  // (h) meets (..., h, q, *) from the right.
  const Expr by = heads.rank() == 0
                      ? heads
                      : graph::expand(kName, graph::expand(kName, heads, 1, "", 1), 2, "", 1);
  return {first.output - by * second.output, first.weights - by * second.weights};
}

Expr differential_lambda(const Expr& q1, const Expr& k1, const Expr& q2, const Expr& k2,
                         double initial) {
  return exp(einsum("...d,...d->...", q1, k1)) - exp(einsum("...d,...d->...", q2, k2)) + initial;
}

}  // namespace einkern
