// SPDX-License-Identifier: Apache-2.0
// Steps that all attention forms share.
#include "project.h"

#include <fmt/format.h>

#include "../engine/base/error.h"
#include "../engine/graph/build.h"
#include "../ops/linear.h"

namespace einkern {

Expr project(const char* function, const std::string& name, const Expr& x, const Expr& w,
             const std::optional<Expr>& bias) {
  if (w.rank() != 2 || x.rank() == 0 || x.shape().back() != w.shape()[0]) {
    fail<ShapeError>(fmt::format("{}: {} {} does not project {}; weights are (in, out)", function,
                                 name, to_string(w.shape()), to_string(x.shape())));
  }
  if (bias && (bias->rank() != 1 || bias->shape()[0] != w.shape()[1])) {
    fail<ShapeError>(fmt::format("{}: {}_bias {} does not fit {} {}", function, name,
                                 to_string(bias->shape()), name, to_string(w.shape())));
  }
  return linear(x, w, bias);
}

Expr labelled_as(const Expr& y, const Expr& x, const std::string& last) {
  std::vector<std::string> labels = x.labels().to_vector(y.rank());
  labels.back() = last;
  return graph::relabel("attention", y, labels, false);
}

}  // namespace einkern
