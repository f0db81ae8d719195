// SPDX-License-Identifier: Apache-2.0
// Rows that kernels read where they lie.
#pragma once

#include <cstdint>

#include "../base/dtype.h"

namespace einkern::kernel {

/// Rows where they lie: element i of row j is data[at[j] + i]. They are of the type of the kernel,
/// or f16 or bf16 for f32 ones, which widen them in registers.
struct StoredRows {
  const void* data = nullptr;
  DType dtype = DType::f32;
  const std::int64_t* at = nullptr;
};

}  // namespace einkern::kernel
