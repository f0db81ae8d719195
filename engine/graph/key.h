// SPDX-License-Identifier: Apache-2.0
// Numbers and texts as bytes of a key.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <type_traits>
#include <vector>

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

/// Appends numbers and texts with their lengths, so that different sequences differ.
class KeyWriter {
 public:
  explicit KeyWriter(std::string& out) : out_(out) {}
  void put(std::int64_t value) { put_number(out_, value); }
  void put(const std::string& text) {
    put(static_cast<std::int64_t>(text.size()));
    out_ += text;
  }
  void put(const std::optional<std::int64_t>& value) {
    put(std::int64_t{value.has_value()});
    put(value.value_or(0));
  }
  template <class T>
  void put(const std::vector<T>& values) {
    put(static_cast<std::int64_t>(values.size()));
    for (const auto& value : values) {
      if constexpr (std::is_arithmetic_v<T>) {
        put(static_cast<std::int64_t>(value));
      } else {
        put(value);
      }
    }
  }

 private:
  std::string& out_;
};

}  // namespace einkern::graph
