// SPDX-License-Identifier: Apache-2.0
// zlib with spans: it counts in 32 bits, so large ones are handed over in parts.
#include "deflate.h"

#include <fmt/format.h>
#include <zlib.h>

#include <algorithm>
#include <memory>

#include "../../base/error.h"

namespace einkern::io {
namespace {

constexpr std::size_t kPart = std::size_t{1} << 30;

/// The next part of what is left, which becomes shorter by it.
template <class Byte>
std::span<Byte> take_part(std::span<Byte>& left) {
  const std::span<Byte> part = left.first(std::min(left.size(), kPart));
  left = left.subspan(part.size());
  return part;
}

Bytef* bytes_of(std::span<const std::byte> part) {
  // zlib reads this and has no const for it.
  return reinterpret_cast<Bytef*>(const_cast<std::byte*>(part.data()));
}

}  // namespace

std::uint32_t crc32_of(std::span<const std::span<const std::byte>> pieces) {
  uLong crc = ::crc32(0, nullptr, 0);
  for (std::span<const std::byte> left : pieces) {
    while (!left.empty()) {
      const auto part = take_part(left);
      crc = ::crc32(crc, bytes_of(part), static_cast<uInt>(part.size()));
    }
  }
  return static_cast<std::uint32_t>(crc);
}

void inflate_into(std::span<std::byte> to, std::span<const std::byte> from,
                  const std::string& source) {
  z_stream stream{};
  EINKERN_CHECK(::inflateInit2(&stream, -MAX_WBITS) == Z_OK);
  const std::unique_ptr<z_stream, decltype(&::inflateEnd)> end(&stream, &::inflateEnd);
  std::span<const std::byte> input = from;
  std::span<std::byte> output = to;
  // One byte beyond `to` shows a stream that gives more.
  std::byte beyond{};
  bool spare = false;
  int code = Z_OK;
  while (code == Z_OK) {
    if (stream.avail_in == 0) {
      const auto part = take_part(input);
      stream.next_in = bytes_of(part);
      stream.avail_in = static_cast<uInt>(part.size());
    }
    if (stream.avail_out == 0) {
      if (output.empty()) {
        if (spare) break;
        spare = true;
        output = {&beyond, 1};
      }
      const auto part = take_part(output);
      stream.next_out = reinterpret_cast<Bytef*>(part.data());
      stream.avail_out = static_cast<uInt>(part.size());
    }
    code = ::inflate(&stream, Z_NO_FLUSH);
  }
  if (code == Z_DATA_ERROR || code == Z_NEED_DICT) {
    fail<IoError>(fmt::format("{}: the deflated bytes are damaged", source));
  }
  const std::size_t left = output.size() + stream.avail_out;
  const bool whole = spare ? left == 1 : left == 0;
  if (code != Z_STREAM_END || !whole || stream.avail_in + input.size() != 0) {
    fail<IoError>(fmt::format("{}: {} deflated bytes are not the {} that the file announces",
                              source, from.size(), to.size()));
  }
}

std::vector<std::byte> deflated(std::span<const std::span<const std::byte>> pieces) {
  z_stream stream{};
  EINKERN_CHECK(::deflateInit2(&stream, Z_DEFAULT_COMPRESSION, Z_DEFLATED, -MAX_WBITS, 8,
                               Z_DEFAULT_STRATEGY) == Z_OK);
  const std::unique_ptr<z_stream, decltype(&::deflateEnd)> end(&stream, &::deflateEnd);
  std::vector<std::byte> result;
  std::size_t used = 0;
  const auto run = [&](int flush) {
    int code = Z_OK;
    do {
      if (used == result.size()) result.resize(std::max<std::size_t>(2 * used, 1 << 16));
      const std::size_t room = std::min(result.size() - used, kPart);
      stream.next_out = reinterpret_cast<Bytef*>(result.data() + used);
      stream.avail_out = static_cast<uInt>(room);
      code = ::deflate(&stream, flush);
      EINKERN_CHECK(code != Z_STREAM_ERROR);
      used += room - stream.avail_out;
    } while (flush == Z_FINISH ? code != Z_STREAM_END : stream.avail_in > 0);
  };
  for (std::span<const std::byte> left : pieces) {
    while (!left.empty()) {
      const auto part = take_part(left);
      stream.next_in = bytes_of(part);
      stream.avail_in = static_cast<uInt>(part.size());
      run(Z_NO_FLUSH);
    }
  }
  run(Z_FINISH);
  result.resize(used);
  return result;
}

}  // namespace einkern::io
