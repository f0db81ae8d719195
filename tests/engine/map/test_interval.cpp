// SPDX-License-Identifier: Apache-2.0
// Ranges against elements: ends of every operation, and random programs that must never contradict.
#include "../../../engine/map/interval.h"

#include <doctest/doctest.h>

#include <array>
#include <cmath>
#include <limits>
#include <string>

#include "../../support/extremes.h"
#include "../../support/sanitizer.h"
#include "random_program.h"

using namespace einkern;
using namespace einkern::test;
using namespace einkern::map;

namespace {

constexpr Range kNan{kInfinity, -kInfinity, true};

/// Range of one operation over inputs of one dtype.
Range range_of(Op op, DType dtype, const Range& a, const Range& b = {}) {
  Program program;
  program.emit({Op::load, dtype});
  if (arity(op) == 2) program.emit({.op = Op::load, .dtype = dtype, .arg = 1});
  const bool compares = op >= Op::less && op <= Op::not_equal;
  program.emit({op, compares ? boolean : dtype, 0, arity(op) == 2 ? 1 : -1});
  const Range inputs[] = {a, b};
  verify(program, 2, 0, 0);
  return evaluate_ranges(program, {}, inputs, {}).back();
}

Range cast_of(DType from, DType to, const Range& a) {
  Program program;
  program.emit({Op::load, from});
  program.emit({Op::cast, to, 0});
  return evaluate_ranges(program, {}, std::span(&a, 1), {}).back();
}

Range numbers(double low, double high) { return {low, high, false}; }

/// One value, or as near to it as functions that are nearly right come.
bool is_narrow(const Range& range) {
  return range.low == range.high || range.high - range.low <= 1e-5 * std::abs(range.high);
}

/// The range holds [low, high] and is wider by no more than the parts of it given.
void check_around(const Range& range, double low, double high, double slack) {
  CHECK(range.low <= low);
  CHECK(range.high >= high);
  CHECK(range.low >= low - std::abs(low) * slack - 1e-300);
  CHECK(range.high <= high + std::abs(high) * slack + 1e-300);
  CHECK_FALSE(range.maybe_nan);
}

}  // namespace

namespace doctest {
template <>
struct StringMaker<Range> {
  static String convert(const Range& range) {
    return (std::to_string(range.low) + " .. " + std::to_string(range.high) +
            (range.maybe_nan ? " or NaN" : ""))
        .c_str();
  }
};
}  // namespace doctest

