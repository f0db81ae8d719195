// SPDX-License-Identifier: Apache-2.0
// The inclusive linear recurrence along an axis.
#pragma once

#include <optional>

#include "../engine/graph/expr.h"

namespace einkern {

/// s[t] = gate[t] s[t - 1] + x[t] along `axis`, s[0] = x[0]; without a gate, the sums so far. The
/// gate broadcasts to x: `scan(kv, "n", gate["n"])` decays everything alike, a gate with more axes
/// decays each by itself. Shape and labels of x; f32 or f64, f64 for integers. Every sequence is
/// added up in order: same bits for any number of threads. Errors: ShapeError when the gate would
/// make x larger.
Expr scan(const Expr& x, const Axis& axis, const std::optional<Expr>& gate = {});

}  // namespace einkern
