// SPDX-License-Identifier: Apache-2.0
// The linear recurrence as a node.
#include "scan.h"

#include "../engine/graph/build.h"

namespace einkern {

Expr scan(const Expr& x, const Axis& axis, const std::optional<Expr>& gate) {
  return graph::scan("scan", x, gate, graph::resolve_axes("scan", x, {axis})[0]);
}

}  // namespace einkern
