// SPDX-License-Identifier: Apache-2.0
// Positions, comparisons, logic and selection: masks written as arithmetic.
#pragma once

#include <concepts>

#include "../engine/graph/expr.h"

namespace einkern {

/// The position along the axis of that name in whatever it meets: i64, weak. An axis given by
/// number must be negative; it counts from the right of what it meets. Errors: ValueError for a
/// number that is not negative.
Expr index(const Axis& axis);

// Comparisons of numbers, element by element (docs/language.md, "Alignment"). TypeError when a bool
// operand is ordered; ShapeError when the operands do not align. A NaN equals nothing.
BoolExpr operator<(const Expr& a, const Expr& b);
BoolExpr operator<=(const Expr& a, const Expr& b);
BoolExpr operator>(const Expr& a, const Expr& b);
BoolExpr operator>=(const Expr& a, const Expr& b);
BoolExpr operator==(const Expr& a, const Expr& b);
BoolExpr operator!=(const Expr& a, const Expr& b);

// Logic, element by element; both sides are always evaluated.
BoolExpr operator&&(const BoolExpr& a, const BoolExpr& b);
BoolExpr operator||(const BoolExpr& a, const BoolExpr& b);
BoolExpr operator!(const BoolExpr& a);

/// Two operands of which at least one is the result of a comparison.
template <class A, class B>
concept Chained =
    (std::derived_from<A, BoolExpr> || std::derived_from<B, BoolExpr>)&&std::convertible_to<
        const A&, Expr>&& std::convertible_to<const B&, Expr>;

// `0 <= index("k") < n` compares a truth value with n: it does not compile. Write two comparisons
// and
// `&&`; the exclusive or of two masks is `(a || b) && !(a && b)`.
template <class A, class B>
requires Chained<A, B> BoolExpr operator<(const A&, const B&) = delete;
template <class A, class B>
requires Chained<A, B> BoolExpr operator<=(const A&, const B&) = delete;
template <class A, class B>
requires Chained<A, B> BoolExpr operator>(const A&, const B&) = delete;
template <class A, class B>
requires Chained<A, B> BoolExpr operator>=(const A&, const B&) = delete;
template <class A, class B>
requires Chained<A, B> BoolExpr operator==(const A&, const B&) = delete;
template <class A, class B>
requires Chained<A, B> BoolExpr operator!=(const A&, const B&) = delete;

/// `x` where the condition holds, `y` elsewhere: it selects, so what is not selected has no
/// influence whatever it holds. `x` and `y` align first, then the condition with them. Errors:
/// TypeError unless the condition is bool.
Expr where(const Expr& condition, const Expr& x, const Expr& y);

}  // namespace einkern
