// SPDX-License-Identifier: Apache-2.0
// NumPy's .npz format: members of an archive to tensors, where they lie if they can be used there.
#include "npz.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <string>

#include "../../base/error.h"
#include "../storage.h"
#include "file.h"
#include "npy_header.h"
#include "npy_tensor.h"
#include "shown.h"
#include "zip.h"

namespace einkern {
namespace {

constexpr std::string_view kSuffix = ".npy";

std::string source_of(const char* function, const std::filesystem::path& path) {
  return fmt::format("{}: '{}'", function, path.string());
}

std::string source_of(const std::string& source, std::string_view member) {
  return fmt::format("{}: member '{}'", source, io::shown(member));
}

io::FileBytes bytes_of_file(const std::filesystem::path& path, const LoadOptions& options,
                            const std::string& source) {
  return options.mmap ? io::map_file(path, source) : io::read_file(path, source);
}

Tensor to_tensor(const io::FileBytes& file, const io::ZipMember& member,
                 const std::string& archive) {
  const std::string source = source_of(archive, member.name);
  if (!member.is_deflated) {
    io::check_stored(member, source);
    return io::npy_tensor(file, member.stored, source);
  }
  const io::FileBytes inflated{Storage::allocate(member.size)};
  auto* to = static_cast<std::byte*>(inflated.storage->data());
  io::read_member(member, {to, member.size}, source);
  return io::npy_tensor(inflated, inflated.view(), source);
}

std::string key_of(const io::ZipMember& member, const std::string& source) {
  if (!member.name.ends_with(kSuffix)) {
    fail<IoError>(fmt::format("{} is no .npy file", source_of(source, member.name)));
  }
  return member.name.substr(0, member.name.size() - kSuffix.size());
}

NamedTensors read_members(const io::FileBytes& file, const std::string& source) {
  NamedTensors tensors;
  for (const io::ZipMember& member : io::parse_zip(file.view(), source)) {
    std::string key = key_of(member, source);
    tensors.add(std::move(key), to_tensor(file, member, source));
  }
  return tensors;
}

/// Calls `use` with the pieces of the archive, while what they point into is there.
template <class Use>
void with_pieces(const NamedTensors& tensors, const NpzOptions& options, const std::string& source,
                 const Use& use) {
  std::vector<std::string> headers;
  std::vector<Tensor> packed;
  for (const auto& [name, tensor] : tensors) {
    headers.push_back(
        io::format_npy_header(tensor.dtype(), tensor.shape(), source_of(source, name)));
    packed.push_back(tensor.is_contiguous() ? tensor : tensor.copy());
  }
  std::vector<io::ZipContent> contents;
  for (const auto& [name, tensor] : tensors) {
    if (name.empty()) fail<IoError>(fmt::format("{}: an array has an empty name", source));
    const std::size_t i = contents.size();
    const std::span<const std::byte> data(
        static_cast<const std::byte*>(packed[i].bytes()),
        static_cast<std::size_t>(tensor.size()) * size_of(tensor.dtype()));
    contents.push_back({name + std::string(kSuffix), {std::as_bytes(std::span(headers[i])), data}});
  }
  const io::ZipParts parts = io::format_zip(contents, source, {.deflate = options.compress});
  use(std::span(parts.pieces));
}

}  // namespace

NamedTensors load_npz(const std::filesystem::path& path, const LoadOptions& options) {
  const std::string source = source_of("load_npz", path);
  return read_members(bytes_of_file(path, options, source), source);
}

Tensor load_npz(const std::filesystem::path& path, std::string_view name,
                const LoadOptions& options) {
  const std::string source = source_of("load_npz", path);
  const io::FileBytes file = bytes_of_file(path, options, source);
  const std::vector<io::ZipMember> members = io::parse_zip(file.view(), source);
  std::vector<std::string_view> names;
  for (const io::ZipMember& member : members) {
    std::string_view key = member.name;
    if (key.ends_with(kSuffix)) key.remove_suffix(kSuffix.size());
    if (key == name) return to_tensor(file, member, source);
    names.push_back(key);
  }
  fail<ValueError>(
      fmt::format("{}: no array '{}'; {}", source, io::shown(name),
                  names.empty() ? "there are none" : "the names are " + io::shown_list(names)));
}

void save_npz(const std::filesystem::path& path, const NamedTensors& tensors,
              const NpzOptions& options) {
  const std::string source = source_of("save_npz", path);
  with_pieces(tensors, options, source,
              [&](auto pieces) { io::replace_file(path, pieces, source); });
}

NamedTensors parse_npz(std::span<const std::byte> bytes) {
  io::parse_zip(bytes, "parse_npz");  // before memory is allocated
  io::FileBytes file{Storage::allocate(bytes.size())};
  std::memcpy(file.storage->data(), bytes.data(), bytes.size());
  return read_members(file, "parse_npz");
}

std::vector<std::byte> format_npz(const NamedTensors& tensors, const NpzOptions& options) {
  std::vector<std::byte> bytes;
  with_pieces(tensors, options, "format_npz", [&](auto pieces) {
    for (const auto piece : pieces) bytes.insert(bytes.end(), piece.begin(), piece.end());
  });
  return bytes;
}

}  // namespace einkern
