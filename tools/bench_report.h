// SPDX-License-Identifier: Apache-2.0
// What the benchmark measured, as text, Markdown and JSON.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "bench_measure.h"
#include "table.h"

namespace einkern::tools {

/// Rates, threads and target of this run, as every report of the benchmark begins; `peak_gflops` is
/// that of `dtype`.
nlohmann::ordered_json machine_json(const Limits& limits, DType dtype);
std::string machine_line(const Limits& limits);
/// Those of a row, which its fraction is of.
nlohmann::ordered_json limits_json(const Limits& limits, DType dtype);

/// What is wrong with the run as a whole, peers and the stored run included, or with a row of it.
std::vector<std::string> flags_of(const Report& report);
std::vector<std::string> flags_of(const Result& result);

/// {"machine": ..., "results": [...]}.
std::string as_json(const std::vector<Problem>& problems, const Report& report, DType dtype);
/// The machine, then a row a problem. Where all problems are the same work, `rate` is relative to
/// the first one's.
std::string as_table(const std::vector<Problem>& problems, const Report& report, TableStyle style);
/// A single problem, a fact a line.
std::string as_text(const Problem& problem, const Report& report);

}  // namespace einkern::tools
