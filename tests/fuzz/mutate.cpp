// SPDX-License-Identifier: Apache-2.0
// Changes bytes at random.
#include "mutate.h"

#include <algorithm>
#include <cstring>

namespace einkern::test {
namespace {

constexpr std::size_t kLongest = 1 << 14;

/// A number below `n`, 0 for none.
std::size_t below(std::size_t n, std::mt19937& random) { return n == 0 ? 0 : random() % n; }

void insert(Bytes& bytes, std::size_t at, const std::byte* from, std::size_t size) {
  bytes.insert(bytes.begin() + static_cast<std::ptrdiff_t>(at), from, from + size);
}

void change(Bytes& bytes, const Bytes& other, const std::vector<std::string>& dictionary,
            std::mt19937& random) {
  static constexpr std::uint64_t kBounds[] = {
      0, 1, 0x7F, 0xFF, 0x7FFF, 0xFFFF, 0x7FFFFFFF, 0xFFFFFFFF, 1ULL << 62, ~0ULL >> 1, ~0ULL, 64};
  const std::size_t at = below(bytes.size() + 1, random);
  const std::size_t left = bytes.size() - at;
  switch (below(7, random)) {
    case 0:
      if (left > 0) bytes[at] ^= std::byte{static_cast<unsigned char>(1u << below(8, random))};
      break;
    case 1:
      if (left > 0) bytes[at] = static_cast<std::byte>(random());
      break;
    case 2: {
      const std::uint64_t value = kBounds[below(std::size(kBounds), random)];
      const std::size_t width = std::min<std::size_t>(left, std::size_t{1} << below(4, random));
      if (width > 0) std::memcpy(bytes.data() + at, &value, width);
      break;
    }
    case 3: {
      const std::size_t size = std::min(left, 1 + below(32, random));
      const auto begin = bytes.begin() + static_cast<std::ptrdiff_t>(at);
      bytes.erase(begin, begin + static_cast<std::ptrdiff_t>(size));
      break;
    }
    case 4: {
      const Bytes piece(
          bytes.begin() + static_cast<std::ptrdiff_t>(at),
          bytes.begin() + static_cast<std::ptrdiff_t>(at + std::min(left, 1 + below(64, random))));
      insert(bytes, below(bytes.size() + 1, random), piece.data(), piece.size());
      break;
    }
    case 5: {
      const std::size_t from = below(other.size(), random);
      insert(bytes, at, other.data() + from, std::min(other.size() - from, below(64, random)));
      break;
    }
    default:
      if (dictionary.empty()) break;
      const std::string& word = dictionary[below(dictionary.size(), random)];
      insert(bytes, at, reinterpret_cast<const std::byte*>(word.data()), word.size());
  }
}

}  // namespace

Bytes mutated(const Bytes& bytes, const Bytes& other, const std::vector<std::string>& dictionary,
              std::mt19937& random) {
  Bytes result = bytes;
  for (std::size_t count = 1 + below(4, random); count > 0; --count) {
    change(result, other, dictionary, random);
  }
  if (result.size() > kLongest) result.resize(kLongest);
  return result;
}

}  // namespace einkern::test
