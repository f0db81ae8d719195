// SPDX-License-Identifier: Apache-2.0
// A counter and a key into four random words: Philox 4x32-10 of Salmon, Moraes, Dror and Shaw,
// "Parallel random numbers: as easy as 1, 2, 3" (SC 2011).
#pragma once

#include <array>
#include <cstdint>

namespace einkern {

constexpr std::array<std::uint32_t, 4> philox4x32(std::array<std::uint32_t, 4> counter,
                                                  std::array<std::uint32_t, 2> key) noexcept {
  constexpr int kRounds = 10;
  for (int round = 0; round < kRounds; ++round) {
    const std::uint64_t first = std::uint64_t{0xD2511F53} * counter[0];
    const std::uint64_t second = std::uint64_t{0xCD9E8D57} * counter[2];
    const auto high = [](std::uint64_t x) { return static_cast<std::uint32_t>(x >> 32); };
    const auto low = [](std::uint64_t x) { return static_cast<std::uint32_t>(x); };
    counter = {high(second) ^ counter[1] ^ key[0], low(second), high(first) ^ counter[3] ^ key[1],
               low(first)};
    key[0] += 0x9E3779B9;  // the golden ratio
    key[1] += 0xBB67AE85;  // sqrt(3) - 1
  }
  return counter;
}

/// 62 random bits of a counter and a key; another stream than that of a tensor of random numbers
/// with the same seed.
constexpr std::int64_t random_bits(std::int64_t counter, std::int64_t key) noexcept {
  const auto low = [](std::int64_t x) { return static_cast<std::uint32_t>(x); };
  const auto high = [](std::int64_t x) {
    return static_cast<std::uint32_t>(static_cast<std::uint64_t>(x) >> 32);
  };
  const std::array<std::uint32_t, 4> words =
      philox4x32({low(counter), high(counter), 1, 0}, {low(key), high(key)});
  return static_cast<std::int64_t>((std::uint64_t{words[1]} << 32 | words[0]) >> 2);
}

}  // namespace einkern
