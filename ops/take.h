// SPDX-License-Identifier: Apache-2.0
// Elements by position: rows of a table, and the diagonals of a Toeplitz matrix.
#pragma once

#include <array>
#include <cstdint>
#include <string>

#include "../engine/graph/expr.h"

namespace einkern {

/// out[i..., t..., j...] = x[i..., at[t...], j...]: elements of x at the positions along `axis`
/// that the integers of `at` name, whose axes stand in place of that axis: `take(table, words, 0)`
/// is an embedding. Positions are 0 .. size - 1. Errors: TypeError unless `at` holds integers; when
/// evaluated, ValueError naming the position, the axis and its size.
Expr take(const Expr& x, const Expr& at, const Axis& axis);

/// An axis of m elements, one for every difference k - q, as two of `queries` and m - queries + 1:
/// out[..., q, k, ...] = x[..., k - q + queries - 1, ...]. A view: however many queries and keys,
/// nothing is expanded. Errors: ShapeError when m is less than queries - 1.
Expr toeplitz(const Expr& x, const Axis& axis, std::int64_t queries,
              const std::array<std::string, 2>& labels = {"q", "k"});

}  // namespace einkern
