// SPDX-License-Identifier: Apache-2.0
// Scalar arithmetic in f64 and i64.
#include "scalar_fold.h"

#include <cmath>
#include <string>

#include "../base/error.h"

namespace einkern::graph {
namespace {

using map::Op;
using map::Scalar;

[[noreturn]] void overflow(Op op) {
  fail<ValueError>(std::string(map::name_of(op)) + ": integer overflow");
}

std::optional<double> fold_real(Op op, double a, double b) {
  switch (op) {
    case Op::neg:
      return -a;
    case Op::abs:
      return std::fabs(a);
    case Op::exp:
      return std::exp(a);
    case Op::log:
      return std::log(a);
    case Op::sqrt:
      return std::sqrt(a);
    case Op::rsqrt:
      return 1 / std::sqrt(a);
    case Op::sin:
      return std::sin(a);
    case Op::cos:
      return std::cos(a);
    case Op::tanh:
      return std::tanh(a);
    case Op::add:
      return a + b;
    case Op::sub:
      return a - b;
    case Op::mul:
      return a * b;
    case Op::div:
      return a / b;
    case Op::pow:
      return std::pow(a, b);
    default:
      return std::nullopt;
  }
}

std::optional<std::int64_t> fold_integer(Op op, std::int64_t a, std::int64_t b) {
  std::int64_t result = 0;
  switch (op) {
    case Op::neg:
      if (__builtin_sub_overflow(std::int64_t{0}, a, &result)) overflow(op);
      return result;
    case Op::add:
      if (__builtin_add_overflow(a, b, &result)) overflow(op);
      return result;
    case Op::sub:
      if (__builtin_sub_overflow(a, b, &result)) overflow(op);
      return result;
    case Op::mul:
      if (__builtin_mul_overflow(a, b, &result)) overflow(op);
      return result;
    default:
      return std::nullopt;
  }
}

}  // namespace

std::optional<Scalar> fold(Op op, DType dtype, const std::vector<Scalar>& operands) {
  if (operands.empty() || operands.size() > 2) return std::nullopt;
  const Scalar& a = operands.front();
  const Scalar& b = operands.back();
  if (dtype == DType::f64) {
    if (const auto value = fold_real(op, a.real, b.real)) return Scalar::of(*value);
  } else if (dtype == DType::i64 && a.dtype == DType::i64 && b.dtype == DType::i64) {
    if (const auto value = fold_integer(op, a.integer, b.integer)) return Scalar::of(*value);
  }
  return std::nullopt;
}

}  // namespace einkern::graph
