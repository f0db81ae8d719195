// SPDX-License-Identifier: Apache-2.0
// NumPy's .npy format: the header decides whether the bytes are used as they lie or converted.
#include "npy.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cstdint>
#include <cstring>
#include <memory>
#include <string>
#include <utility>

#include "../create.h"
#include "../storage.h"
#include "file.h"
#include "npy_header.h"
#include "npy_tensor.h"

namespace einkern {
namespace {

static_assert(std::endian::native == std::endian::little, "npy.cpp takes '<' for this machine");

std::string source_name(const char* function, const std::filesystem::path& path) {
  return fmt::format("{}: '{}'", function, path.string());
}

Layout layout_of(const io::NpyHeader& header) {
  Layout layout = contiguous(header.shape);
  if (header.fortran_order) {
    std::int64_t stride = 1;
    for (std::size_t axis = 0; axis < layout.rank(); ++axis) {
      layout.strides[axis] = stride;
      stride *= layout.shape[axis];
    }
  }
  return layout;
}

std::uint16_t swapped(std::uint16_t bits) { return __builtin_bswap16(bits); }
std::uint32_t swapped(std::uint32_t bits) { return __builtin_bswap32(bits); }
std::uint64_t swapped(std::uint64_t bits) { return __builtin_bswap64(bits); }

template <class Bits>
void swap_items(std::byte* data, std::size_t bytes) {
  for (std::size_t i = 0; i < bytes; i += sizeof(Bits)) {
    Bits bits = 0;
    std::memcpy(&bits, data + i, sizeof(Bits));
    bits = swapped(bits);
    std::memcpy(data + i, &bits, sizeof(Bits));
  }
}

void swap_items(std::byte* data, std::size_t bytes, std::size_t item_bytes) {
  if (item_bytes == 2) swap_items<std::uint16_t>(data, bytes);
  if (item_bytes == 4) swap_items<std::uint32_t>(data, bytes);
  if (item_bytes == 8) swap_items<std::uint64_t>(data, bytes);
}

/// Can a tensor read the data where they lie?
bool usable(const io::NpyHeader& header, const std::byte* data) {
  if (header.is_half() || (header.big_endian && header.item_bytes > 1)) return false;
  if (reinterpret_cast<std::uintptr_t>(data) % header.item_bytes != 0) return false;
  // A bool of C++ is 0 or 1; NumPy takes every other byte for true.
  return header.dtype != DType::boolean ||
         std::all_of(data, data + header.data_bytes, [](auto b) { return b <= std::byte{1}; });
}

/// The data in this machine's byte order, f16 widened to f32, bool as 0 or 1.
Tensor converted(const io::NpyHeader& header, const std::byte* data) {
  const std::size_t count = header.data_bytes / header.item_bytes;
  const auto storage = Storage::allocate(count * size_of(header.dtype));
  auto* to = static_cast<std::byte*>(storage->data());
  if (header.is_half()) {
    for (std::size_t i = 0; i < count; ++i) {
      std::uint16_t bits = 0;
      std::memcpy(&bits, data + 2 * i, 2);
      if (header.big_endian) bits = swapped(bits);
      const float value = widen(Float16::from_bits(bits));
      std::memcpy(to + 4 * i, &value, 4);
    }
  } else {
    std::memcpy(to, data, header.data_bytes);
    if (header.big_endian) swap_items(to, header.data_bytes, header.item_bytes);
    if (header.dtype == DType::boolean) {
      std::transform(to, to + count, to, [](std::byte b) { return std::byte{b != std::byte{0}}; });
    }
  }
  return Tensor(storage, to, header.dtype, layout_of(header));
}

Tensor to_tensor(const io::FileBytes& file, const std::string& source) {
  return io::npy_tensor(file, file.view(), source);
}

std::span<const std::byte> as_bytes(const std::string& text) {
  return std::as_bytes(std::span(text));
}

/// The elements of a contiguous tensor as they lie.
std::span<const std::byte> data_of(const Tensor& tensor) {
  return {static_cast<const std::byte*>(tensor.bytes()),
          static_cast<std::size_t>(tensor.size()) * size_of(tensor.dtype())};
}

}  // namespace

Tensor io::npy_tensor(const FileBytes& file, std::span<const std::byte> npy,
                      const std::string& source) {
  const NpyHeader header = parse_npy_header(npy, source);
  if (header.data_bytes == 0) return empty(header.shape, header.dtype);
  const std::size_t begin =
      static_cast<std::size_t>(npy.data() - file.view().data()) + header.data_offset;
  std::byte* data = static_cast<std::byte*>(file.storage->data()) + begin;
  if (!usable(header, data)) return converted(header, data);
  return Tensor(file.storage, data, header.dtype, layout_of(header), file.read_only);
}

Tensor load_npy(const std::filesystem::path& path, const LoadOptions& options) {
  const std::string source = source_name("load_npy", path);
  return to_tensor(options.mmap ? io::map_file(path, source) : io::read_file(path, source), source);
}

void save_npy(const std::filesystem::path& path, const Tensor& tensor) {
  const std::string source = source_name("save_npy", path);
  const std::string header = io::format_npy_header(tensor.dtype(), tensor.shape(), source);
  const Tensor packed = tensor.is_contiguous() ? tensor : tensor.copy();
  io::replace_file(path, {as_bytes(header), data_of(packed)}, source);
}

Tensor parse_npy(std::span<const std::byte> bytes) {
  io::parse_npy_header(bytes, "parse_npy");  // before memory is allocated
  io::FileBytes file{Storage::allocate(bytes.size())};
  std::memcpy(file.storage->data(), bytes.data(), bytes.size());
  return to_tensor(file, "parse_npy");
}

std::vector<std::byte> format_npy(const Tensor& tensor) {
  const std::string header = io::format_npy_header(tensor.dtype(), tensor.shape(), "format_npy");
  const Tensor packed = tensor.is_contiguous() ? tensor : tensor.copy();
  std::vector<std::byte> bytes;
  bytes.reserve(header.size() + data_of(packed).size());
  for (const auto piece : {as_bytes(header), data_of(packed)}) {
    bytes.insert(bytes.end(), piece.begin(), piece.end());
  }
  return bytes;
}

}  // namespace einkern