TEST_SUITE("map") {
  TEST_CASE("sources: scalars in their dtype, positions, inputs within their dtype") {
    Program program;
    program.emit({Op::scalar, f32});
    program.emit({.op = Op::scalar, .dtype = f64, .arg = 0});
    program.emit({.op = Op::scalar, .dtype = f64, .arg = 1});
    program.emit({.op = Op::scalar, .dtype = i64, .arg = 2});
    program.emit({.op = Op::scalar, .dtype = boolean, .arg = 3});
    program.emit({.op = Op::index, .dtype = i64, .arg = 1});
    program.emit({.op = Op::load, .dtype = i8, .arg = 0});
    program.emit({.op = Op::load, .dtype = f32, .arg = 1});
    program.emit({.op = Op::load, .dtype = boolean, .arg = 0});
    program.emit({.op = Op::load, .dtype = f32, .arg = 2});
    const Scalar scalars[] = {Scalar::of(0.1), Scalar::of(std::nan("")),
                              Scalar::of((std::int64_t{1} << 53) + 1), Scalar::of(true)};
    const IndexRange axes[] = {{0, 1}, {5, 9}};
    const Range inputs[] = {kAnything, {0.1, 0.1, false}, {1e-44, 2, true}};
    const std::vector<Range> ranges = evaluate_ranges(program, axes, inputs, scalars);
    const auto tenth = static_cast<double>(0.1f);
    CHECK(ranges[0] == Range{tenth, tenth, false});
    CHECK(ranges[1] == Range{0.1, 0.1, false});
    CHECK(ranges[2] == kNan);
    CHECK(ranges[3] == Range{0x1p53, 0x1p53 + 2, false});
    CHECK(ranges[4] == Range{1, 1, false});
    CHECK(ranges[5] == Range{5, 9, false});
    CHECK(ranges[6] == Range{-128, 127, false});
    CHECK(ranges[7] == Range{static_cast<double>(std::nextafter(0.1f, 0.0f)), tenth, false});
    CHECK(ranges[8] == Range{0, 1, false});
    CHECK(ranges[9] == Range{0, 2, true});  // a denormal may be read as 0
  }

  TEST_CASE("arithmetic of floats has the kernels' ends") {
    const auto sum = static_cast<double>(0.1f + 0.2f);
    const auto a = static_cast<double>(0.1f), b = static_cast<double>(0.2f);
    CHECK(range_of(Op::add, f32, {a, a}, {b, b}) == numbers(sum, sum));
    CHECK(range_of(Op::add, f64, {0.1, 1}, {0.2, 2}) == numbers(0.1 + 0.2, 3));
    CHECK(range_of(Op::add, f32, {0x1p127, 0x1p127}, {0, 0x1p127}) == numbers(0x1p127, kInfinity));
    CHECK(range_of(Op::sub, f64, {1, 2}, {10, 20}) == numbers(-19, -8));
    CHECK(range_of(Op::mul, f64, {-2, 3}, {-5, 7}) == numbers(-15, 21));
    CHECK(range_of(Op::div, f64, {1, 2}, {-4, -2}) == numbers(-1, -0.25));
    CHECK(range_of(Op::neg, f64, {1, 2, true}) == Range{-2, -1, true});
    CHECK(range_of(Op::abs, f64, {-3, 2}) == numbers(0, 3));
    CHECK(range_of(Op::abs, f64, {-3, -2}) == numbers(2, 3));
    CHECK(range_of(Op::maximum, f64, {1, 5, true}, {3, 4}) == Range{3, 5, true});
    CHECK(range_of(Op::minimum, f64, {1, 5}, {3, 4}) == numbers(1, 4));
    CHECK(range_of(Op::floordiv, f64, {-7, 7}, {2, 2}) == numbers(-4, 3));
    CHECK(range_of(Op::floordiv, f64, {1, 5}, {kInfinity, kInfinity}) == numbers(0, 0));
    CHECK(range_of(Op::floordiv, f64, {-1, 5}, {kInfinity, kInfinity}) == numbers(-1, 0));
    CHECK(range_of(Op::mod, f64, {-7, 7}, {2, 3}) == numbers(0, 3));
    CHECK(range_of(Op::mod, f64, {1, 1.5}, {2, 3}) == numbers(1, 1.5));
    CHECK(range_of(Op::mod, f64, {-7, 7}, {-3, -2}) == numbers(-3, 0));
    CHECK(range_of(Op::sqrt, f32, {2, 4}) == numbers(static_cast<double>(std::sqrt(2.0f)), 2));
  }

  TEST_CASE("infinities and zeros give NaN where they do") {
    CHECK(range_of(Op::add, f64, {-kInfinity, 0}, {1, kInfinity}) ==
          Range{-kInfinity, kInfinity, true});
    CHECK(range_of(Op::add, f64, {-kInfinity, -kInfinity}, {1, 2}) ==
          numbers(-kInfinity, -kInfinity));
    CHECK(range_of(Op::add, f64, {-kInfinity, -kInfinity}, {1, kInfinity}) ==
          Range{-kInfinity, -kInfinity, true});
    CHECK(range_of(Op::sub, f64, {kInfinity, kInfinity}, {kInfinity, kInfinity}) == kNan);
    CHECK(range_of(Op::mul, f64, {0, 5}, {kInfinity, kInfinity}) == Range{0, kInfinity, true});
    CHECK(range_of(Op::mul, f64, {1, 5}, {-kInfinity, -kInfinity}) ==
          numbers(-kInfinity, -kInfinity));
    CHECK(range_of(Op::mul, f64, {0, 0}, {-kInfinity, kInfinity}) == Range{0, 0, true});
    CHECK(range_of(Op::div, f64, {1, 2}, {0, 1}) == numbers(-kInfinity, kInfinity));
    CHECK(range_of(Op::div, f64, {0, 2}, {0, 1}) == Range{-kInfinity, kInfinity, true});
    CHECK(range_of(Op::div, f64, {kInfinity, kInfinity}, {kInfinity, kInfinity}) == kNan);
    CHECK(range_of(Op::div, f64, {1, kInfinity}, {2, kInfinity}) == Range{0, kInfinity, true});
    CHECK(range_of(Op::div, f64, {-kInfinity, kInfinity}, {kInfinity, kInfinity}) ==
          Range{0, 0, true});
    CHECK(range_of(Op::floordiv, f64, {kInfinity, kInfinity}, {1, 1}).maybe_nan);
    CHECK(range_of(Op::mod, f64, {1, 2}, {0, 0}) == kNan);
    CHECK(range_of(Op::mod, f64, {1, kInfinity}, {1, 2}) == Range{0, 2, true});
    CHECK(range_of(Op::sqrt, f64, {-1, 4}) == Range{0, 2, true});
    CHECK(range_of(Op::sqrt, f64, {-2, -1}) == kNan);
    CHECK(range_of(Op::log, f64, {-2, -1}) == kNan);
    CHECK(range_of(Op::log, f32, {0, 0}) == numbers(-kInfinity, -kInfinity));
    CHECK(range_of(Op::log, f32, {-1, 0}) == Range{-kInfinity, -kInfinity, true});
    CHECK(range_of(Op::rsqrt, f64, {0, 4}) == numbers(-kInfinity, kInfinity));
    CHECK(range_of(Op::exp, f64, kNan) == kNan);
    CHECK(range_of(Op::sin, f64, {0, 1}) == numbers(-1, 1));
    CHECK(range_of(Op::cos, f32, {0, kInfinity}) == Range{-1, 1, true});
    CHECK(range_of(Op::maximum, f64, kNan, {1, 2}) == kNan);
  }

  TEST_CASE("functions that are nearly right are widened, within their values") {
    const double unit = 0x1p-23;
    check_around(range_of(Op::exp, f32, {-1, 2}), std::exp(-1.0), std::exp(2.0), 10 * unit);
    check_around(range_of(Op::log, f32, {2, 3}), std::log(2.0), std::log(3.0), 10 * unit);
    check_around(range_of(Op::rsqrt, f32, {4, 16}), 0.25, 0.5, 10 * unit);
    check_around(range_of(Op::pow, f32, {2, 3}, {2, 3}), 4, 27, 10 * unit);
    check_around(range_of(Op::pow, f64, {-3, 2}, {2, 2}), 0, 9, 0x1p-48);
    check_around(range_of(Op::pow, f64, {-3, 2}, {3, 3}), -27, 8, 0x1p-48);
    check_around(range_of(Op::pow, f64, {-4, -2}, {-1, -1}), -0.5, -0.25, 0x1p-48);
    CHECK(range_of(Op::exp, f32, {-kInfinity, -200}).low == 0);
    CHECK(range_of(Op::exp, f32, {-kInfinity, -200}).high < 1e-40);
    CHECK(range_of(Op::exp, f32, {-kInfinity, -kInfinity}) == numbers(0, 0));
    CHECK(range_of(Op::exp, f32, {88.8, 100}).low < 3.41e38);  // the kernel may still be finite
    CHECK(range_of(Op::tanh, f64, {-kInfinity, 100}) == numbers(-1, 1));
    CHECK(range_of(Op::sigmoid, f64, {-kInfinity, kInfinity}) == numbers(0, 1));
    CHECK(range_of(Op::sigmoid, f64, {-740, -735}).high > 5e-320);
    CHECK(range_of(Op::erf, f32, {-kInfinity, kInfinity}) == numbers(-1, 1));
  }

  TEST_CASE("pow is a number at NaN to the 0 and 1 to the NaN") {
    CHECK(range_of(Op::pow, f64, kNan, {1, 2}) == kNan);
    CHECK(range_of(Op::pow, f64, kNan, {0, 2}) == Range{1, 1, true});
    CHECK(range_of(Op::pow, f64, {1, 2}, kNan) == Range{1, 1, true});
    CHECK(range_of(Op::pow, f64, {2, 3}, kNan) == kNan);
    CHECK(range_of(Op::pow, f64, {-1, 3}, {0.5, 0.5}) == kAnything);
    CHECK(range_of(Op::pow, f64, {0, 1}, {-1, 1}) == numbers(-kInfinity, kInfinity));  // (-0)^-1
  }

  TEST_CASE("integers are exact up to 2^53, rounded outward beyond, and cut at overflow") {
    CHECK(range_of(Op::add, i64, {1, 2}, {-5, 7}) == numbers(-4, 9));
    CHECK(range_of(Op::sub, i64, {1, 2}, {-5, 7}) == numbers(-6, 7));
    CHECK(range_of(Op::mul, i64, {-3, 2}, {-5, 7}) == numbers(-21, 15));
    CHECK(range_of(Op::add, i64, {0x1p53, 0x1p53}, {1, 1}) == numbers(0x1p53, 0x1p53 + 4));
    CHECK(range_of(Op::mul, i64, {0, 0x1p62}, {4, 4}) == numbers(0, 0x1p63));
    CHECK(range_of(Op::neg, i64, {-0x1p63, 3}) == numbers(-3, 0x1p63));
    CHECK(range_of(Op::abs, i64, {-3, 2}) == numbers(0, 3));
    CHECK(range_of(Op::abs, i64, {-3, -2}) == numbers(2, 3));
    CHECK(range_of(Op::floordiv, i64, {-7, 7}, {2, 2}) == numbers(-4, 3));
    CHECK(range_of(Op::floordiv, i64, {6, 7}, {-2, 3}) == numbers(-7, 7));
    CHECK(range_of(Op::floordiv, i64, {6, 7}, {0, 0}) == numbers(-0x1p63, 0x1p63));
    CHECK(range_of(Op::mod, i64, {17, 20}, {16, 16}) == numbers(1, 4));
    CHECK(range_of(Op::mod, i64, {15, 17}, {16, 16}) == numbers(0, 15));
    CHECK(range_of(Op::mod, i64, {-3, 5}, {-4, 3}) == numbers(-3, 2));
    CHECK(range_of(Op::pow, i64, {2, 3}, {2, 4}) == numbers(4, 81));
    CHECK(range_of(Op::pow, i64, {-3, 2}, {2, 2}) == numbers(0, 9));
    CHECK(range_of(Op::pow, i64, {-3, 2}, {3, 3}) == numbers(-27, 8));
    CHECK(range_of(Op::pow, i64, {-3, 2}, {0, 3}) == numbers(-27, 27));
    CHECK(range_of(Op::pow, i64, {10, 10}, {100, 100}).low > 9.2e18);  // every element faults
    CHECK(range_of(Op::maximum, i64, {1, 5}, {3, 4}) == numbers(3, 5));
    CHECK(range_of(Op::minimum, i64, {1, 5}, {3, 4}) == numbers(1, 4));
  }

  TEST_CASE("integer operations and casts that may fault are told") {
    const auto faults = [](Op op, const Range& a, const Range& b) {
      Program program;
      program.emit({Op::load, i64});
      program.emit({.op = Op::load, .dtype = i64, .arg = 1});
      program.emit({op, i64, 0, arity(op) == 2 ? 1 : -1});
      const Range inputs[] = {a, b};
      return may_fault(program, evaluate_ranges(program, {}, inputs, {}));
    };
    const Range small{-1000, 1000, false}, large{0, 0x1p62, false};
    CHECK_FALSE(faults(Op::add, small, large));
    CHECK(faults(Op::add, large, large));
    CHECK(faults(Op::sub, {-0x1p63, 0, false}, small));
    CHECK(faults(Op::mul, {0, 2, false}, large));
    CHECK_FALSE(faults(Op::mul, {0, 1, false}, large));
    CHECK(faults(Op::neg, {-0x1p63, 0, false}, {}));
    CHECK_FALSE(faults(Op::abs, small, {}));
    CHECK(faults(Op::floordiv, large, small));
    CHECK_FALSE(faults(Op::floordiv, small, {1, 9, false}));
    CHECK(faults(Op::floordiv, {-0x1p63, 0, false}, {-1, -1, false}));
    CHECK(faults(Op::mod, small, {0, 1, false}));
    CHECK_FALSE(faults(Op::mod, kAnything, {-2, -1, false}));
    CHECK(faults(Op::pow, small, {-1, 2, false}));
    CHECK_FALSE(faults(Op::pow, small, {0, 6, false}));
    CHECK(faults(Op::pow, small, {0, 7, false}));
    CHECK_FALSE(faults(Op::maximum, kAnything, kAnything));
    const auto cast_faults = [](DType from, DType to, const Range& a) {
      Program program;
      program.emit({Op::load, from});
      program.emit({Op::cast, to, 0});
      return may_fault(program, evaluate_ranges(program, {}, std::span(&a, 1), {}));
    };
    CHECK_FALSE(cast_faults(f64, i8, {-128.5, 127.5}));
    CHECK(cast_faults(f64, i8, {-129, 0}));
    CHECK(cast_faults(f64, i8, {0, 1, true}));
    CHECK(cast_faults(f64, i64, {0, 0x1p63}));
    CHECK_FALSE(cast_faults(f64, boolean, kAnything));
    CHECK_FALSE(cast_faults(i64, f32, kAnything));
    CHECK_FALSE(cast_faults(i64, i64, kAnything));
    CHECK(cast_faults(i64, i32, kAnything));
    CHECK_FALSE(cast_faults(i64, i32, {-5, 0x1p31 - 1}));
  }

  TEST_CASE("casts round, cut off fractions and leave out what does not fit") {
    CHECK(cast_of(f64, boolean, {0, 0}) == numbers(0, 0));
    CHECK(cast_of(f64, boolean, {1, 2, true}) == numbers(1, 1));
    CHECK(cast_of(f64, boolean, {-1, 2}) == numbers(0, 1));
    CHECK(cast_of(f64, boolean, kNan) == numbers(1, 1));
    CHECK(cast_of(f64, boolean, {0, 0, true}) == numbers(0, 1));
    CHECK(cast_of(f64, i64, {-1.5, 2.5, true}) == numbers(-1, 2));
    CHECK(cast_of(f64, i8, {-1e9, 2.5}) == numbers(-128, 2));
    CHECK(cast_of(f64, i8, {1000, 2000}) == numbers(-128, 127));  // every element faults
    CHECK(cast_of(f64, f32, {0.1, 1e300}) == numbers(static_cast<double>(0.1f), kInfinity));
    CHECK(cast_of(i64, f32, {0x1p24 + 1, 0x1p24 + 3}) == numbers(0x1p24, 0x1p24 + 4));
    CHECK(cast_of(boolean, f32, {0, 1}) == numbers(0, 1));
    CHECK(cast_of(i32, i8, {-5, 1000}) == numbers(-5, 127));
  }

  TEST_CASE("a comparison is decided only when it is for every pair") {
    const Range no = numbers(0, 0), yes = numbers(1, 1), either = numbers(0, 1);
    CHECK(range_of(Op::less, i64, {0, 3}, {4, 9}) == yes);
    CHECK(range_of(Op::less, i64, {0, 4}, {4, 9}) == either);
    CHECK(range_of(Op::less, i64, {9, 12}, {4, 9}) == no);
    CHECK(range_of(Op::less_equal, i64, {0, 4}, {4, 9}) == yes);
    CHECK(range_of(Op::less_equal, i64, {9, 12}, {4, 9}) == either);
    CHECK(range_of(Op::less_equal, i64, {10, 12}, {4, 9}) == no);
    CHECK(range_of(Op::equal, i64, {4, 4}, {4, 4}) == yes);
    CHECK(range_of(Op::equal, i64, {3, 4}, {4, 4}) == either);
    CHECK(range_of(Op::equal, i64, {5, 6}, {4, 4}) == no);
    CHECK(range_of(Op::not_equal, i64, {4, 4}, {4, 4}) == no);
    CHECK(range_of(Op::not_equal, i64, {5, 6}, {4, 4}) == yes);
    CHECK(range_of(Op::equal, boolean, {0, 0}, {1, 1}) == no);
    CHECK(range_of(Op::less, f32, {0, 3, true}, {4, 9}) == either);
    CHECK(range_of(Op::less, f32, {9, 10, true}, {4, 9}) == no);
    CHECK(range_of(Op::less, f32, kNan, {4, 9}) == no);
    CHECK(range_of(Op::less_equal, f32, kNan, kNan) == no);
    CHECK(range_of(Op::equal, f32, kNan, kNan) == no);
    CHECK(range_of(Op::not_equal, f32, kNan, kNan) == yes);
    CHECK(range_of(Op::not_equal, f32, {4, 4, true}, {4, 4}) == either);
    CHECK(range_of(Op::equal, f32, {-kInfinity, -kInfinity}, {-kInfinity, -kInfinity}) == yes);
    CHECK(range_of(Op::logical_not, boolean, {0, 0}) == yes);
    CHECK(range_of(Op::logical_and, boolean, {0, 1}, {0, 0}) == no);
    CHECK(range_of(Op::logical_and, boolean, {0, 1}, {1, 1}) == either);
    CHECK(range_of(Op::logical_or, boolean, {0, 1}, {1, 1}) == yes);
  }

  TEST_CASE("a selection takes the decided branch, or the hull") {
    Program program;
    program.emit({Op::load, boolean});
    program.emit({.op = Op::load, .dtype = f32, .arg = 1});
    program.emit({.op = Op::load, .dtype = f32, .arg = 2});
    program.emit({Op::select, f32, 0, 1, 2});
    const auto with = [&](const Range& condition, const Range& no) {
      const Range inputs[] = {condition, {1, 2, true}, no};
      return evaluate_ranges(program, {}, inputs, {}).back();
    };
    CHECK(with({1, 1}, {-kInfinity, -kInfinity}) == Range{1, 2, true});
    CHECK(with({0, 1}, {-kInfinity, -kInfinity}) == Range{-kInfinity, 2, true});
    CHECK(with({0, 1}, kNan) == Range{1, 2, true});
    CHECK(with({0, 0}, {-kInfinity, -kInfinity}) == numbers(-kInfinity, -kInfinity));
    CHECK(is_minus_infinity(with({0, 0}, {-kInfinity, -kInfinity})));
    CHECK_FALSE(is_minus_infinity(with({0, 0}, {-kInfinity, -kInfinity, true})));
    CHECK_FALSE(is_minus_infinity(with({0, 1}, {-kInfinity, -kInfinity})));
    CHECK_FALSE(is_minus_infinity(kNan));
    CHECK_FALSE(is_minus_infinity({kInfinity, kInfinity}));
    CHECK_FALSE(is_minus_infinity({-3e38, -3e38}));
  }

  TEST_CASE("a specialised program has no decided selection and nothing unread") {
    Program program;  // q >= k && length > k ? x * c : -inf
    const auto x = program.emit({Op::load, f32});
    const auto c = program.emit({Op::scalar, f32});
    const auto scaled = program.emit({Op::mul, f32, x, c});
    const auto q = program.emit({Op::index, i64});
    const auto k = program.emit({.op = Op::index, .dtype = i64, .arg = 1});
    const auto causal = program.emit({Op::less_equal, boolean, k, q});
    const auto length = program.emit({.op = Op::load, .dtype = i64, .arg = 1});
    const auto within = program.emit({Op::less, boolean, k, length});
    const auto both = program.emit({Op::logical_and, boolean, causal, within});
    const auto hidden = program.emit({.op = Op::scalar, .dtype = f32, .arg = 1});
    program.emit({Op::select, f32, both, scaled, hidden});
    const Scalar scalars[] = {Scalar::of(0.125), Scalar::of(-kInfinity)};
    const auto on = [&](IndexRange rows, IndexRange keys, const Range& lengths) {
      const IndexRange axes[] = {rows, keys};
      const Range inputs[] = {kAnything, lengths};
      return specialise(program, evaluate_ranges(program, axes, inputs, scalars)).str();
    };
    CHECK(on({32, 63}, {0, 31}, {40, 90}) ==
          "r0: f32 = load 0\n"
          "r1: f32 = scalar 0\n"
          "r2: f32 = mul r0 r1\n");
    CHECK(on({32, 63}, {64, 79}, {40, 90}) == "r0: f32 = scalar 1\n");
    CHECK(on({32, 63}, {0, 31}, {10, 90}) ==
          "r0: f32 = load 0\n"
          "r1: f32 = scalar 0\n"
          "r2: f32 = mul r0 r1\n"
          "r3: i64 = index 1\n"
          "r4: i64 = load 1\n"
          "r5: bool = less r3 r4\n"
          "r6: f32 = scalar 1\n"
          "r7: f32 = select r5 r2 r6\n");
    CHECK(on({0, 63}, {0, 63}, {10, 90}) == program.str());
  }

  TEST_CASE("random programs never contradict their ranges, cut to their box or not") {
    constexpr std::size_t kOps = static_cast<std::size_t>(Op::select) + 1;
    std::array<int, kOps> decided{}, undecided{}, elements{};
    int hidden_all = 0, hidden_some = 0, hidden_none = 0, shorter = 0, as_long = 0, faults = 0;
    int maybe_faulty = 0, faultless = 0;
    test::Random random(20);
    for (int round = 0; round < test::fewer_if_sanitized(12000); ++round) {
      const test::RandomProgram made = test::random_program(random);
      const std::vector<Instruction>& code = made.program.code;
      verify(made.program, made.inputs.size(), made.scalars.size(), made.axes.size());
      const std::vector<Range> ranges =
          evaluate_ranges(made.program, made.axes, made.inputs, made.scalars);
      REQUIRE(ranges.size() == code.size());
      const Program cut = specialise(made.program, ranges);
      verify(cut, made.inputs.size(), made.scalars.size(), made.axes.size());
      REQUIRE(cut.code.size() <= code.size());
      REQUIRE(cut.dtype() == made.program.dtype());
      const Program read =  // what is left when nothing is decided
          specialise(made.program, std::vector<Range>(code.size(), kAnything));
      ++(cut.code.size() < read.code.size() ? shorter : as_long);

      for (std::size_t i = 0; i < code.size(); ++i) {
        const bool is_select = code[i].op == Op::select;
        const Range& telling = is_select ? ranges[static_cast<std::size_t>(code[i].a)] : ranges[i];
        ++(is_narrow(telling) ? decided : undecided)[static_cast<std::size_t>(code[i].op)];
      }
      const bool fault_possible = may_fault(made.program, ranges);
      ++(fault_possible ? maybe_faulty : faultless);
      int hidden = 0, seen = 0;
      for (int sample = 0; sample < 40; ++sample) {
        const test::Element element = test::random_element(made, random);
        const auto values = test::evaluate(made.program, element, made.scalars);
        bool faulty = false;
        for (std::size_t i = 0; i < code.size(); ++i) {
          faulty |= !values[i].has_value();
          if (!values[i]) continue;
          ++elements[static_cast<std::size_t>(code[i].op)];
          if (test::contradicts(ranges[i], code[i].dtype, *values[i])) {
            FAIL("register ", i, " is ", values[i]->real, " or ", values[i]->integer, ", not in ",
                 ranges[i], " in round ", round, "\n", made.program.str());
          }
        }
        faults += faulty;
        if (faulty) CHECK(fault_possible);
        if (faulty) continue;
        ++seen;
        hidden += is_float(cut.dtype()) && values.back()->real == -kInfinity;
        const auto same = test::evaluate(cut, element, made.scalars).back();
        REQUIRE(same.has_value());
        if (!test::same_bits(cut.dtype(), *same, *values.back())) {
          FAIL("round ", round, "\n", made.program.str(), "is not\n", cut.str());
        }
      }
      if (is_float(cut.dtype()) && seen > 0) {
        const bool surely = is_minus_infinity(ranges.back());
        if (surely) CHECK(hidden == seen);
        ++(surely ? hidden_all : hidden > 0 ? hidden_some : hidden_none);
      }
    }
    for (std::size_t op = 0; op < kOps; ++op) {
      const std::string_view name = name_of(static_cast<Op>(op));
      INFO(name, ": decided ", decided[op], ", undecided ", undecided[op]);
      // Random bits have one range, whatever their operands.
      if (static_cast<Op>(op) != Op::random) CHECK(decided[op] >= test::fewer_if_sanitized(20));
      if (static_cast<Op>(op) != Op::scalar) CHECK(undecided[op] >= test::fewer_if_sanitized(20));
      CHECK(elements[op] >= test::fewer_if_sanitized(1000));
    }
    MESSAGE("all hidden ", hidden_all, ", some ", hidden_some, ", none ", hidden_none,
            "; cut shorter ", shorter, ", not ", as_long, "; elements that fault ", faults);
    CHECK(hidden_all >= test::fewer_if_sanitized(200));
    CHECK(hidden_some >= test::fewer_if_sanitized(200));
    CHECK(hidden_none >= test::fewer_if_sanitized(200));
    CHECK(shorter >= test::fewer_if_sanitized(500));
    CHECK(as_long >= test::fewer_if_sanitized(500));
    CHECK(faults >= test::fewer_if_sanitized(500));
    CHECK(maybe_faulty >= test::fewer_if_sanitized(500));
    CHECK(faultless >= test::fewer_if_sanitized(500));
  }
}
