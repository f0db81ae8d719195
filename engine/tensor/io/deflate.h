// SPDX-License-Identifier: Apache-2.0
// Deflated bytes and check sums, through zlib.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace einkern::io {

/// The CRC-32 of ZIP, of the pieces one after the other.
std::uint32_t crc32_of(std::span<const std::span<const std::byte>> pieces);

/// Inflates a raw stream that gives exactly the bytes of `to`; IoError, beginning with `source`,
/// for anything else.
void inflate_into(std::span<std::byte> to, std::span<const std::byte> from,
                  const std::string& source);

/// The pieces, one after the other, as one raw stream.
std::vector<std::byte> deflated(std::span<const std::span<const std::byte>> pieces);

/// So many bytes at most come out of a stream of this size (258 a match, which takes two bits).
constexpr std::uint64_t max_inflated(std::uint64_t bytes) noexcept { return 1032 * bytes; }

}  // namespace einkern::io
