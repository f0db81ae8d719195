// SPDX-License-Identifier: Apache-2.0
// Rotary position embedding.
#pragma once

#include <cstdint>
#include <optional>

#include "../engine/graph/expr.h"

namespace einkern {

/// Options of `rope`.
struct RopeOptions {
  double base = 10000;       // frequency of pair j: base^(-2 j / dims)
  std::int64_t dims = 0;     // features that are rotated, the first ones; even; 0: all
  bool interleaved = false;  // pairs (2j, 2j + 1) instead of (j, j + dims / 2)
  /// Positions of the rows: (..., n), whose leading axes are the first ones of x; without axes,
  /// that of the first row. Absent: 0, 1, 2, ...
  std::optional<Expr> positions = {};
  double scale = 1;                      // positions are divided by it: linear interpolation
  std::optional<Expr> frequencies = {};  // (dims / 2), in place of those of `base`
};

/// Rotates the pairs of features of x (..., n, d) by position times frequency:
///   out[j] = x[j] cos a - x[j'] sin a,   out[j'] = x[j'] cos a + x[j] sin a,   a = p f[j]
/// Angles are computed in f64 and rounded to the dtype of x as cosines and sines. Shape and labels
/// of x. Errors: ShapeError for positions or frequencies that do not fit, ValueError for dims that
/// are odd or more than d, or a base or scale that is not positive. Source: Su et al., "RoFormer",
/// 2021; interpolation: Chen et al., "Extending context window", 2023.
Expr rope(const Expr& x, const RopeOptions& options = {});

/// The base that stretches the longest wave by `factor` and leaves the shortest:
/// base * factor^(dims / (dims - 2)), known as NTK-aware scaling; dims is more than 2. Source: Peng
/// et al., "YaRN", 2023, section 3.1.
double rope_ntk_base(double base, double factor, std::int64_t dims);

}  // namespace einkern
