// SPDX-License-Identifier: Apache-2.0
// Names of tensors on command lines: a file, a member of one, or a standard stream.
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "../engine/tensor/tensor.h"

namespace einkern::tools {

/// `a.npy`, `a.npz:key`, `w.safetensors:name`, or `-`: standard input as .npy.
struct TensorName {
  enum class Format { npy, npz, safetensors };

  std::string path;
  std::string member;  // empty: the file holds one tensor
  Format format = Format::npy;

  bool is_stream() const noexcept { return path == "-"; }
};

/// A file with a colon in its name is one when what stands before the colon ends in .npz or
/// .safetensors.
TensorName parse_tensor_name(std::string_view text);

/// The tensor; large files are mapped, not copied. IoError; ValueError when a file holds several
/// and none is named, listing them.
Tensor load_tensor(const std::string& text);

/// The tensors of a file and their names; a .npy file holds one without a name.
std::vector<std::pair<std::string, Tensor>> load_all(const std::string& text);

/// Writes tensors in the format that the path's ending says: one as .npy, all of them otherwise.
void save_tensors(const std::string& path, TensorName::Format format,
                  const std::vector<std::pair<std::string, Tensor>>& tensors);

}  // namespace einkern::tools
