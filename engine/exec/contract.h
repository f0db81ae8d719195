// SPDX-License-Identifier: Apache-2.0
// The ways to run a contraction, one function per file.
#pragma once

#include "frame.h"

namespace einkern::exec {

/// Packed matrix product; f32 and f64, any groups and strides, every size at least 1.
void run_matmul(const plan::Contract& step, const Frame& frame);

/// Exact i64 contraction by plain loops; ValueError when a sum leaves i64.
void run_integer(const plan::Contract& step, const Frame& frame);

}  // namespace einkern::exec
