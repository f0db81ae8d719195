// SPDX-License-Identifier: Apache-2.0
// Normalisation of vectors: to mean 0 and variance 1, or to a mean square of 1.
#pragma once

#include <optional>

#include "../engine/graph/expr.h"
#include "axes.h"

namespace einkern {

/// Options of layer_norm and rms_norm. `weight` and `bias` meet x as operands of arithmetic do: by
/// position from the right, or by name.
struct NormOptions {
  std::optional<Expr> weight = {};  // multiplies what has been normalised
  std::optional<Expr> bias = {};    // added at the end
  double eps = 1e-5;                // added to the variance or mean square
};

/// (x - mean) / sqrt(variance + eps) * weight + bias, mean and variance (divided by the count) over
/// `axes`. Shape and labels of x; f64 for integers. Errors: ShapeError for a weight or bias that
/// does not broadcast to x, ValueError unless eps is at least 0. Source: Ba et al., "Layer
/// normalization", 2016.
Expr layer_norm(const Expr& x, const Axes& axes = -1, const NormOptions& options = {});

/// x / sqrt(mean(x^2) + eps) * weight + bias. Errors as layer_norm. Source: Zhang and Sennrich,
/// "Root mean square layer normalization", 2019.
Expr rms_norm(const Expr& x, const Axes& axes = -1, const NormOptions& options = {});

}  // namespace einkern
