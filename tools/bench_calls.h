// SPDX-License-Identifier: Apache-2.0
// What a call costs beside its arithmetic.
#pragma once

#include <string>

#include "bench_attention.h"

namespace einkern::tools {

/// Times calls on two 8 x 8 f32 tensors, whose 1024 flops take nanoseconds: cached, into a tensor,
/// compiled, and what is done when an equation is met for the first time. Each row is the median of
/// 21 batches of at least `min_seconds` / 21; rows are timed in turn.
std::string bench_calls(double min_seconds, ReportForm form);

}  // namespace einkern::tools
