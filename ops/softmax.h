// SPDX-License-Identifier: Apache-2.0
// Softmax and its relatives over any axes.
#pragma once

#include <optional>

#include "../engine/graph/expr.h"
#include "axes.h"

namespace einkern {

/// Options of softmax, log_softmax and logsumexp.
struct SoftmaxOptions {
  /// One extra logit per row that takes part in the denominator only: a number, a named term such
  /// as `sinks["h"]`, or a tensor aligned from the right with the axes that remain. Source: Xiao et
  /// al., "Efficient streaming language models with attention sinks", 2023.
  std::optional<Expr> sink = {};
};

/// out = exp(s - m) / sum(exp(s - m)), m the maximum over `axes`. A row of -inf only gives 0; NaN
/// in a row makes the row NaN. Shape and labels of `s`; f64 for integers.
Expr softmax(const Expr& s, const Axes& axes = -1, const SoftmaxOptions& options = {});

/// The logarithm of softmax; a row of -inf only gives -inf.
Expr log_softmax(const Expr& s, const Axes& axes = -1, const SoftmaxOptions& options = {});

/// log(sum(exp(s))) over `axes`, which disappear; of a row of -inf only, -inf.
Expr logsumexp(const Expr& s, const Axes& axes = -1, const SoftmaxOptions& options = {});

}  // namespace einkern
