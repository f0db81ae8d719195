// SPDX-License-Identifier: Apache-2.0
// NumPy's .npy format: files and bytes to tensors and back.
#pragma once

#include <cstddef>
#include <filesystem>
#include <span>
#include <vector>

#include "../tensor.h"
#include "load_options.h"

namespace einkern {

/// The array in a .npy file of version 1, 2 or 3, without labels.
/// Takes bool, i1 to i8, f4, f8 and f2 (which becomes f32), either byte order, C and Fortran order
/// (the latter as strides). Mapped where the bytes can be used as they lie, converted otherwise. A
/// pipe is read to its end. IoError for everything that is no such file, found before memory is
/// allocated. Source: NumPy Enhancement Proposal 1.
Tensor load_npy(const std::filesystem::path& path, const LoadOptions& options = {});

/// Writes a .npy file of version 1 (2 when the header needs it): little-endian, C order, no labels,
/// f16 as f2; the format has no bf16, which is an IoError.
/// The bytes go to a temporary file in the same folder, which takes the place and the mode of an
/// existing one when it is complete; IoError leaves what was there. Devices and pipes are written
/// directly.
void save_npy(const std::filesystem::path& path, const Tensor& tensor);

/// What `load_npy` would make of a file with these bytes, as a tensor with its own memory.
Tensor parse_npy(std::span<const std::byte> bytes);

/// What `save_npy` would write.
std::vector<std::byte> format_npy(const Tensor& tensor);

}  // namespace einkern
