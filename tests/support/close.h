// SPDX-License-Identifier: Apache-2.0
// Comparison of numbers in tests: the error relative to a scale, NaN equal to NaN.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <span>

namespace einkern::test {

/// Largest |got - want| / max(1, |want|); infinite when exactly one of a pair is NaN or infinities
/// differ.
template <class A, class B>
double worst_error(std::span<const A> got, std::span<const B> want) {
  if (got.size() != want.size()) return INFINITY;
  double worst = 0;
  for (std::size_t i = 0; i < got.size(); ++i) {
    const auto g = static_cast<double>(got[i]), w = static_cast<double>(want[i]);
    if (std::isnan(g) && std::isnan(w)) continue;
    if (g == w) continue;
    const double error = std::abs(g - w) / std::max(1.0, std::abs(w));
    worst = std::isnan(error) ? INFINITY : std::max(worst, error);
  }
  return worst;
}

}  // namespace einkern::test
