// SPDX-License-Identifier: Apache-2.0
// Numbers and texts as the bytes of a key.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

namespace einkern::graph {

/// Bytes that stand for a structure. Different sequences of `put` differ. The first 512 bytes lie
/// in the object: a key of a few nodes, made by every evaluation, costs no allocation.
class Key {
 public:
  Key() noexcept {}  // NOLINT(modernize-use-equals-default): `Key{}` must not set every byte
  Key(Key&& other) noexcept;
  Key& operator=(Key&&) = delete;
  ~Key() = default;

  std::string_view view() const noexcept { return {data_, size_}; }
  std::size_t size() const noexcept { return size_; }
  void truncate(std::size_t size) noexcept { size_ = std::min(size, size_); }

  /// A number, small ones as one byte: seven bits a byte, the sign in the lowest bit, the highest
  /// bit set on all bytes but the last. No encoding is the beginning of another.
  void put(std::int64_t value) {
    const auto bits =
        static_cast<std::uint64_t>(value) << 1 ^ static_cast<std::uint64_t>(value >> 63);
    if (bits >= 0x80 || size_ == capacity_) return put_bits(bits);
    data_[size_++] = static_cast<char>(bits);  // nearly all of them
  }
  /// A text with its length.
  void put(std::string_view text) {
    put(static_cast<std::int64_t>(text.size()));
    append(text);
  }
  void put(const std::string& text) { put(std::string_view(text)); }
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
  // Apart, so that what comes before them is short enough to be inlined.
  void put_bits(std::uint64_t bits);
  void append(std::string_view text);
  void grow(std::size_t least);

  char* data_ = few_.data();
  std::size_t size_ = 0, capacity_ = few_.size();
  std::unique_ptr<char[]> many_;
  std::array<char, 512> few_;
};

}  // namespace einkern::graph
