// SPDX-License-Identifier: Apache-2.0
// Evaluates a program at one element by the definition of each operation.
#include "element.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "../../../engine/base/philox.h"

namespace einkern::test {
namespace {

using map::Instruction;
using map::Op;
using map::Program;
using map::Range;
using map::Scalar;

using Wide = long double;

/// An i64 result, or none where it does not fit. Exact for the results of one operation that fit.
std::optional<Value> whole(Wide x) {
  if (!(x >= -0x1p63L && x < 0x1p63L)) return std::nullopt;
  return Value{0, static_cast<std::int64_t>(x)};
}

std::optional<Value> integer_result(Op op, std::int64_t a, std::int64_t b) {
  std::int64_t result = 0;
  const auto checked = [&](bool overflow) {
    return overflow ? std::optional<Value>{} : Value{0, result};
  };
  const auto remainder = [&] {
    const std::int64_t rest = b == -1 ? 0 : a % b;
    return rest != 0 && (rest < 0) != (b < 0) ? rest + b : rest;
  };
  switch (op) {
    case Op::neg:
      return checked(__builtin_sub_overflow(std::int64_t{0}, a, &result));
    case Op::abs:
      if (a >= 0) return Value{0, a};
      return checked(__builtin_sub_overflow(std::int64_t{0}, a, &result));
    case Op::add:
      return checked(__builtin_add_overflow(a, b, &result));
    case Op::sub:
      return checked(__builtin_sub_overflow(a, b, &result));
    case Op::mul:
      return checked(__builtin_mul_overflow(a, b, &result));
    case Op::floordiv:
      if (b == 0 || (a == std::numeric_limits<std::int64_t>::min() && b == -1)) return std::nullopt;
      return Value{0, (a / b) - (a % b != 0 && (a < 0) != (b < 0) ? 1 : 0)};
    case Op::mod:
      if (b == 0) return std::nullopt;
      return Value{0, remainder()};
    case Op::pow: {
      if (b < 0) return std::nullopt;
      if (a == 0 || a == 1 || b == 0) return Value{0, b == 0 ? 1 : a};
      if (a == -1) return Value{0, b % 2 == 0 ? 1 : -1};
      result = 1;
      for (std::int64_t i = 0; i < b; ++i) {
        if (__builtin_mul_overflow(result, a, &result)) return std::nullopt;
      }
      return Value{0, result};
    }
    case Op::random:
      return Value{0, random_bits(a, b)};
    case Op::maximum:
      return Value{0, std::max(a, b)};
    default:
      return Value{0, std::min(a, b)};
  }
}

/// In long double, to be rounded: of operations whose ranges allow for that, and of exact ones.
Wide real_result(Op op, Wide a, Wide b) {
  switch (op) {
    case Op::neg:
      return -a;
    case Op::abs:
      return std::abs(a);
    case Op::exp:
      return std::exp(a);
    case Op::log:
      return std::log(a);
    case Op::rsqrt:
      return 1 / std::sqrt(a);
    case Op::sin:
      return std::sin(a);
    case Op::cos:
      return std::cos(a);
    case Op::tanh:
      return std::tanh(a);
    case Op::sigmoid:
      return 1 / (1 + std::exp(-a));
    case Op::erf:
      return std::erf(a);
    case Op::floordiv:
      if (b == 0) return a / b;
      if (!std::isfinite(a)) return std::numeric_limits<Wide>::quiet_NaN();
      if (std::isinf(b)) return a != 0 && (a < 0) != (b < 0) ? -1 : 0;
      return std::floor(a / b);
    case Op::pow:
      return std::pow(a, b);
    case Op::maximum:
      return std::isnan(a) || std::isnan(b) ? a + b : std::max(a, b);
    default:
      return std::isnan(a) || std::isnan(b) ? a + b : std::min(a, b);
  }
}

template <class T>
double arithmetic(Op op, T a, T b) {
  switch (op) {
    case Op::add:
      return static_cast<double>(static_cast<T>(a + b));
    case Op::sub:
      return static_cast<double>(static_cast<T>(a - b));
    case Op::mul:
      return static_cast<double>(static_cast<T>(a * b));
    case Op::div:
      return static_cast<double>(static_cast<T>(a / b));
    case Op::sqrt:
      return static_cast<double>(std::sqrt(a));
    case Op::mod: {
      const T rest = std::fmod(a, b);
      if (rest == 0) return std::copysign(0.0, static_cast<double>(b));
      return static_cast<double>((rest < 0) != (b < 0) ? static_cast<T>(rest + b) : rest);
    }
    default:
      return static_cast<double>(
          static_cast<T>(real_result(op, static_cast<Wide>(a), static_cast<Wide>(b))));
  }
}

std::optional<Value> converted(const Value& a, DType from, DType to) {
  if (to == boolean) return Value{0, is_float(from) ? a.real != 0 : a.integer != 0};
  if (is_float(to)) {
    if (is_float(from)) return Value{rounded(a.real, to), 0};
    return Value{to == f32 ? static_cast<double>(static_cast<float>(a.integer))
                           : rounded(static_cast<double>(a.integer), to),
                 0};
  }
  const int bits = static_cast<int>(size_of(to)) * 8;
  const Wide end = std::ldexp(1.0L, bits - 1);
  const Wide x = is_float(from) ? std::trunc(static_cast<Wide>(a.real)) : a.integer;
  return x >= -end && x < end ? whole(x) : std::nullopt;
}

bool compared(Op op, DType dtype, const Value& a, const Value& b) {
  const bool real = is_float(dtype);
  switch (op) {
    case Op::less:
      return real ? a.real < b.real : a.integer < b.integer;
    case Op::less_equal:
      return real ? a.real <= b.real : a.integer <= b.integer;
    case Op::equal:
      return real ? a.real == b.real : a.integer == b.integer;
    default:
      return real ? a.real != b.real : a.integer != b.integer;
  }
}

Value scalar_value(const Scalar& scalar, DType dtype) {
  if (is_float(dtype)) return {rounded(scalar.real, dtype), 0};
  return {0, scalar.integer};
}

}  // namespace

double rounded(double x, DType dtype) {
  if (dtype == f16) return static_cast<double>(widen(Float16(x)));
  if (dtype == bf16) return static_cast<double>(widen(BFloat16(x)));
  return dtype == f32 ? static_cast<double>(static_cast<float>(x)) : x;
}

std::vector<std::optional<Value>> evaluate(const Program& program, const Element& element,
                                           std::span<const Scalar> scalars) {
  std::vector<std::optional<Value>> values;
  for (const Instruction& code : program.code) {
    const auto arg = static_cast<std::size_t>(code.arg);
    const std::int32_t registers[] = {code.a, code.b, code.c};
    Value operands[3];
    bool has_value = true;
    for (int k = 0; k < map::arity(code.op); ++k) {
      const std::optional<Value>& value = values[static_cast<std::size_t>(registers[k])];
      has_value &= value.has_value();
      if (value) operands[k] = *value;
    }
    const auto& [a, b, c] = operands;
    std::optional<Value> result;
    if (has_value) {
      switch (code.op) {
        case Op::load:
          result = element.inputs[arg];
          break;
        case Op::scalar:
          result = scalar_value(scalars[arg], code.dtype);
          break;
        case Op::index:
          result = Value{0, element.positions[arg]};
          break;
        case Op::cast:
          result = converted(a, program.code[static_cast<std::size_t>(code.a)].dtype, code.dtype);
          break;
        case Op::less:
        case Op::less_equal:
        case Op::equal:
        case Op::not_equal: {
          const DType dtype = program.code[static_cast<std::size_t>(code.a)].dtype;
          result = Value{0, compared(code.op, dtype, a, b)};
          break;
        }
        case Op::logical_not:
          result = Value{0, 1 - a.integer};
          break;
        case Op::logical_and:
          result = Value{0, a.integer * b.integer};
          break;
        case Op::logical_or:
          result = Value{0, std::max(a.integer, b.integer)};
          break;
        case Op::select:
          result = a.integer != 0 ? b : c;
          break;
        default:
          if (code.dtype == i64) {
            result = integer_result(code.op, a.integer, b.integer);
          } else if (code.dtype == f32) {
            const auto x = static_cast<float>(a.real), y = static_cast<float>(b.real);
            result = Value{arithmetic(code.op, x, y), 0};
          } else {
            result = Value{arithmetic(code.op, a.real, b.real), 0};
          }
      }
    }
    values.push_back(result);
  }
  return values;
}

bool contradicts(const Range& range, DType dtype, const Value& value) {
  if (is_float(dtype) && std::isnan(value.real)) return !range.maybe_nan;
  const Wide x = is_float(dtype) ? static_cast<Wide>(value.real) : value.integer;
  return !(range.low <= x && x <= range.high);
}

bool same_bits(DType dtype, const Value& a, const Value& b) {
  if (!is_float(dtype)) return a.integer == b.integer;
  if (std::isnan(a.real) || std::isnan(b.real)) return std::isnan(a.real) && std::isnan(b.real);
  return a.real == b.real && std::signbit(a.real) == std::signbit(b.real);
}

}  // namespace einkern::test
