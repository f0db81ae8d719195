// SPDX-License-Identifier: Apache-2.0
// The unpacked half of the matrix kernels, filled into the table apart from the packed half.
#pragma once

#include "matmul.h"

namespace einkern::kernel {

/// Sets the pointers of unpacked products to the kernels of the target that Highway dispatches to
/// now.
void fill_matmul_direct(MatmulKernels& kernels);
/// Those of them that multiply many small matrices: one by one, and side by side in the lanes.
void fill_matmul_small(MatmulKernels& kernels);
void fill_matmul_lanes(MatmulKernels& kernels);

}  // namespace einkern::kernel
