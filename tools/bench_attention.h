// SPDX-License-Identifier: Apache-2.0
// Attention problems timed beside the limits of the machine.
#pragma once

#include <cstdint>
#include <string>

#include "../engine/base/dtype.h"

namespace einkern::tools {

enum class ReportForm : std::uint8_t { text, markdown, json };

struct AttentionBench {
  std::string source;  // the set `attention` or a file
  std::string only;    // a regular expression that names must match
  DType dtype = f32;   // f16, bf16: of keys and values, beside f32
  double min_seconds = 0.5;
  std::int64_t buffer_bytes = std::int64_t{1} << 30;
  bool plain = false;  // time every problem without fusion as well, in turn
  bool warm = false;   // one set of operands also where memory is the limit
  ReportForm form = ReportForm::text;
};

/// Checks every problem against its definition, times it (two rounds of limits around all), and
/// returns the report. `extra` is the most memory in blocks of 128 KiB and more that an evaluation
/// takes beside operands and output.
std::string bench_attention(const AttentionBench& bench);

/// The problems it would time, one a line.
std::string list_attention(const AttentionBench& bench);

}  // namespace einkern::tools
