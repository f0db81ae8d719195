// SPDX-License-Identifier: Apache-2.0
// The header of a safetensors file: JSON to names, dtypes, shapes and places of data, and back.
#pragma once

#include <cstddef>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "../../base/dtype.h"
#include "../../base/layout.h"

namespace einkern::io {

/// One tensor of the header; its data are the bytes begin to end, counted from the first byte after
/// the header.
struct SafetensorsEntry {
  std::string name;
  DType dtype = DType::f32;
  Shape shape;
  std::size_t begin = 0, end = 0;
};

struct SafetensorsHeader {
  std::vector<SafetensorsEntry> entries;  // in the order of their data
  std::map<std::string, std::string> metadata;
  std::size_t data_offset = 0;  // from the start of the file
};

/// Reads the header of a whole file and checks that the tensors fill the rest of it exactly.
/// IoError, beginning with `source`, for anything else.
SafetensorsHeader parse_safetensors_header(std::span<const std::byte> file,
                                           const std::string& source);

/// The header as it stands in a file, its size in front, padded so that data begin at a multiple
/// of 64. IoError, beginning with `source`, for texts that are no UTF-8 or too long, and for a
/// tensor called __metadata__.
std::string format_safetensors_header(const std::vector<SafetensorsEntry>& entries,
                                      const std::map<std::string, std::string>& metadata,
                                      const std::string& source);

}  // namespace einkern::io
