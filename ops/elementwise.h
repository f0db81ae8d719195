// SPDX-License-Identifier: Apache-2.0
// Arithmetic and functions of single elements. Operands align as docs/language.md says.
#pragma once

#include <limits>

#include "../engine/graph/expr.h"

namespace einkern {

/// Positive infinity; `where(visible, s, -inf)` hides.
inline constexpr double inf = std::numeric_limits<double>::infinity();

// Arithmetic. Integers stay exact in i64: an overflow is a ValueError when evaluated.
Expr operator+(const Expr& a, const Expr& b);
Expr operator-(const Expr& a, const Expr& b);
Expr operator*(const Expr& a, const Expr& b);
/// True division: f64 for integers.
Expr operator/(const Expr& a, const Expr& b);
Expr operator-(const Expr& x);
Expr& operator+=(Expr& a, const Expr& b);
Expr& operator-=(Expr& a, const Expr& b);
Expr& operator*=(Expr& a, const Expr& b);
Expr& operator/=(Expr& a, const Expr& b);

/// floor(a / b), an integer for integers; a zero divisor is a ValueError for integers.
Expr floordiv(const Expr& a, const Expr& b);
/// a - floor(a / b) * b: the sign of `b`.
Expr mod(const Expr& a, const Expr& b);
/// a to the power b; a negative exponent is a ValueError for integers.
Expr pow(const Expr& a, const Expr& b);
/// The smaller or larger of two elements; NaN when either is.
Expr minimum(const Expr& a, const Expr& b);
Expr maximum(const Expr& a, const Expr& b);

// Functions; integers give f64, except abs.
Expr abs(const Expr& x);
Expr exp(const Expr& x);
Expr log(const Expr& x);
Expr sqrt(const Expr& x);
/// 1 / sqrt(x).
Expr rsqrt(const Expr& x);
/// Of an angle in radians, however large.
Expr sin(const Expr& x);
Expr cos(const Expr& x);
Expr tanh(const Expr& x);
/// 1 / (1 + exp(-x)).
Expr sigmoid(const Expr& x);
Expr erf(const Expr& x);

/// max(x, 0); NaN stays.
Expr relu(const Expr& x);
/// Which form of the Gaussian error linear unit.
enum class Gelu { exact, tanh };
/// exact: x Phi(x); tanh: x / 2 (1 + tanh(sqrt(2 / pi) (x + 0.044715 x^3))).
/// Source: Hendrycks and Gimpel, "Gaussian error linear units", 2016.
Expr gelu(const Expr& x, Gelu form = Gelu::exact);
/// x sigmoid(x). Source: Elfwing et al., "Sigmoid-weighted linear units", 2018.
Expr silu(const Expr& x);

}  // namespace einkern
