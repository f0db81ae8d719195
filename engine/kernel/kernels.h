// SPDX-License-Identifier: Apache-2.0
// The table of kernels: one per SIMD target, chosen once at run time.
#pragma once

#include <string_view>
#include <vector>

#include "../base/machine.h"
#include "attend.h"
#include "attend_decode.h"
#include "copy.h"
#include "map_tile.h"
#include "matmul.h"
#include "matmul_skinny.h"
#include "matmul_stream.h"
#include "probe.h"
#include "reduce.h"
#include "softmax.h"

namespace einkern::kernel {

/// All kernels of one target. Every pointer is set; every kernel is noexcept and sees pointers,
/// sizes and strides only.
struct Kernels {
  Target target;
  MatmulKernels matmul;
  StreamKernels stream;
  SkinnyKernels skinny;
  MapKernels map;
  ReduceKernels reduce;
  SoftmaxKernels softmax;
  CopyKernels copy;
  AttendKernels attend;
  DecodeKernels decode;
  ProbeKernels probe;
};

/// The table of the chosen target: the best that this processor supports, or the one that the
/// environment variable EINKERN_TARGET names (ValueError listing the choices for an unknown or
/// unsupported name).
const Kernels& kernels();

/// The tables of all compiled targets that this processor supports, best first: what tests loop
/// over.
const std::vector<const Kernels*>& supported_kernels();

/// The names of all compiled targets, best first, whether this processor has them or not.
std::vector<std::string_view> compiled_targets();

/// Makes `kernels()` return this table from now on; for tests and `einkern bench --target`.
void force_target(const Kernels& table);

}  // namespace einkern::kernel
