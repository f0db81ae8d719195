// SPDX-License-Identifier: Apache-2.0
// Walks a program over a box: from ranges of its sources to a range of every register.
#include "interval.h"

#include <algorithm>
#include <cmath>

#include "../base/error.h"
#include "interval_ops.h"

namespace einkern::map {
namespace {

Range boolean_range(bool maybe_false, bool maybe_true) {
  return {maybe_false ? 0.0 : 1.0, maybe_true ? 1.0 : 0.0, false};
}

bool holds_number(const Range& a) { return a.low <= a.high; }

/// As the kernels fill a register with a scalar.
Range of_scalar(const Scalar& scalar, DType dtype) {
  const bool real = scalar.dtype == DType::f64;
  if (is_float(dtype)) {
    const double value =
        dtype == DType::f32 ? static_cast<double>(static_cast<float>(scalar.real)) : scalar.real;
    return std::isnan(value) ? fit_real({1, 0, true}, dtype)
                             : fit_real({value, value, false}, dtype);
  }
  if (dtype == DType::boolean) {
    const bool value = real ? scalar.real != 0 : scalar.integer != 0;
    return boolean_range(!value, value);
  }
  if (!real) return integers(scalar.integer, scalar.integer);
  const double whole = std::trunc(scalar.real);
  return fit_integer({whole, whole, false}, dtype);
}

/// Beyond 2^53 a caller's ends are integers rounded to a double: the next ones are safe.
Range of_input(Range input, DType dtype) {
  if (is_float(dtype)) return fit_real(input, dtype);
  if (std::abs(input.low) >= 0x1p53) input.low = std::nextafter(input.low, -HUGE_VAL);
  if (std::abs(input.high) >= 0x1p53) input.high = std::nextafter(input.high, HUGE_VAL);
  return fit_integer(input, dtype);
}

Range cast(const Range& a, DType from, DType to) {
  if (to == DType::boolean) {
    const bool numbers = holds_number(a);
    return boolean_range(numbers && a.low <= 0 && a.high >= 0,
                         a.maybe_nan || (numbers && (a.low < 0 || a.high > 0)));
  }
  if (is_float(to)) return round_to_real(a, to);
  // NaN and what `to` cannot hold fault.
  return is_float(from) ? fit_integer({std::trunc(a.low), std::trunc(a.high), false}, to)
                        : fit_integer(a, to);
}

/// Decided only when it holds, or fails, for every pair; NaN is unequal and unordered.
Range compare(Op op, const Range& a, const Range& b) {
  const bool numbers = holds_number(a) && holds_number(b);
  const bool nan = a.maybe_nan || b.maybe_nan;
  switch (op) {
    case Op::less:
      return boolean_range(nan || (numbers && a.high >= b.low), numbers && a.low < b.high);
    case Op::less_equal:
      return boolean_range(nan || (numbers && a.high > b.low), numbers && a.low <= b.high);
    default: {
      const bool maybe_equal = numbers && a.low <= b.high && b.low <= a.high;
      const bool maybe_unequal =
          nan || !maybe_equal || a.low != a.high || b.low != b.high;  // points that meet are equal
      return op == Op::equal ? boolean_range(maybe_unequal, maybe_equal)
                             : boolean_range(maybe_equal, maybe_unequal);
    }
  }
}

Range select(const Range& condition, const Range& yes, const Range& no) {
  if (is_surely_true(condition)) return yes;
  if (is_surely_false(condition)) return no;
  return {std::min(yes.low, no.low), std::max(yes.high, no.high), yes.maybe_nan || no.maybe_nan};
}

}  // namespace

bool is_minus_infinity(const Range& range) noexcept {
  return range.high == -std::numeric_limits<double>::infinity() && range.low == range.high &&
         !range.maybe_nan;
}
bool is_surely_true(const Range& range) noexcept { return range.low > 0; }
bool is_surely_false(const Range& range) noexcept { return range.high <= 0; }

std::vector<Range> evaluate_ranges(const Program& program, std::span<const IndexRange> axes,
                                   std::span<const Range> inputs, std::span<const Scalar> scalars) {
  std::vector<Range> ranges;
  evaluate_ranges(program, axes, inputs, scalars, ranges);
  return ranges;
}

void evaluate_ranges(const Program& program, std::span<const IndexRange> axes,
                     std::span<const Range> inputs, std::span<const Scalar> scalars,
                     std::vector<Range>& ranges) {
  ranges.clear();
  ranges.reserve(program.code.size());
  const auto at = [&](std::int32_t r) -> const Range& {
    return ranges[static_cast<std::size_t>(r)];
  };
  for (const Instruction& code : program.code) {
    const auto arg = static_cast<std::size_t>(code.arg);
    switch (code.op) {
      case Op::load:
        EINKERN_CHECK(arg < inputs.size());
        ranges.push_back(of_input(inputs[arg], code.dtype));
        break;
      case Op::scalar:
        EINKERN_CHECK(arg < scalars.size());
        ranges.push_back(of_scalar(scalars[arg], code.dtype));
        break;
      case Op::index:
        EINKERN_CHECK(arg < axes.size() && axes[arg].first <= axes[arg].last);
        ranges.push_back(integers(axes[arg].first, axes[arg].last));
        break;
      case Op::cast:
        ranges.push_back(
            cast(at(code.a), program.code[static_cast<std::size_t>(code.a)].dtype, code.dtype));
        break;
      case Op::less:
      case Op::less_equal:
      case Op::equal:
      case Op::not_equal:
        ranges.push_back(compare(code.op, at(code.a), at(code.b)));
        break;
      case Op::logical_not:
        ranges.push_back({1 - at(code.a).high, 1 - at(code.a).low, false});
        break;
      case Op::logical_and:
        ranges.push_back({std::min(at(code.a).low, at(code.b).low),
                          std::min(at(code.a).high, at(code.b).high), false});
        break;
      case Op::logical_or:
        ranges.push_back({std::max(at(code.a).low, at(code.b).low),
                          std::max(at(code.a).high, at(code.b).high), false});
        break;
      case Op::select:
        ranges.push_back(select(at(code.a), at(code.b), at(code.c)));
        break;
      default: {
        const Range& a = at(code.a);
        const Range& b = arity(code.op) == 2 ? at(code.b) : a;
        ranges.push_back(is_float(code.dtype) ? real_range(code.op, code.dtype, a, b)
                                              : integer_range(code.op, a, b));
      }
    }
  }
}

bool may_fault(const Program& program, const std::vector<Range>& ranges) {
  EINKERN_CHECK(ranges.size() == program.code.size());
  const auto at = [&](std::int32_t r) { return static_cast<std::size_t>(r); };
  for (const Instruction& code : program.code) {
    if (code.op == Op::cast && is_integer(code.dtype)) {
      Range operand = ranges[at(code.a)];
      const DType from = program.code[at(code.a)].dtype;
      if (is_float(from))
        operand = {std::trunc(operand.low), std::trunc(operand.high), operand.maybe_nan};
      const bool widens = !is_float(from) && size_of(from) <= size_of(code.dtype);
      if (!widens && exceeds(operand, code.dtype)) return true;
    } else if (code.dtype == DType::i64 && arity(code.op) > 0 && code.op != Op::cast &&
               code.op != Op::select) {
      const Range& a = ranges[at(code.a)];
      if (integer_may_fault(code.op, a, arity(code.op) == 2 ? ranges[at(code.b)] : a)) return true;
    }
  }
  return false;
}

}  // namespace einkern::map
