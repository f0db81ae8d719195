// SPDX-License-Identifier: Apache-2.0
// Files as memory: mapped or read whole, and replaced in one step or not at all.
#pragma once

#include <cstddef>
#include <filesystem>
#include <initializer_list>
#include <memory>
#include <span>
#include <string>

#include "../storage.h"

namespace einkern::io {

/// The bytes of a file; `read_only` when they are mapped.
struct FileBytes {
  std::shared_ptr<Storage> storage;
  bool read_only = false;

  std::span<const std::byte> view() const noexcept {
    return {static_cast<const std::byte*>(storage->data()), storage->bytes()};
  }
};

/// Maps a regular file; what cannot be mapped (a pipe, an empty file) is read instead.
FileBytes map_file(const std::filesystem::path& path, const std::string& source);

/// Reads a file, or a pipe to its end, into memory of its own.
FileBytes read_file(const std::filesystem::path& path, const std::string& source);

/// Writes the pieces one after the other to a temporary file beside `path` and renames it to
/// `path`, keeping the mode of a file that was there. On failure the temporary file is removed,
/// what was there is untouched, and an IoError beginning with `source` is thrown. Devices and pipes
/// are written as they are; a symbolic link is followed.
void replace_file(const std::filesystem::path& path,
                  std::span<const std::span<const std::byte>> pieces, const std::string& source);
inline void replace_file(const std::filesystem::path& path,
                         std::initializer_list<std::span<const std::byte>> pieces,
                         const std::string& source) {
  replace_file(path, std::span(pieces.begin(), pieces.size()), source);
}

}  // namespace einkern::io
