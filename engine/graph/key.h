// SPDX-License-Identifier: Apache-2.0
// Numbers as bytes of a key.
#pragma once

#include <cstdint>

namespace einkern::graph {

/// Appends a number, small ones as one byte: seven bits a byte, the sign in the lowest bit, the
/// highest bit set on all bytes but the last. No encoding is the beginning of another.
template <class String>
void put_number(String& key, std::int64_t value) {
  auto bits = static_cast<std::uint64_t>(value) << 1 ^ static_cast<std::uint64_t>(value >> 63);
  while (bits >= 0x80) {
    key += static_cast<char>(bits | 0x80);
    bits >>= 7;
  }
  key += static_cast<char>(bits);
}

}  // namespace einkern::graph
