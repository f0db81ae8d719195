// SPDX-License-Identifier: Apache-2.0
// Sizes cut into parts: counts that are rounded up, and what they are rounded to.
#pragma once

#include <algorithm>
#include <cstdint>

namespace einkern::exec {

/// Bytes of a cache line.
inline constexpr std::int64_t kLineBytes = 64;

/// Parts of `b` that cover `a`.
inline std::int64_t divide_up(std::int64_t a, std::int64_t b) { return (a + b - 1) / b; }

/// The smallest multiple of `b` that is no less than `a`.
inline std::int64_t round_up(std::int64_t a, std::int64_t b) { return divide_up(a, b) * b; }

/// A part of `size` that is at most about `wanted`: even parts, rounded up to `multiple` where no
/// part gets lost by it.
inline std::int64_t even_part(std::int64_t size, std::int64_t wanted, std::int64_t multiple) {
  if (wanted >= size) return size;
  const std::int64_t parts = divide_up(size, std::max<std::int64_t>(wanted, 1));
  return std::min(size, round_up(divide_up(size, parts), multiple));
}

}  // namespace einkern::exec
