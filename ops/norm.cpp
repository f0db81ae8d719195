// SPDX-License-Identifier: Apache-2.0
// Normalisations as their formulas.
#include "norm.h"

#include <fmt/format.h>

#include "../engine/base/error.h"
#include "elementwise.h"
#include "reduce.h"

namespace einkern {
namespace {

/// A result that has grown: the operand does not broadcast to x.
void check_kept(const char* function, const char* name, const Expr& operand, const Expr& x,
                const Expr& result) {
  if (result.shape() == x.shape()) return;
  fail<ShapeError>(fmt::format("{}: {} {} does not broadcast to x {}", function, name,
                               to_string(operand.shape()), to_string(x.shape())));
}

/// d / sqrt(mean(d^2) + eps) * weight + bias.
Expr scaled(const char* function, const Expr& d, const Axes& axes, const NormOptions& options) {
  if (!(options.eps >= 0)) {
    fail<ValueError>(fmt::format("{}: eps is {}; it must be at least 0", function, options.eps));
  }
  Expr y = d * rsqrt(mean(d * d, axes, {.keep = true}) + options.eps);
  if (options.weight) {
    y = y * *options.weight;
    check_kept(function, "weight", *options.weight, d, y);
  }
  if (options.bias) {
    y = y + *options.bias;
    check_kept(function, "bias", *options.bias, d, y);
  }
  return y;
}

}  // namespace

Expr layer_norm(const Expr& x, const Axes& axes, const NormOptions& options) {
  return scaled("layer_norm", x - mean(x, axes, {.keep = true}), axes, options);
}

Expr rms_norm(const Expr& x, const Axes& axes, const NormOptions& options) {
  return scaled("rms_norm", x, axes, options);
}

}  // namespace einkern
