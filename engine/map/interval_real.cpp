// SPDX-License-Identifier: Apache-2.0
// Ranges of float operations: ends by the kernels' own arithmetic, in the kernels' own dtype.
#include <algorithm>
#include <cmath>
#include <limits>

#include "../base/error.h"
#include "interval_ops.h"

namespace einkern::map {
namespace {

template <class T>
constexpr T kInfinity = std::numeric_limits<T>::infinity();

/// A Range with ends of the dtype itself.
template <class T>
struct Interval {
  T low = kInfinity<T>, high = -kInfinity<T>;  // no number
  bool maybe_nan = false;

  bool is_empty() const { return !(low <= high); }
  bool holds(T x) const { return low <= x && x <= high; }
  bool holds_infinity() const {
    return !is_empty() && (low == -kInfinity<T> || high == kInfinity<T>);
  }
  void add(T x) {
    low = std::min(low, x);
    high = std::max(high, x);
  }
};

template <class T>
constexpr Interval<T> kOnlyNan{kInfinity<T>, -kInfinity<T>, true};

// The functions err by up to 3 units in the last place (kernel/math-inl.h), libm by less than 1; a
// unit is at most epsilon, relatively, and never less than the least denormal.
template <class T>
T slack(T end) {
  using Limits = std::numeric_limits<T>;
  return std::abs(end) * (8 * Limits::epsilon()) + 8 * Limits::denorm_min();
}
/// Ends of a function that is only nearly right. A finite value may stand where libm overflows.
template <class T>
T widen_low(T end) {
  end = std::min(end, std::numeric_limits<T>::max());
  return end - slack(end);
}
template <class T>
T widen_high(T end) {
  end = std::max(end, std::numeric_limits<T>::lowest());
  return end + slack(end);
}
template <class T>
Interval<T> widen(const Interval<T>& a) {
  if (a.is_empty()) return a;
  return {widen_low(a.low), widen_high(a.high), a.maybe_nan};
}

/// Of a function that grows with x, nearly right, with values in [least, most] and these exactly at
/// the infinities.
template <class T>
Interval<T> growing(const Interval<T>& a, double (*function)(double), T least, T most) {
  const auto at = [&](T x) { return static_cast<T>(function(static_cast<double>(x))); };
  return {a.low == kInfinity<T> ? most : std::max(widen_low(at(a.low)), least),
          a.high == -kInfinity<T> ? least : std::min(widen_high(at(a.high)), most), a.maybe_nan};
}

double sigmoid(double x) {
  const double e = std::exp(-std::abs(x));  // never overflows
  return (x < 0 ? e : 1) / (1 + e);
}

template <class T>
Interval<T> log(const Interval<T>& a) {
  if (a.high < 0) return kOnlyNan<T>;
  const auto at = [](T x) { return static_cast<T>(std::log(static_cast<double>(x))); };
  return {a.low <= 0 ? -kInfinity<T> : widen_low(at(a.low)),
          a.high == 0 ? -kInfinity<T> : widen_high(at(a.high)), a.maybe_nan || a.low < 0};
}

template <class T>
Interval<T> sqrt(const Interval<T>& a) {
  if (a.high < 0) return kOnlyNan<T>;
  return {std::sqrt(std::max(a.low, T{0})), std::sqrt(a.high), a.maybe_nan || a.low < 0};
}

template <class T>
Interval<T> rsqrt(const Interval<T>& a) {
  const Interval<T> root = sqrt(a);
  if (root.is_empty()) return root;
  if (a.low <= 0) return {-kInfinity<T>, kInfinity<T>, root.maybe_nan};  // of -0 it is -inf
  return widen<T>({1 / root.high, 1 / root.low, root.maybe_nan});
}

template <class T>
Interval<T> abs(const Interval<T>& a) {
  const T low = std::abs(a.low), high = std::abs(a.high);
  return {a.holds(0) ? T{0} : std::min(low, high), std::max(low, high), a.maybe_nan};
}

template <class T>
Interval<T> add(const Interval<T>& a, const Interval<T>& b) {
  T low = a.low + b.low, high = a.high + b.high;
  // An end is inf - inf only when one operand is that infinity alone, and so is every sum but NaN.
  if (std::isnan(low)) low = kInfinity<T>;
  if (std::isnan(high)) high = -kInfinity<T>;
  const bool opposite = (a.low == -kInfinity<T> && b.high == kInfinity<T>) ||
                        (a.high == kInfinity<T> && b.low == -kInfinity<T>);
  return {low, high, a.maybe_nan || b.maybe_nan || opposite};
}

/// Hull of f at the four corners: right for what is monotone in each operand. NaN is left out.
template <class T, class F>
Interval<T> corners(const Interval<T>& a, const Interval<T>& b, F f) {
  Interval<T> hull{.maybe_nan = a.maybe_nan || b.maybe_nan};
  for (const T x : {a.low, a.high}) {
    for (const T y : {b.low, b.high}) {
      if (const T value = f(x, y); !std::isnan(value)) hull.add(value);
    }
  }
  return hull;
}

template <class T>
Interval<T> mul(const Interval<T>& a, const Interval<T>& b) {
  // 0 * inf is NaN, but 0 times the finite numbers beside it is 0.
  auto product = corners(a, b, [](T x, T y) { return x == 0 || y == 0 ? T{0} : x * y; });
  product.maybe_nan |= (a.holds(0) && b.holds_infinity()) || (b.holds(0) && a.holds_infinity());
  return product;
}

template <class T>
Interval<T> div(const Interval<T>& a, const Interval<T>& b) {
  const bool nan = a.maybe_nan || b.maybe_nan;
  if (b.holds(0)) {  // of either sign
    return {-kInfinity<T>, kInfinity<T>,
            nan || a.holds(0) || (a.holds_infinity() && b.holds_infinity())};
  }
  // inf / inf is NaN; finite / inf and inf / finite are at other corners.
  auto quotient = corners(a, b, [](T x, T y) { return x / y; });
  if (a.holds_infinity() && b.holds_infinity()) {
    quotient.maybe_nan = true;
    if (a.low < a.high) quotient.add(0);  // both corners of -inf .. inf by inf are NaN
  }
  return quotient;
}

/// floor(a / b) with its limits at infinities; b is not 0.
template <class T>
T floor_of_quotient(T a, T b) {
  const bool differ = std::signbit(a) != std::signbit(b);
  if (std::isinf(b)) return a == 0 || !differ ? T{0} : T{-1};
  if (std::isinf(a)) return a / b;
  const T rest = std::fmod(a, b);
  const T quotient = std::round((a - rest) / b);
  return rest != 0 && (rest < 0) != (b < 0) ? quotient - 1 : quotient;
}

template <class T>
Interval<T> floordiv(const Interval<T>& a, const Interval<T>& b) {
  const bool nan = a.maybe_nan || b.maybe_nan || a.holds_infinity();
  if (b.holds(0)) return {-kInfinity<T>, kInfinity<T>, nan || a.holds(0)};
  auto floor = corners(a, b, floor_of_quotient<T>);
  // From here on the kernel's quotient is not always the nearest whole number.
  const T exact = 1 / (16 * std::numeric_limits<T>::epsilon());
  if (floor.low < -exact || floor.high > exact) floor = widen(floor);
  floor.maybe_nan = nan;
  return floor;
}

/// The remainder has the sign of b; one rounded up is b itself.
template <class T>
Interval<T> mod(const Interval<T>& a, const Interval<T>& b) {
  const bool nan = a.maybe_nan || b.maybe_nan || a.holds_infinity() || b.holds(0);
  if (b.low == 0 && b.high == 0) return kOnlyNan<T>;
  if (a.low >= 0 && a.high < b.low) return {a.low, a.high, nan};
  return {std::min(b.low, T{0}), std::max(b.high, T{0}), nan};
}

template <class T>
Interval<T> pow_of_numbers(const Interval<T>& a, const Interval<T>& b) {
  const auto power = [](T x, T y) { return std::pow(x, y); };
  const bool nan = a.maybe_nan || b.maybe_nan;
  if (a.low > 0 || (a.low == 0 && b.low >= 0)) return widen(corners(a, b, power));
  const bool whole = b.low == b.high && std::isfinite(b.low) && std::trunc(b.low) == b.low;
  if (!whole) return {-kInfinity<T>, kInfinity<T>, nan || a.low < 0};
  if (b.low < 0 && a.holds(0)) return {-kInfinity<T>, kInfinity<T>, nan};  // of -0: -inf
  auto result = widen(corners(a, b, power));  // falls or grows on either side of 0
  if (a.holds(0)) result.add(b.low == 0 ? T{1} : T{0});
  return result;
}

template <class T>
Interval<T> pow(const Interval<T>& a, const Interval<T>& b) {
  Interval<T> result{.maybe_nan = a.maybe_nan || b.maybe_nan};
  if (!a.is_empty() && !b.is_empty()) result = pow_of_numbers(a, b);
  if ((a.maybe_nan && b.holds(0)) || (b.maybe_nan && a.holds(1))) result.add(1);
  return result;
}

template <class T>
Interval<T> apply(Op op, const Interval<T>& a, const Interval<T>& b) {
  const bool nan = a.maybe_nan || b.maybe_nan;
  if (op == Op::pow) return pow(a, b);  // the one that is a number at NaN: NaN^0 and 1^NaN are 1
  if (a.is_empty() || b.is_empty()) return kOnlyNan<T>;
  switch (op) {
    case Op::neg:
      return {-a.high, -a.low, a.maybe_nan};
    case Op::abs:
      return abs(a);
    case Op::exp:
      return growing<T>(a, std::exp, 0, kInfinity<T>);
    case Op::log:
      return log(a);
    case Op::sqrt:
      return sqrt(a);
    case Op::rsqrt:
      return rsqrt(a);
    case Op::sin:
    case Op::cos:
      return {-1, 1, nan || a.holds_infinity()};
    case Op::tanh:
      return growing<T>(a, std::tanh, -1, 1);
    case Op::sigmoid:
      return growing<T>(a, sigmoid, 0, 1);
    case Op::erf:
      return growing<T>(a, std::erf, -1, 1);
    case Op::add:
      return add(a, b);
    case Op::sub:
      return add(a, {-b.high, -b.low, b.maybe_nan});
    case Op::mul:
      return mul(a, b);
    case Op::div:
      return div(a, b);
    case Op::floordiv:
      return floordiv(a, b);
    case Op::mod:
      return mod(a, b);
    case Op::maximum:
      return {std::max(a.low, b.low), std::max(a.high, b.high), nan};
    case Op::minimum:
      return {std::min(a.low, b.low), std::min(a.high, b.high), nan};
    default:
      EINKERN_CHECK(!"an operation on floats");
      return {};
  }
}

/// A denormal may be read or written as 0: a range that holds one holds 0.
template <class T>
Range settled(const Interval<T>& a) {
  if (a.is_empty()) return {kInfinity<double>, -kInfinity<double>, a.maybe_nan};
  constexpr T kNormal = std::numeric_limits<T>::min();
  const bool tiny_low = (a.low > 0) && (a.low < kNormal);
  const bool tiny_high = (a.high < 0) && (a.high > -kNormal);
  const T low = tiny_low ? T{0} : a.low, high = tiny_high ? T{0} : a.high;
  return {static_cast<double>(low), static_cast<double>(high), a.maybe_nan};
}

template <class T>
Interval<T> interval(const Range& range) {
  return {static_cast<T>(range.low), static_cast<T>(range.high), range.maybe_nan};
}

/// Rounding to 16 bits keeps the order of numbers.
template <class T>
Interval<float> rounded(const Range& range) {
  return {widen(static_cast<T>(range.low)), widen(static_cast<T>(range.high)), range.maybe_nan};
}

template <class T>
Range fit(const Range& range) {
  Interval<T> fitted = interval<T>(range);
  if (fitted.low > range.low) fitted.low = std::nextafter(fitted.low, -kInfinity<T>);
  if (fitted.high < range.high) fitted.high = std::nextafter(fitted.high, kInfinity<T>);
  return settled(fitted);
}

}  // namespace

Range real_range(Op op, DType dtype, const Range& a, const Range& b) {
  if (dtype == DType::f32) return settled(apply(op, interval<float>(a), interval<float>(b)));
  return settled(apply(op, interval<double>(a), interval<double>(b)));
}

Range fit_real(const Range& range, DType dtype) {
  if (range.low > range.high) return settled(Interval<double>{.maybe_nan = range.maybe_nan});
  return dtype == DType::f32 ? fit<float>(range) : fit<double>(range);
}

Range round_to_real(const Range& range, DType dtype) {
  if (dtype == DType::f16) return settled(rounded<Float16>(range));
  if (dtype == DType::bf16) return settled(rounded<BFloat16>(range));
  return dtype == DType::f32 ? settled(interval<float>(range)) : settled(interval<double>(range));
}

}  // namespace einkern::map
