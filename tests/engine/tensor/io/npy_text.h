// SPDX-License-Identifier: Apache-2.0
// npy files of NumPy, and files made up as text.
#pragma once

#include <filesystem>
#include <span>
#include <string>

#include "../../../../engine/tensor/io/npy.h"

namespace einkern::test {

/// A file that NumPy wrote.
inline std::filesystem::path golden(const std::string& name) {
  return std::filesystem::path(EINKERN_TEST_DATA) / "npy" / (name + ".npy");
}

inline Tensor parse(const std::string& text) { return parse_npy(std::as_bytes(std::span(text))); }

}  // namespace einkern::test
