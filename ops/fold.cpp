// SPDX-License-Identifier: Apache-2.0
// Arithmetic of numbers that a program knows when it is built.
#include "fold.h"

#include <cmath>
#include <cstdint>
#include <limits>

#include "../engine/base/error.h"

namespace einkern::fold {
namespace {

using Integer = std::int64_t;

bool integers(const Numbers& x) {
  for (const Value& value : x) {
    if (value.as<Integer>() == nullptr) return false;
  }
  return true;
}

Integer integer(const Value& value) { return *value.as<Integer>(); }

[[noreturn]] void overflow(const char* function) {
  fail<ValueError>(std::string(function) + ": integer overflow");
}

template <class IntegerOp, class RealOp>
Value arithmetic(const char* function, const Numbers& x, IntegerOp exact, RealOp real) {
  if (!integers(x)) return real(x[0].number(), x[1].number());
  Integer result = 0;
  if (exact(integer(x[0]), integer(x[1]), &result)) overflow(function);
  return result;
}

template <class Compare>
Value compared(const Numbers& x, Compare compare) {
  return integers(x) ? compare(integer(x[0]), integer(x[1]))
                     : compare(x[0].number(), x[1].number());
}

/// A divisor of integers that can be used.
void check_divisor(const char* function, const Numbers& x) {
  if (integer(x[1]) == 0) fail<ValueError>(std::string(function) + ": division by zero");
  if (integer(x[1]) == -1 && integer(x[0]) == std::numeric_limits<Integer>::min()) {
    overflow(function);
  }
}

}  // namespace

Value add(const Numbers& x) {
  return arithmetic(
      "add", x, [](Integer a, Integer b, Integer* r) { return __builtin_add_overflow(a, b, r); },
      [](double a, double b) { return a + b; });
}
Value subtract(const Numbers& x) {
  return arithmetic(
      "subtract", x,
      [](Integer a, Integer b, Integer* r) { return __builtin_sub_overflow(a, b, r); },
      [](double a, double b) { return a - b; });
}
Value multiply(const Numbers& x) {
  return arithmetic(
      "multiply", x,
      [](Integer a, Integer b, Integer* r) { return __builtin_mul_overflow(a, b, r); },
      [](double a, double b) { return a * b; });
}
Value divide(const Numbers& x) { return x[0].number() / x[1].number(); }

Value floordiv(const Numbers& x) {
  if (!integers(x)) return std::floor(x[0].number() / x[1].number());
  check_divisor("floordiv", x);
  const Integer a = integer(x[0]), b = integer(x[1]), quotient = a / b;
  return quotient - static_cast<Integer>(a % b != 0 && (a < 0) != (b < 0));
}

Value mod(const Numbers& x) {
  if (!integers(x)) {
    const double a = x[0].number(), b = x[1].number();
    return a - std::floor(a / b) * b;
  }
  check_divisor("mod", x);
  const Integer b = integer(x[1]), rest = integer(x[0]) % b;
  return rest != 0 && (rest < 0) != (b < 0) ? rest + b : rest;
}

Value power(const Numbers& x) {
  if (!integers(x)) return std::pow(x[0].number(), x[1].number());
  Integer base = integer(x[0]), exponent = integer(x[1]), result = 1;
  if (exponent < 0) fail<ValueError>("pow: a negative exponent of an integer");
  while (exponent > 0) {
    if ((exponent & 1) != 0 && __builtin_mul_overflow(result, base, &result)) overflow("pow");
    exponent >>= 1;
    if (exponent > 0 && __builtin_mul_overflow(base, base, &base)) overflow("pow");
  }
  return result;
}

Value negative(const Numbers& x) {
  // 0 - 0.0 would lose the sign.
  if (!integers(x)) return -x[0].number();
  return subtract({Value(Integer{0}), x[0]});
}
Value minimum(const Numbers& x) {
  if (std::isnan(x[0].number())) return x[0];
  return std::get<bool>(less(x).held) ? x[0] : x[1];
}
Value maximum(const Numbers& x) {
  if (std::isnan(x[0].number())) return x[0];
  return std::get<bool>(greater(x).held) ? x[0] : x[1];
}
Value abs(const Numbers& x) {
  if (!integers(x)) return std::abs(x[0].number());
  return integer(x[0]) < 0 ? negative(x) : x[0];
}

Value less(const Numbers& x) {
  return compared(x, [](auto a, auto b) { return a < b; });
}
Value less_equal(const Numbers& x) {
  return compared(x, [](auto a, auto b) { return a <= b; });
}
Value greater(const Numbers& x) {
  return compared(x, [](auto a, auto b) { return a > b; });
}
Value greater_equal(const Numbers& x) {
  return compared(x, [](auto a, auto b) { return a >= b; });
}
Value equal(const Numbers& x) {
  return compared(x, [](auto a, auto b) { return a == b; });
}
Value not_equal(const Numbers& x) {
  return compared(x, [](auto a, auto b) { return a != b; });
}

}  // namespace einkern::fold
