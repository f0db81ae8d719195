// SPDX-License-Identifier: Apache-2.0
// The 16-bit floats: memory for numbers that are computed with in f32.
#pragma once

#include <bit>
#include <concepts>
#include <cstdint>
#include <limits>
#include <type_traits>
#include <utility>

namespace einkern {

/// A float of 16 bits: a sign, `kExponentBits` of exponent, the rest fraction. It has no arithmetic
/// of its own. Made from a float or double it rounds to nearest, ties to even; what is too large
/// becomes infinite, NaN stays NaN, denormals are kept. Turned into a float it is exact.
template <int kExponentBits>
struct NarrowFloat {
  static constexpr int kFractionBits = 15 - kExponentBits;

  std::uint16_t bits;

  NarrowFloat() = default;
  template <std::floating_point T>
  explicit constexpr NarrowFloat(T value) noexcept : bits(rounded(value)) {}
  template <std::integral T>
  explicit constexpr NarrowFloat(T value) noexcept : NarrowFloat(static_cast<double>(value)) {}
  explicit constexpr operator float() const noexcept { return widened(bits); }

  static constexpr NarrowFloat from_bits(std::uint16_t bits) noexcept {
    NarrowFloat result{};
    result.bits = bits;
    return result;
  }
  /// Equal as numbers: -0 is 0, NaN is nothing.
  friend constexpr bool operator==(NarrowFloat a, NarrowFloat b) noexcept {
    return static_cast<float>(a) == static_cast<float>(b);
  }

 private:
  static constexpr int kBias = (1 << (kExponentBits - 1)) - 1;
  static constexpr std::uint16_t kInfinity = ((1 << kExponentBits) - 1) << kFractionBits;

  // Both ways follow Giesen, "Float->half variants" (public domain, 2012): exponents move by adding
  // to the bits, denormals by letting the adder of floats shift them.
  static constexpr float widened(std::uint16_t from) noexcept {
    constexpr int kShift = 23 - kFractionBits;
    const std::uint32_t sign = (from & 0x8000U) << 16;
    std::uint32_t magnitude = (from & 0x7fffU) << kShift;
    constexpr std::uint32_t kRebias = std::uint32_t{127 - kBias} << 23;
    if constexpr (kBias != 127) {
      const std::uint32_t exponent = from & kInfinity;
      magnitude += kRebias;
      if (exponent == kInfinity) {
        magnitude += kRebias;
      } else if (exponent == 0) {
        constexpr std::uint32_t kLeastNormal = kRebias + (1U << 23);
        magnitude = std::bit_cast<std::uint32_t>(std::bit_cast<float>(magnitude + (1U << 23)) -
                                                 std::bit_cast<float>(kLeastNormal));
      }
    }
    return std::bit_cast<float>(sign | magnitude);
  }

  template <class T>
  static constexpr std::uint16_t rounded(T value) noexcept {
    using Bits = std::conditional_t<sizeof(T) == 4, std::uint32_t, std::uint64_t>;
    constexpr int kFraction = std::numeric_limits<T>::digits - 1;
    constexpr int kTop = 8 * sizeof(T) - 1;  // the place of the sign
    constexpr int kShift = kFraction - kFractionBits;
    constexpr Bits kOne = 1;
    constexpr Bits kRebias = Bits{std::numeric_limits<T>::max_exponent - 1 - kBias} << kFraction;
    constexpr Bits kLeastNormal = kRebias + (kOne << kFraction);
    constexpr Bits kNotFinite = Bits{2 * std::numeric_limits<T>::max_exponent - 1} << kFraction;
    const auto all = std::bit_cast<Bits>(value);
    const auto sign = static_cast<std::uint16_t>((all >> kTop) << 15);
    const Bits magnitude = all & ~(kOne << kTop);
    if (magnitude > kNotFinite) {  // quiet, with what fits of the payload
      constexpr Bits kPayload = (kOne << kFractionBits) - 1;
      constexpr Bits kQuiet = kOne << (kFractionBits - 1);
      return static_cast<std::uint16_t>(sign | kInfinity | kQuiet |
                                        ((magnitude >> kShift) & kPayload));
    }
    if (magnitude < kLeastNormal) {
      // A sum whose last place is the least denormal rounds to it.
      constexpr Bits kPlaces = kLeastNormal + (Bits{kShift} << kFraction);
      const T sum = std::bit_cast<T>(magnitude) + std::bit_cast<T>(kPlaces);
      return static_cast<std::uint16_t>(sign | (std::bit_cast<Bits>(sum) - kPlaces));
    }
    // Half a place, less one where the last place is even, carries where it has to, into infinity.
    const Bits odd = (magnitude >> kShift) & 1;
    const Bits whole = (magnitude - kRebias + (kOne << (kShift - 1)) - 1 + odd) >> kShift;
    return static_cast<std::uint16_t>(sign | (whole < kInfinity ? whole : kInfinity));
  }
};

/// IEEE 754 binary16: 11 significant bits, up to 65504.
using Float16 = NarrowFloat<5>;
/// The upper half of a float: 8 significant bits, the range of a float.
using BFloat16 = NarrowFloat<8>;

template <class T>
inline constexpr bool is_half =
    std::is_same_v<std::remove_cv_t<T>, Float16> || std::is_same_v<std::remove_cv_t<T>, BFloat16>;

/// The same number in a type that has arithmetic: 16-bit floats as float, all else as it is.
template <class T>
constexpr auto widen(T x) noexcept {
  if constexpr (is_half<T>) {
    return static_cast<float>(x);
  } else {
    return x;
  }
}
template <class T>
using Widened = decltype(widen(std::declval<T>()));

}  // namespace einkern
