// SPDX-License-Identifier: Apache-2.0
// The packing half of the matrix kernels, filled into the table apart from the multiplying half.
#pragma once

#include "matmul.h"

namespace einkern::kernel {

/// Sets the `pack` pointers to the kernels of the target that Highway dispatches to now.
void fill_matmul_pack(MatmulKernels& kernels);

}  // namespace einkern::kernel
