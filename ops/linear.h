// SPDX-License-Identifier: Apache-2.0
// The linear layer: a matrix product over the last axis, and a bias.
#pragma once

#include <optional>

#include "../engine/graph/expr.h"

namespace einkern {

/// out[..., o] = sum_i x[..., i] w[i, o] + bias[o], `w` stored (in, out). The result keeps the
/// labels of `x` on the leading axes and takes those of `w` and `x` for the last: w's, none when it
/// has none. Errors: ShapeError when the sizes do not fit, naming w or bias and both shapes.
Expr linear(const Expr& x, const Expr& w, const std::optional<Expr>& bias = {});

}  // namespace einkern
