// SPDX-License-Identifier: Apache-2.0
// Ranges of i64 operations: exact ends in 128 bits, cut to what does not overflow.
#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

#include "../base/error.h"
#include "interval_ops.h"

namespace einkern::map {
namespace {

__extension__ using Wide = __int128;
constexpr Wide kLeast = std::numeric_limits<std::int64_t>::min();
constexpr Wide kMost = std::numeric_limits<std::int64_t>::max();

struct Integers {
  Wide low, high;
};

/// Doubles beyond 2^53 are whole; 2^63 stands for the number before it.
Integers integers_of(const Range& range) {
  const auto of = [](double end) {
    if (end >= 0x1p63) return kMost;
    return end <= -0x1p63 ? kLeast : static_cast<Wide>(end);
  };
  return {of(range.low), of(range.high)};
}

Range range_of(const Integers& a) {
  return integers(static_cast<std::int64_t>(std::clamp(a.low, kLeast, kMost)),
                  static_cast<std::int64_t>(std::clamp(a.high, kLeast, kMost)));
}

/// What an integer dtype or bool holds; of i64 the end is 2^63, which it does not.
Range all_of(DType dtype) {
  if (dtype == DType::boolean) return {0, 1, false};
  const double end = std::ldexp(1.0, static_cast<int>(size_of(dtype)) * 8 - 1);
  return {-end, dtype == DType::i64 ? end : end - 1, false};
}

template <class F>
Integers corners(const Integers& a, const Integers& b, F f) {
  const auto [low, high] =
      std::minmax({f(a.low, b.low), f(a.low, b.high), f(a.high, b.low), f(a.high, b.high)});
  return {low, high};
}

Wide floor_of_quotient(Wide a, Wide b) {
  const Wide quotient = a / b, rest = a % b;
  return quotient - (rest != 0 && (rest < 0) != (b < 0) ? 1 : 0);
}

Integers floordiv(const Integers& a, const Integers& b) { return corners(a, b, floor_of_quotient); }

/// With divisors of one sign.
Integers mod(const Integers& a, const Integers& b) {
  if (b.low == b.high) {  // within one period it grows
    const Wide quotient = floor_of_quotient(a.low, b.low);
    if (quotient == floor_of_quotient(a.high, b.low)) {
      return {a.low - quotient * b.low, a.high - quotient * b.low};
    }
  }
  if (b.low > 0) return {0, b.high - 1};
  return {b.low + 1, 0};
}

/// Hull of f over the negative and the positive divisors; those that are 0 fault.
template <class F>
Integers over_divisors(const Integers& a, const Integers& b, F f) {
  Integers hull{kMost, kLeast};
  const auto add = [&](const Integers& divisors) {
    if (divisors.low > divisors.high) return;
    const Integers part = f(a, divisors);
    hull = {std::min(hull.low, part.low), std::max(hull.high, part.high)};
  };
  add({b.low, std::min<Wide>(b.high, -1)});
  add({std::max<Wide>(b.low, 1), b.high});
  return hull.low <= hull.high ? hull : Integers{kLeast, kMost};
}

/// base^exponent, or a number beyond i64 of the right sign.
Wide power(Wide base, Wide exponent) {
  const Wide magnitude = base < 0 ? -base : base;
  const bool odd = exponent % 2 != 0;
  Wide result = 1;
  if (magnitude <= 1) {
    result = exponent == 0 ? 1 : magnitude;
  } else {
    for (; exponent > 0 && result <= kMost; --exponent) result *= magnitude;
  }
  return base < 0 && odd ? -result : result;
}

Integers pow(const Integers& a, const Integers& b) {
  if (b.high < 0) return {kLeast, kMost};  // every element faults
  const Integers exponents{std::max<Wide>(b.low, 0), b.high};
  if (a.low >= 1) return {power(a.low, exponents.low), power(a.high, exponents.high)};
  if (exponents.low == exponents.high) {  // falls or grows on either side of 0
    Integers hull = corners(a, exponents, power);
    if (a.high >= 0) {
      const Wide at_0 = power(0, exponents.low);
      hull = {std::min(hull.low, at_0), std::max(hull.high, at_0)};
    }
    return hull;
  }
  const Wide most = std::max<Wide>(power(std::max(-a.low, a.high), b.high), 1);
  return {a.low >= 0 ? 0 : -most, most};
}

Integers apply(Op op, const Integers& a, const Integers& b) {
  switch (op) {
    case Op::neg:
      return {-a.high, -a.low};
    case Op::abs:
      if (a.low <= 0 && a.high >= 0) return {0, std::max(-a.low, a.high)};
      return a.low > 0 ? a : Integers{-a.high, -a.low};
    case Op::add:
      return {a.low + b.low, a.high + b.high};
    case Op::sub:
      return {a.low - b.high, a.high - b.low};
    case Op::mul:
      return corners(a, b, [](Wide x, Wide y) { return x * y; });
    case Op::floordiv:
      return over_divisors(a, b, floordiv);
    case Op::mod:
      return over_divisors(a, b, mod);
    case Op::pow:
      return pow(a, b);
    case Op::maximum:
      return {std::max(a.low, b.low), std::max(a.high, b.high)};
    case Op::minimum:
      return {std::min(a.low, b.low), std::min(a.high, b.high)};
    case Op::random:
      return {0, (Wide{1} << 62) - 1};
    default:
      EINKERN_CHECK(!"an operation on integers");
      return {};
  }
}

/// Are the ends so small that sums and differences of two are exact in doubles?
bool is_small(const Range& range) { return range.low >= -0x1p52 && range.high <= 0x1p52; }

}  // namespace

Range integers(std::int64_t first, std::int64_t last) {
  auto low = static_cast<double>(first);
  auto high = static_cast<double>(last);
  const Range exact{low, high, false};
  if (is_small(exact)) return exact;
  if (static_cast<Wide>(low) > first) low = std::nextafter(low, -HUGE_VAL);
  if (static_cast<Wide>(high) < last) high = std::nextafter(high, HUGE_VAL);
  return {low, high, false};
}

Range integer_range(Op op, const Range& a, const Range& b) {
  // Differences of positions, which decide masks: conversions to 128 bits took a third of the time.
  if ((op == Op::add || op == Op::sub) && is_small(a) && is_small(b)) {
    return op == Op::add ? Range{a.low + b.low, a.high + b.high, false}
                         : Range{a.low - b.high, a.high - b.low, false};
  }
  return range_of(apply(op, integers_of(a), integers_of(b)));
}

bool integer_may_fault(Op op, const Range& a, const Range& b) {
  const Integers x = integers_of(a), y = integers_of(b);
  const bool divides = op == Op::floordiv || op == Op::mod;
  if (divides && y.low <= 0 && y.high >= 0) return true;
  if (op == Op::pow && y.low < 0) return true;
  const Integers result = apply(op, x, y);
  return result.low < kLeast || result.high > kMost;
}

bool exceeds(const Range& range, DType dtype) {
  const Range all = all_of(dtype);
  const bool beyond = dtype == DType::i64 ? range.high >= all.high : range.high > all.high;
  return range.maybe_nan || range.low < all.low || beyond;
}

Range fit_integer(const Range& range, DType dtype) {
  const Range all = all_of(dtype);
  const Range held{std::max(std::ceil(range.low), all.low),
                   std::min(std::floor(range.high), all.high), false};
  return held.low <= held.high ? held : all;
}

}  // namespace einkern::map
