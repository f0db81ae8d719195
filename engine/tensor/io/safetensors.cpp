// SPDX-License-Identifier: Apache-2.0
// The safetensors format: tensors as views of one mapped file, and the file as pieces of tensors.
#include "safetensors.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cstdint>
#include <cstring>

#include "../create.h"
#include "../storage.h"
#include "file.h"
#include "safetensors_header.h"

namespace einkern {
namespace {

static_assert(std::endian::native == std::endian::little, "safetensors are little-endian");

/// The tensor at `data`, where it lies if its elements can be read there.
Tensor tensor_at(const io::FileBytes& file, std::byte* data, const io::SafetensorsEntry& entry) {
  const std::size_t bytes = entry.end - entry.begin;
  if (bytes == 0) return empty(entry.shape, entry.dtype);
  // A bool of C++ is 0 or 1.
  const bool odd_bools = entry.dtype == DType::boolean &&
                         std::any_of(data, data + bytes, [](auto b) { return b > std::byte{1}; });
  if (!odd_bools && reinterpret_cast<std::uintptr_t>(data) % size_of(entry.dtype) == 0) {
    return Tensor(file.storage, data, entry.dtype, contiguous(entry.shape), file.read_only);
  }
  const auto storage = Storage::allocate(bytes);
  auto* to = static_cast<std::byte*>(storage->data());
  std::memcpy(to, data, bytes);
  if (odd_bools) {
    std::transform(to, to + bytes, to, [](std::byte b) { return std::byte{b != std::byte{0}}; });
  }
  return Tensor(storage, to, entry.dtype, contiguous(entry.shape));
}

Safetensors read_entries(const io::FileBytes& file, const std::string& source) {
  io::SafetensorsHeader header = io::parse_safetensors_header(file.view(), source);
  auto* data = static_cast<std::byte*>(file.storage->data()) + header.data_offset;
  Safetensors content{.tensors = {}, .metadata = std::move(header.metadata)};
  for (const io::SafetensorsEntry& entry : header.entries) {
    content.tensors.add(entry.name, tensor_at(file, data + entry.begin, entry));
  }
  return content;
}

/// A file as its header and its tensors, contiguous.
struct Parts {
  std::string header;
  std::vector<Tensor> tensors;

  std::vector<std::span<const std::byte>> pieces() const {
    std::vector<std::span<const std::byte>> result{std::as_bytes(std::span(header))};
    for (const Tensor& tensor : tensors) {
      result.emplace_back(static_cast<const std::byte*>(tensor.bytes()), bytes_of(tensor));
    }
    return result;
  }

  static std::size_t bytes_of(const Tensor& tensor) {
    return static_cast<std::size_t>(tensor.size()) * size_of(tensor.dtype());
  }
};

Parts to_parts(const Safetensors& content, const std::string& source) {
  std::vector<const NamedTensors::Entry*> ordered;
  for (const auto& entry : content.tensors) ordered.push_back(&entry);
  std::stable_sort(ordered.begin(), ordered.end(), [](const auto* a, const auto* b) {
    return size_of(a->second.dtype()) > size_of(b->second.dtype());
  });
  Parts parts;
  std::vector<io::SafetensorsEntry> entries;
  std::size_t at = 0;
  for (const auto* item : ordered) {
    const Tensor& tensor = item->second;
    const std::size_t end = at + Parts::bytes_of(tensor);
    entries.push_back({item->first, tensor.dtype(), tensor.shape(), at, end});
    parts.tensors.push_back(tensor.is_contiguous() ? tensor : tensor.copy());
    at = end;
  }
  parts.header = io::format_safetensors_header(entries, content.metadata, source);
  return parts;
}

}  // namespace

Safetensors load_safetensors(const std::filesystem::path& path, const LoadOptions& options) {
  const std::string source = fmt::format("load_safetensors: '{}'", path.string());
  return read_entries(options.mmap ? io::map_file(path, source) : io::read_file(path, source),
                      source);
}

void save_safetensors(const std::filesystem::path& path, const Safetensors& content) {
  const std::string source = fmt::format("save_safetensors: '{}'", path.string());
  io::replace_file(path, to_parts(content, source).pieces(), source);
}

Safetensors parse_safetensors(std::span<const std::byte> bytes) {
  io::parse_safetensors_header(bytes, "parse_safetensors");  // before memory is allocated
  io::FileBytes file{Storage::allocate(bytes.size())};
  std::memcpy(file.storage->data(), bytes.data(), bytes.size());
  return read_entries(file, "parse_safetensors");
}

std::vector<std::byte> format_safetensors(const Safetensors& content) {
  std::vector<std::byte> bytes;
  const Parts parts = to_parts(content, "format_safetensors");
  for (const auto piece : parts.pieces()) bytes.insert(bytes.end(), piece.begin(), piece.end());
  return bytes;
}

}  // namespace einkern
