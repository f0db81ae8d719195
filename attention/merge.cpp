// SPDX-License-Identifier: Apache-2.0
// The merge of two states of a softmax, as its formula.
#include "merge.h"

#include <fmt/format.h>

#include <algorithm>

#include "../engine/base/error.h"
#include "../engine/graph/build.h"
#include "../ops/ops.h"

namespace einkern {

PartialAttention merge_attention(const PartialAttention& a, const PartialAttention& b) {
  const Shape& rows = a.logsumexp.shape();
  const bool fits = rows == b.logsumexp.shape() && a.output.shape() == b.output.shape() &&
                    a.output.rank() == rows.size() + 1 &&
                    std::equal(rows.begin(), rows.end(), a.output.shape().begin());
  if (!fits) {
    fail<ShapeError>(
        fmt::format("merge_attention: outputs {} and {} with logsumexp {} and {} disagree",
                    to_string(a.output.shape()), to_string(b.output.shape()), to_string(rows),
                    to_string(b.logsumexp.shape())));
  }
  const Expr top = maximum(a.logsumexp, b.logsumexp);
  // Where neither sees a key every difference would be NaN: any finite reference gives 0.
  const Expr reference = where(top == -inf, 0.0, top);
  const Expr first = exp(a.logsumexp - reference), second = exp(b.logsumexp - reference);
  const Expr total = first + second;
  const auto share = [&](const Expr& part, const Expr& output) {
    const auto column = [&](const Expr& x) {
      return graph::expand("merge_attention", x, x.rank(), "", 1);
    };
    // Selected: what is not seen has no influence, NaN included.
    return where(column(part) == 0.0, 0.0, output * column(part / where(total == 0.0, 1.0, total)));
  };
  return {share(first, a.output) + share(second, b.output), log(total) + reference};
}

}  // namespace einkern
