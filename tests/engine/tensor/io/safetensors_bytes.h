// SPDX-License-Identifier: Apache-2.0
// Safetensors files put together by hand.
#pragma once

#include <string>

namespace einkern::test {

/// The size of the header in eight bytes, the header, the data.
inline std::string safetensors_file(const std::string& json, const std::string& data) {
  std::string size;
  for (int i = 0; i < 8; ++i) size += static_cast<char>(json.size() >> (8 * i) & 255);
  return size + json + data;
}

}  // namespace einkern::test
