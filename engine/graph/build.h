// SPDX-License-Identifier: Apache-2.0
// How words make nodes: every function checks its operands in the caller's frame and computes
// nothing. `function` is the word's own name and begins every message.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "../map/program.h"
#include "../plan/step.h"
#include "expr.h"

namespace einkern::graph {

/// Elementwise operation on aligned operands (docs/language.md, "Alignment"). Dtypes follow the
/// promotion rules; TypeError where the operation does not take them.
Expr elementwise(const char* function, map::Op op, const std::vector<Expr>& operands);
/// Conversion to another dtype; the result is not weak.
Expr cast(const Expr& x, DType dtype);
/// The position along an axis of whatever it meets: an open axis.
Expr open_index(const Axis& axis);

/// Axes of an expression as numbers 0..rank-1 in the order given; ShapeError naming `function` for
/// an unknown or repeated one.
std::vector<std::size_t> resolve_axes(const char* function, const Expr& x,
                                      const std::vector<Axis>& axes);

/// Reduction over axes (0..rank-1); they disappear unless `keep`, which leaves size 1.
Expr reduce(const char* function, plan::ReduceOp op, const Expr& x,
            const std::vector<std::size_t>& axes, bool keep = false);
/// softmax, log_softmax or logsumexp over axes; `sink` is one extra logit per row: aligned by name
/// with the remaining axes of `s` when it is a named term, otherwise by position from the right
/// with them.
Expr softmax(const char* function, plan::SoftmaxKind kind, const Expr& s,
             const std::vector<std::size_t>& axes, const std::optional<Expr>& sink = {});

// Views: free where strides allow.
Expr permute(const char* function, const Expr& x, const std::vector<std::size_t>& order);
Expr slice(const char* function, const Expr& x, std::size_t axis, std::optional<std::int64_t> start,
           std::optional<std::int64_t> stop, std::int64_t step);
/// The elements at one position of an axis, which disappears; a negative one counts from the end.
Expr pick(const char* function, const Expr& x, std::size_t axis, std::int64_t position);
/// One axis as several; one size may be -1.
Expr split(const char* function, const Expr& x, std::size_t axis,
           const std::vector<std::string>& labels, const std::vector<std::int64_t>& sizes);
/// Neighbouring axes first, ..., first+count-1 as one.
Expr merge(const char* function, const Expr& x, std::size_t first, std::size_t count,
           const std::string& label);
/// A new axis in front of position `at`, stretched to `size`.
Expr expand(const char* function, const Expr& x, std::size_t at, const std::string& label,
            std::int64_t size);
/// The same elements under other labels; `by_name`: a named term.
Expr relabel(const char* function, const Expr& x, const std::vector<std::string>& labels,
             bool by_name);
Expr concat(const char* function, const std::vector<Expr>& parts, std::size_t axis);

/// Elements at the positions `at` (integers, checked by every evaluation) along an axis, in whose
/// place the axes of `at` stand. TypeError unless they are integers.
Expr take(const char* function, const Expr& x, const Expr& at, std::size_t axis);
/// An axis of m elements as two, of `queries` and m - queries + 1: the element at (q, k) is that at
/// k - q + queries - 1. A view.
Expr toeplitz(const char* function, const Expr& x, std::size_t axis, std::int64_t queries,
              const std::vector<std::string>& labels);
/// s[t] = gate[t] s[t - 1] + x[t] along an axis; without a gate, sums so far. The gate aligns with
/// x and does not enlarge it.
Expr scan(const char* function, const Expr& x, const std::optional<Expr>& gate, std::size_t axis);

/// The same integers, checked by every evaluation to lie in low..high before anything depends on
/// them; otherwise ValueError with `message`, whose `{}` becomes the first element that does not.
Expr bounded(const Expr& x, std::int64_t low, std::int64_t high, const std::string& message);

/// Is this expression still waiting for axes to meet?
bool has_open_axes(const Expr& x);

}  // namespace einkern::graph
