// SPDX-License-Identifier: Apache-2.0
// Words that rearrange axes: views where strides allow, never arithmetic.
#pragma once

#include <concepts>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "../engine/graph/expr.h"
#include "axes.h"

namespace einkern {

/// Axes in the order of the right-hand term: `permute(x, "bhqd->bqhd")`, `"...qk->...kq"`. The
/// result is labelled from it. Errors: SyntaxError unless the right-hand term holds the labels of
/// the left one, each once; ShapeError for the wrong number of labels.
Expr permute_as(const Expr& x, std::string_view equation);
template <class Text>
requires(std::convertible_to<const Text&, std::string_view> && !std::integral<Text>) Expr
    permute(const Expr& x, const Text& equation) {
  return permute_as(x, std::string_view(equation));
}
/// Axes in the given order, all of them: `permute(x, {0, 2, 1})`, `permute(x, {"k", "q"})`.
Expr permute(const Expr& x, const Axes& order);

/// One axis as several whose sizes multiply to it; one size may be -1:
/// `split(x, "m", {"h", "d"}, {12, -1})`.
Expr split(const Expr& x, const Axis& axis, const std::vector<std::string>& labels,
           const std::vector<std::int64_t>& sizes);

/// Neighbouring axes, in the order they stand, as one: `merge(x, {"h", "d"}, "m")`.
/// Errors: ShapeError unless they are neighbours in this order.
Expr merge(const Expr& x, const Axes& axes, std::string_view label = {});

/// Elements start, start + step, ... before stop of one axis; negative bounds count from the end,
/// both are clipped as Python clips them. Errors: ValueError for a step of 0.
Expr slice(const Expr& x, const Axis& axis, std::optional<std::int64_t> start,
           std::optional<std::int64_t> stop = {}, std::int64_t step = 1);

/// Every element of an axis n times in a row, as NumPy's repeat: 0 0 1 1 2 2.
Expr repeat(const Expr& x, const Axis& axis, std::int64_t n);

/// A new axis in front, stretched to `size` without copying.
Expr expand(const Expr& x, std::string_view label, std::int64_t size);

/// The parts one after another along an axis that all of them have; their other sizes agree.
Expr concat(const std::vector<Expr>& parts, const Axis& axis);

/// The same elements under the labels of an einsum term, `"bqd"` or `"[batch head] q"`; the result
/// aligns by name.
Expr named(const Expr& x, std::string_view term);
/// The same elements without labels; the result aligns by position.
Expr unnamed(const Expr& x);

}  // namespace einkern
