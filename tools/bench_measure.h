// SPDX-License-Identifier: Apache-2.0
// Problems of the benchmark, and their times beside the limits of the machine.
#pragma once

#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

#include "../engine/base/dtype.h"
#include "../engine/base/layout.h"
#include "../engine/plan/path.h"
#include "bench_check.h"
#include "bench_limits.h"

namespace einkern::tools {

/// An equation over operands of these shapes.
struct Problem {
  std::string name;
  std::string equation;
  std::vector<Shape> shapes;
  DType dtype = f32;
  PathChoice path;
};

/// What a problem must do at least: operations of its plan, and every operand and the output once.
struct Work {
  double flops = 0, bytes_read = 0, bytes_written = 0;

  double memory_seconds(const Limits& limits) const {
    return bytes_read / (1e9 * limits.read_gbs) + bytes_written / (1e9 * limits.write_gbs);
  }
  double compute_seconds(const Limits& limits) const { return flops / (1e9 * limits.peak_gflops); }
};

struct Times {
  double median = 0;
  double spread = 0;  // between the quartiles, relative to the median
  std::size_t runs = 0;
};

/// Median and spread of some runs.
Times summarise(std::vector<double> seconds);

struct Result {
  Samples samples;
  Work work;
  Times times;
  bool cold = false;  // operands were not in the caches
  Limits limits;

  double gflops() const { return work.flops / times.median / 1e9; }
  double gbs() const { return (work.bytes_read + work.bytes_written) / times.median / 1e9; }
  double roofline() const {
    return std::max(work.compute_seconds(limits), work.memory_seconds(limits)) / times.median;
  }
};

/// Checks the answer of every problem, then times it for at least `min_seconds` and 11 runs, and
/// measures the limits before, between and after. Problems bound by arithmetic are timed in turn,
/// so that their ratios hold while the speed of the machine drifts; those bound by memory one after
/// another, each over operand sets of `buffer_bytes` in all. All have the same dtype.
std::vector<Result> measure(const std::vector<Problem>& problems, double min_seconds,
                            std::int64_t buffer_bytes);

/// Reads lines `name<TAB>equation<TAB>a=48,b=28` (sizes of one-letter labels; `#` begins a
/// comment). IoError naming the file and line.
std::vector<Problem> read_problems(const std::string& path, DType dtype);

}  // namespace einkern::tools
