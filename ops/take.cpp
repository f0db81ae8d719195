// SPDX-License-Identifier: Apache-2.0
// Elements by position, as nodes.
#include "take.h"

#include "../engine/graph/build.h"

namespace einkern {

Expr take(const Expr& x, const Expr& at, const Axis& axis) {
  return graph::take("take", x, at, graph::resolve_axes("take", x, {axis})[0]);
}

Expr toeplitz(const Expr& x, const Axis& axis, std::int64_t queries,
              const std::array<std::string, 2>& labels) {
  return graph::toeplitz("toeplitz", x, graph::resolve_axes("toeplitz", x, {axis})[0], queries,
                         {labels[0], labels[1]});
}

}  // namespace einkern
