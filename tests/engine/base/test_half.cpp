// SPDX-License-Identifier: Apache-2.0
// The 16-bit floats against their definition: every value widened, and rounding between neighbours.
#include <doctest/doctest.h>

#include <cmath>
#include <cstdint>
#include <limits>
#include <string>

#include "../../../engine/base/half.h"

using namespace einkern;

namespace {

/// What the bits of a float with a sign, `exponent_bits` and a fraction say.
double meaning(std::uint32_t bits, int exponent_bits) {
  const int fraction_bits = 15 - exponent_bits, bias = (1 << (exponent_bits - 1)) - 1;
  const double sign = (bits >> 15) != 0 ? -1 : 1;
  const int exponent = static_cast<int>(bits >> fraction_bits) & ((1 << exponent_bits) - 1);
  const int fraction = static_cast<int>(bits) & ((1 << fraction_bits) - 1);
  if (exponent == (1 << exponent_bits) - 1) return fraction != 0 ? NAN : sign * INFINITY;
  if (exponent == 0) return sign * std::ldexp(fraction, 1 - bias - fraction_bits);
  return sign * std::ldexp((1 << fraction_bits) + fraction, exponent - bias - fraction_bits);
}

template <class T>
struct Facts;
template <>
struct Facts<Float16> {
  static constexpr int exponent_bits = 5;
  static constexpr std::uint16_t infinity = 0x7c00;
  static constexpr double beyond = 65536;  // would follow the largest
};
template <>
struct Facts<BFloat16> {
  static constexpr int exponent_bits = 8;
  static constexpr std::uint16_t infinity = 0x7f80;
  static constexpr double beyond = 0x1p128;
};

template <class T>
double value(std::uint32_t bits) {
  return bits == Facts<T>::infinity ? Facts<T>::beyond : meaning(bits, Facts<T>::exponent_bits);
}

template <class T>
void check_widening() {
  int wrong = 0, not_numbers = 0;
  for (std::uint32_t bits = 0; bits < 0x10000; ++bits) {
    const T x = T::from_bits(static_cast<std::uint16_t>(bits));
    const double right = meaning(bits, Facts<T>::exponent_bits);
    const float got = widen(x);
    if (std::isnan(right)) {
      ++not_numbers;
      wrong += !std::isnan(got) || !std::isnan(widen(T(got))) || !std::isnan(widen(T(right)));
    } else {
      wrong += static_cast<double>(got) != right || std::signbit(got) != std::signbit(right);
      wrong += T(got).bits != bits || T(right).bits != bits;  // and back
    }
  }
  CHECK(wrong == 0);
  CHECK(not_numbers == 2 * ((1 << T::kFractionBits) - 1));
}

/// Between every two neighbours: just off the middle to the nearer one, the middle to the even one.
template <class T, class Wide>
void check_rounding() {
  int wrong = 0, ties = 0;
  for (std::uint32_t bits = 0; bits < Facts<T>::infinity; ++bits) {
    const double low = value<T>(bits), high = value<T>(bits + 1), middle = low + (high - low) / 2;
    if (static_cast<double>(static_cast<Wide>(middle)) != middle)
      continue;  // f32 has no such place
    ++ties;
    const auto at = static_cast<Wide>(middle);
    const Wide below = std::nextafter(at, Wide{0});
    const Wide above = std::nextafter(at, std::numeric_limits<Wide>::infinity());
    const std::uint32_t even = bits + (bits & 1);
    for (const std::uint32_t sign : {0U, 0x8000U}) {
      const Wide s = sign != 0 ? -1 : 1;
      wrong += T(s * at).bits != (sign | even);
      wrong += T(s * below).bits != (sign | bits);
      wrong += T(s * above).bits != (sign | (bits + 1));
    }
  }
  CHECK(wrong == 0);
  CHECK(ties == Facts<T>::infinity);
}

template <class T>
void check_ends() {
  CHECK(T(std::numeric_limits<double>::max()).bits == Facts<T>::infinity);
  CHECK(T(-std::numeric_limits<double>::max()).bits == (0x8000 | Facts<T>::infinity));
  CHECK(T(std::numeric_limits<float>::max()).bits == Facts<T>::infinity);
  CHECK(T(std::numeric_limits<double>::denorm_min()).bits == 0);
  CHECK(T(-0.0).bits == 0x8000);
  CHECK(T(INFINITY).bits == Facts<T>::infinity);
  CHECK(T(3) == T(3.0));
  CHECK(T(true) == T(1.0F));
  CHECK(T(-0.0F) == T(0.0F));
  CHECK_FALSE(T(NAN) == T(NAN));
}

}  // namespace

TEST_SUITE("base") {
  TEST_CASE("every 16-bit float means what its bits say, and comes back") {
    check_widening<Float16>();
    check_widening<BFloat16>();
  }
  TEST_CASE("floats and doubles round to the nearest 16-bit float, ties to even") {
    check_rounding<Float16, float>();
    check_rounding<Float16, double>();
    check_rounding<BFloat16, float>();
    check_rounding<BFloat16, double>();
  }
  TEST_CASE("16-bit floats keep signs, infinities and what has no number") {
    check_ends<Float16>();
    check_ends<BFloat16>();
  }
}
