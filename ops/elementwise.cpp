// SPDX-License-Identifier: Apache-2.0
// Arithmetic and functions of single elements as elementwise nodes.
#include "elementwise.h"

#include <numbers>

#include "../engine/graph/build.h"

namespace einkern {
namespace {

using graph::elementwise;
using map::Op;

}  // namespace

Expr operator+(const Expr& a, const Expr& b) { return elementwise("add", Op::add, {a, b}); }
Expr operator-(const Expr& a, const Expr& b) { return elementwise("subtract", Op::sub, {a, b}); }
Expr operator*(const Expr& a, const Expr& b) { return elementwise("multiply", Op::mul, {a, b}); }
Expr operator/(const Expr& a, const Expr& b) { return elementwise("divide", Op::div, {a, b}); }
Expr operator-(const Expr& x) { return elementwise("negative", Op::neg, {x}); }
Expr& operator+=(Expr& a, const Expr& b) { return a = a + b; }
Expr& operator-=(Expr& a, const Expr& b) { return a = a - b; }
Expr& operator*=(Expr& a, const Expr& b) { return a = a * b; }
Expr& operator/=(Expr& a, const Expr& b) { return a = a / b; }

Expr floordiv(const Expr& a, const Expr& b) {
  return elementwise("floordiv", Op::floordiv, {a, b});
}
Expr mod(const Expr& a, const Expr& b) { return elementwise("mod", Op::mod, {a, b}); }
Expr pow(const Expr& a, const Expr& b) { return elementwise("pow", Op::pow, {a, b}); }
Expr minimum(const Expr& a, const Expr& b) { return elementwise("minimum", Op::minimum, {a, b}); }
Expr maximum(const Expr& a, const Expr& b) { return elementwise("maximum", Op::maximum, {a, b}); }

Expr abs(const Expr& x) { return elementwise("abs", Op::abs, {x}); }
Expr exp(const Expr& x) { return elementwise("exp", Op::exp, {x}); }
Expr log(const Expr& x) { return elementwise("log", Op::log, {x}); }
Expr sqrt(const Expr& x) { return elementwise("sqrt", Op::sqrt, {x}); }
Expr rsqrt(const Expr& x) { return elementwise("rsqrt", Op::rsqrt, {x}); }
Expr sin(const Expr& x) { return elementwise("sin", Op::sin, {x}); }
Expr cos(const Expr& x) { return elementwise("cos", Op::cos, {x}); }
Expr tanh(const Expr& x) { return elementwise("tanh", Op::tanh, {x}); }
Expr sigmoid(const Expr& x) { return elementwise("sigmoid", Op::sigmoid, {x}); }
Expr erf(const Expr& x) { return elementwise("erf", Op::erf, {x}); }

Expr relu(const Expr& x) { return elementwise("relu", Op::maximum, {x, 0}); }

Expr gelu(const Expr& x, Gelu form) {
  using std::numbers::inv_sqrtpi;
  using std::numbers::sqrt2;
  if (form == Gelu::exact) return 0.5 * x * (1.0 + erf(x * (1 / sqrt2)));
  return 0.5 * x * (1.0 + tanh(sqrt2 * inv_sqrtpi * (x + 0.044715 * (x * x * x))));
}

Expr silu(const Expr& x) { return x * sigmoid(x); }

}  // namespace einkern
