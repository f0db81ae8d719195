// SPDX-License-Identifier: Apache-2.0
// Conversions from and to the 16-bit floats on every SIMD target.
#include <doctest/doctest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <vector>

#include "../../../engine/kernel/kernels.h"

using namespace einkern;
using kernel::MapFault;

namespace {

/// All 65536 of them, rows of other lengths and places after one another.
template <class T>
void check_all_halves() {
  std::vector<T> all;
  for (std::uint32_t bits = 0; bits < 0x10000; ++bits) {
    all.push_back(T::from_bits(static_cast<std::uint16_t>(bits)));
  }
  const auto at = [](auto& table, DType from, DType to) {
    return table[static_cast<std::size_t>(from)][static_cast<std::size_t>(to)];
  };
  for (const kernel::Kernels* kernels : kernel::supported_kernels()) {
    CAPTURE(kernels->target.name);
    const auto widens = at(kernels->map.convert, dtype_of<T>, f32);
    const auto rounds = at(kernels->map.convert, f32, dtype_of<T>);
    std::vector<float> wide(all.size());
    std::vector<T> back(all.size());
    std::size_t first = 0;
    for (std::size_t n = 1; first < all.size(); first += n, n = n % 67 + 1) {
      n = std::min(n, all.size() - first);
      const auto count = static_cast<std::int64_t>(n);
      CHECK(widens(&all[first], nullptr, nullptr, &wide[first], count) == MapFault::none);
      CHECK(rounds(&wide[first], nullptr, nullptr, &back[first], count) == MapFault::none);
    }
    int wrong = 0;
    for (std::size_t i = 0; i < all.size(); ++i) {
      const float right = widen(all[i]);
      wrong += std::isnan(right)
                   ? !std::isnan(wide[i])
                   : std::bit_cast<std::uint32_t>(wide[i]) != std::bit_cast<std::uint32_t>(right);
      wrong += std::isnan(right) ? !std::isnan(widen(back[i])) : back[i].bits != all[i].bits;
    }
    CHECK(wrong == 0);
  }
}

}  // namespace

TEST_SUITE("kernel") {
  TEST_CASE("every 16-bit float is converted exactly on every target") {
    check_all_halves<Float16>();
    check_all_halves<BFloat16>();
  }
}
