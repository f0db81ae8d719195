// SPDX-License-Identifier: Apache-2.0
// Extreme values, for references and for operands.
#pragma once

#include <cstdint>
#include <limits>

namespace einkern::test {

inline constexpr double kInfinity = std::numeric_limits<double>::infinity();
inline constexpr std::int64_t kLeast = std::numeric_limits<std::int64_t>::min();
inline constexpr std::int64_t kMost = std::numeric_limits<std::int64_t>::max();

}  // namespace einkern::test
