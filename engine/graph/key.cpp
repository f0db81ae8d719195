// SPDX-License-Identifier: Apache-2.0
// The rarer half of writing keys: long numbers, texts, more than the object holds.
#include "key.h"

#include <utility>

namespace einkern::graph {

Key::Key(Key&& other) noexcept {
  if (other.many_ != nullptr) {
    many_ = std::move(other.many_);
    data_ = many_.get();
    capacity_ = std::exchange(other.capacity_, other.few_.size());
    other.data_ = other.few_.data();
  } else {
    std::copy_n(other.data_, other.size_, data_);
  }
  size_ = std::exchange(other.size_, 0);
}

void Key::put_bits(std::uint64_t bits) {
  constexpr std::size_t kMost = 10;  // bytes of 64 bits
  if (capacity_ - size_ < kMost) grow(size_ + kMost);
  for (; bits >= 0x80; bits >>= 7) data_[size_++] = static_cast<char>(bits | 0x80);
  data_[size_++] = static_cast<char>(bits);
}

void Key::append(std::string_view text) {
  if (capacity_ - size_ < text.size()) grow(size_ + text.size());
  std::copy(text.begin(), text.end(), data_ + size_);
  size_ += text.size();
}

void Key::grow(std::size_t least) {
  const std::size_t capacity = std::max(least, 2 * capacity_);
  std::unique_ptr<char[]> grown(new char[capacity]);
  std::copy_n(data_, size_, grown.get());
  many_ = std::move(grown);
  data_ = many_.get();
  capacity_ = capacity;
}

}  // namespace einkern::graph
