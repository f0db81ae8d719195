// SPDX-License-Identifier: Apache-2.0
// The safetensors format: files and bytes to named tensors and back.
#pragma once

#include <cstddef>
#include <filesystem>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "load_options.h"
#include "named_tensors.h"

namespace einkern {

/// What a safetensors file holds.
struct Safetensors {
  NamedTensors tensors;                         // of a file: in the order of their data
  std::map<std::string, std::string> metadata;  // the texts under __metadata__
};

/// The tensors of a safetensors file, C order, without labels.
/// Takes BOOL, I8 to I64, F16, BF16, F32 and F64, each of which stays what it is. Mapped, the
/// tensors are views of the file where their data are aligned to their elements, copies elsewhere;
/// they share the mapping and keep it alive. IoError, naming the file and the tensor, for anything
/// that is no such file: a header beyond 100 MB or beyond the file, names that stand twice, other
/// dtypes, shapes that do not fit the bytes they are given, bytes that belong to two tensors or to
/// none. Source: the format's description at github.com/huggingface/safetensors.
Safetensors load_safetensors(const std::filesystem::path& path, const LoadOptions& options = {});

/// Writes a safetensors file, the widest elements first, so that all are aligned; data begin at a
/// multiple of 64 bytes. The bytes go to a temporary file that takes the place of `path` when it is
/// complete, as in `save_npy`. IoError for names that are no UTF-8, and for __metadata__.
void save_safetensors(const std::filesystem::path& path, const Safetensors& content);

/// What `load_safetensors` would make of a file with these bytes, as tensors with memory of their
/// own.
Safetensors parse_safetensors(std::span<const std::byte> bytes);

/// What `save_safetensors` would write.
std::vector<std::byte> format_safetensors(const Safetensors& content);

}  // namespace einkern
