// SPDX-License-Identifier: Apache-2.0
// The bytes of an .npy file inside other bytes as a tensor.
#pragma once

#include <cstddef>
#include <span>
#include <string>

#include "../tensor.h"
#include "file.h"

namespace einkern::io {

/// The tensor of the .npy file that these bytes of `file` are: a view of them where they can be
/// used as they lie, a copy elsewhere. IoError, beginning with `source`, when they are none.
Tensor npy_tensor(const FileBytes& file, std::span<const std::byte> npy, const std::string& source);

}  // namespace einkern::io
