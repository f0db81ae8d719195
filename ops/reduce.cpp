// SPDX-License-Identifier: Apache-2.0
// Reductions as nodes; the mean as a sum and a division.
#include "reduce.h"

#include <numeric>

#include "../engine/graph/build.h"
#include "elementwise.h"
#include "index.h"

namespace einkern {
namespace {

using plan::ReduceOp;

std::vector<std::size_t> every_axis(const Expr& x) {
  std::vector<std::size_t> axes(x.shape().size());
  std::iota(axes.begin(), axes.end(), std::size_t{0});
  return axes;
}

/// Number of elements that one result sums up, as something to divide by.
Expr count(const Expr& x, const std::vector<std::size_t>& axes, bool keep) {
  std::int64_t product = 1;
  for (const std::size_t axis : axes) {
    if (x.shape()[axis] < 0) {  // a dyn size: count what is there, NaN included
      const Expr one = graph::cast(x == x || x != x, i64);
      return graph::reduce("mean", ReduceOp::sum, one, axes, keep);
    }
    product *= x.shape()[axis];
  }
  return product;
}

Expr mean_over(const Expr& x, const std::vector<std::size_t>& axes, bool keep) {
  const Expr terms = is_float(x.dtype()) ? x : graph::cast(x, f64);
  return graph::reduce("mean", ReduceOp::sum, terms, axes, keep) / count(x, axes, keep);
}

}  // namespace

Expr sum(const Expr& x, const ReduceOptions& options) {
  return graph::reduce("sum", ReduceOp::sum, x, every_axis(x), options.keep);
}
Expr sum(const Expr& x, const Axes& axes, const ReduceOptions& options) {
  return graph::reduce("sum", ReduceOp::sum, x, graph::resolve_axes("sum", x, axes), options.keep);
}

Expr prod(const Expr& x, const ReduceOptions& options) {
  return graph::reduce("prod", ReduceOp::prod, x, every_axis(x), options.keep);
}
Expr prod(const Expr& x, const Axes& axes, const ReduceOptions& options) {
  return graph::reduce("prod", ReduceOp::prod, x, graph::resolve_axes("prod", x, axes),
                       options.keep);
}

Expr mean(const Expr& x, const ReduceOptions& options) {
  return mean_over(x, every_axis(x), options.keep);
}
Expr mean(const Expr& x, const Axes& axes, const ReduceOptions& options) {
  return mean_over(x, graph::resolve_axes("mean", x, axes), options.keep);
}

Expr max(const Expr& x, const ReduceOptions& options) {
  return graph::reduce("max", ReduceOp::max, x, every_axis(x), options.keep);
}
Expr max(const Expr& x, const Axes& axes, const ReduceOptions& options) {
  return graph::reduce("max", ReduceOp::max, x, graph::resolve_axes("max", x, axes), options.keep);
}

Expr min(const Expr& x, const ReduceOptions& options) {
  return graph::reduce("min", ReduceOp::min, x, every_axis(x), options.keep);
}
Expr min(const Expr& x, const Axes& axes, const ReduceOptions& options) {
  return graph::reduce("min", ReduceOp::min, x, graph::resolve_axes("min", x, axes), options.keep);
}

}  // namespace einkern
