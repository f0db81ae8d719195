// SPDX-License-Identifier: Apache-2.0
// Attention problems timed beside the limits of the machine.
#pragma once

#include <cstdint>
#include <string>

#include "../engine/base/dtype.h"

namespace einkern::tools {

struct AttentionBench {
  std::string path;
  DType dtype = f32;
  double min_seconds = 0.5;
  std::int64_t buffer_bytes = std::int64_t{1} << 30;
  bool plain = false;  // time every problem without fusion as well, in turn
  bool json = false;
};

/// Checks every problem against its definition, times it (two rounds of limits around all), and
/// returns the report: a table, or JSON with --json.
std::string bench_attention(const AttentionBench& bench);

}  // namespace einkern::tools
