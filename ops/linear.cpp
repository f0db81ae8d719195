// SPDX-License-Identifier: Apache-2.0
// The linear layer as an einsum and an addition.
#include "linear.h"

#include <fmt/format.h>

#include "../engine/base/error.h"
#include "../engine/graph/build.h"
#include "elementwise.h"

namespace einkern {

Expr linear(const Expr& x, const Expr& w, const std::optional<Expr>& bias) {
  if (w.rank() != 2 || x.rank() == 0 || x.shape().back() != w.shape()[0]) {
    fail<ShapeError>(fmt::format("linear: w {} does not fit x {}; w is (in, out)",
                                 to_string(w.shape()), to_string(x.shape())));
  }
  if (bias && (bias->rank() != 1 || bias->shape()[0] != w.shape()[1])) {
    fail<ShapeError>(fmt::format("linear: bias {} does not fit w {}; bias is (out)",
                                 to_string(bias->shape()), to_string(w.shape())));
  }
  std::vector<std::string> labels = x.labels().to_vector(x.rank());
  labels.back() = w.labels()[1];
  const Expr y = graph::relabel("linear", einsum("...i,io->...o", x, w), labels, false);
  return bias ? y + *bias : y;
}

}  // namespace einkern
