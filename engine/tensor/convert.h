// SPDX-License-Identifier: Apache-2.0
// Elements of one dtype into another: the checked conversion that astype, item and fill share.
#pragma once

#include <cmath>
#include <cstdint>
#include <limits>
#include <type_traits>

#include "../base/dtype.h"
#include "../base/layout.h"

namespace einkern {

/// Reports that a value has no counterpart in `to`; the text reads `<function>: <value> does not
/// fit <dtype>`.
[[noreturn]] void fail_conversion(const char* function, double value, DType to);
[[noreturn]] void fail_conversion(const char* function, std::int64_t value, DType to);

/// Can converting some value fail? Integers wrap nowhere: out of range is an error.
constexpr bool may_fail(DType from, DType to) noexcept {
  return is_integer(to) && (is_float(from) || (is_integer(from) && size_of(to) < size_of(from)));
}

/// Reads an element as a number. Foreign memory may hold other bytes than 0 and 1 in a bool.
template <class T>
Widened<T> load(const T* from) noexcept {
  if constexpr (std::is_same_v<T, bool>) {
    return *reinterpret_cast<const unsigned char*>(from) != 0;
  } else {
    return widen(*from);
  }
}

/// `value` as a `To`: floats truncate toward zero on the way to integers, whatever is not zero is
/// true; ValueError naming `function` when it does not fit.
template <class To, class From>
To convert(From value, const char* function) {
  if constexpr (std::is_same_v<To, bool>) {
    return value != From{};
  } else if constexpr (std::is_floating_point_v<From> && std::is_integral_v<To>) {
    // Both bounds are powers of two, hence exact in any float type; NaN fails both comparisons.
    constexpr From kAbove = static_cast<From>(std::uint64_t{1} << (8 * sizeof(To) - 1));
    const From whole = std::trunc(value);
    if (!(whole >= -kAbove && whole < kAbove)) {
      fail_conversion(function, static_cast<double>(value), dtype_of<To>);
    }
    return static_cast<To>(whole);
  } else if constexpr (std::is_integral_v<From> && std::is_integral_v<To> &&
                       sizeof(To) < sizeof(From)) {
    if (value < std::numeric_limits<To>::min() || value > std::numeric_limits<To>::max()) {
      fail_conversion(function, static_cast<std::int64_t>(value), dtype_of<To>);
    }
    return static_cast<To>(value);
  } else {
    return static_cast<To>(value);
  }
}

/// A view without its owner.
struct ConstView {
  const void* data;
  DType dtype;
  const Dims& strides;
};
struct MutableView {
  void* data;
  DType dtype;
  const Dims& strides;
};

/// to[i] = from[i] for every index of `shape`. The views must not overlap.
void convert_elements(const char* function, const Dims& shape, ConstView from, MutableView to);

}  // namespace einkern
