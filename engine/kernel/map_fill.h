// SPDX-License-Identifier: Apache-2.0
// The two halves of the table of elementwise kernels.
#pragma once

#include "map_tile.h"

namespace einkern::kernel {

/// Arithmetic, comparisons, logic, selection and conversions: plain loops that the compiler turns
/// into vectors of the target.
void fill_map_arithmetic(MapKernels& kernels);
/// sqrt, exp and their relatives, on explicit vectors.
void fill_map_math(MapKernels& kernels);

}  // namespace einkern::kernel
