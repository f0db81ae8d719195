// SPDX-License-Identifier: Apache-2.0
// Reductions over one axis, several, or all when none are given.
#pragma once

#include <concepts>

#include "../engine/graph/expr.h"
#include "axes.h"

namespace einkern {

/// True or false and nothing that converts to it, so that `{"k"}` and `{0}` are axes, not options.
struct Flag {
  template <std::same_as<bool> T>
  constexpr Flag(T v) noexcept : value(v) {}
  constexpr operator bool() const noexcept { return value; }

  bool value;
};

/// Options of the reductions.
struct ReduceOptions {
  Flag keep = false;  // reduced axes stay, with size 1
};

// Errors of all: ShapeError for an axis that is not there or given twice.

/// Sum; of nothing 0. Integers are exact in i64 (overflow: ValueError); of bool, the number of
/// trues.
Expr sum(const Expr& x, const ReduceOptions& options = {});
Expr sum(const Expr& x, const Axes& axes, const ReduceOptions& options = {});

/// Product; of nothing 1.
Expr prod(const Expr& x, const ReduceOptions& options = {});
Expr prod(const Expr& x, const Axes& axes, const ReduceOptions& options = {});

/// Sum divided by the number of elements, f64 for integers; of nothing NaN.
Expr mean(const Expr& x, const ReduceOptions& options = {});
Expr mean(const Expr& x, const Axes& axes, const ReduceOptions& options = {});

/// Largest element; NaN when there is one. Of nothing: ValueError naming the axis.
Expr max(const Expr& x, const ReduceOptions& options = {});
Expr max(const Expr& x, const Axes& axes, const ReduceOptions& options = {});

/// Smallest element; NaN when there is one. Of nothing: ValueError naming the axis.
Expr min(const Expr& x, const ReduceOptions& options = {});
Expr min(const Expr& x, const Axes& axes, const ReduceOptions& options = {});

}  // namespace einkern
