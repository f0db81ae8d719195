// SPDX-License-Identifier: Apache-2.0
// The header of a .npy file: bytes to dtype, order and shape, and back.
#pragma once

#include <cstddef>
#include <span>
#include <string>

#include "../../base/dtype.h"
#include "../../base/layout.h"

namespace einkern::io {

/// What the header says about the bytes that follow it.
struct NpyHeader {
  DType dtype = DType::f32;  // of the tensor; f32 for half-precision items
  std::size_t item_bytes = 4;
  bool big_endian = false;
  bool fortran_order = false;
  Shape shape;
  std::size_t data_offset = 0;  // from the start of the file
  std::size_t data_bytes = 0;

  bool is_half() const noexcept { return item_bytes == 2 && dtype == DType::f32; }
};

/// Reads the header of a whole file and checks that the data it announces fill the rest exactly.
/// IoError, beginning with `source`, for anything else.
NpyHeader parse_npy_header(std::span<const std::byte> file, const std::string& source);

/// The header that NumPy writes for a little-endian array in C order, padded to 64 bytes. IoError,
/// beginning with `source`, for bf16, which has none.
std::string format_npy_header(DType dtype, const Shape& shape, const std::string& source);

}  // namespace einkern::io
