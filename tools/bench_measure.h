// SPDX-License-Identifier: Apache-2.0
// Problems of the benchmark to checked times beside the limits of the machine.
#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "bench_check.h"
#include "bench_compare.h"
#include "bench_limits.h"
#include "bench_peers.h"
#include "bench_problems.h"

namespace einkern::tools {

/// Operands that are to come from memory are held in at most so many sets.
constexpr std::int64_t kMostSets = 4096;

/// What a problem must do at least: operations of its plan, and every operand and the output once.
struct Work {
  DType dtype = f32;
  double flops = 0, bytes_read = 0, bytes_written = 0;

  friend bool operator==(const Work&, const Work&) = default;

  double memory_seconds(const Limits& limits) const {
    return bytes_read / (1e9 * limits.read_gbs) + bytes_written / (1e9 * limits.write_gbs);
  }
  double compute_seconds(const Limits& limits) const {
    return flops / (1e9 * limits.peak_gflops(dtype));
  }
  bool is_memory_bound(const Limits& limits) const {
    return memory_seconds(limits) > compute_seconds(limits);
  }
};

struct Times {
  double median = 0;
  double spread = 0;  // between the quartiles, relative to the median
  std::size_t runs = 0;
};

/// Median and spread of some runs.
Times summarise(std::vector<double> seconds);

/// Another library's time for the same answer.
struct PeerTimes {
  std::string name;
  Times times;
  double ratio = 0;  // to ours: median over turns
};

struct Result {
  Samples samples;
  Work work;
  std::string regime;  // the kinds of the plan's steps
  Times into;          // `einsum_into` on a touched output
  Times fresh;         // `Tensor c = einsum(...)`
  bool cold = false;   // operands were not in the caches
  std::vector<PeerTimes> peers;
  bool peers_permute = false;  // the problem as it stands is no matrix product
  Limits limits;               // while it was timed

  double gflops() const { return work.flops / into.median / 1e9; }
  double gbs() const { return (work.bytes_read + work.bytes_written) / into.median / 1e9; }
  double roofline() const {
    return std::max(work.compute_seconds(limits), work.memory_seconds(limits)) / into.median;
  }
};

struct Report {
  Limits limits;          // the best of the run
  double steadiness = 1;  // of the probes, see LimitProbe
  Canary canary;
  std::vector<Result> results;  // one per problem
  const Peers* peers = nullptr;
  std::optional<StoredRun> stored;  // to compare with
};

struct MeasureOptions {
  double min_seconds = 0.5;
  std::int64_t buffer_bytes = std::int64_t{1} << 30;
  bool warm = false;  // problems bound by memory reuse one set of operands
  const Peers* peers = nullptr;
  std::function<void(const Problem&)> progress = [](const Problem&) {};
};

/// Checks the answer of every problem, of every peer too, then times both forms and the peers in
/// turn until `einsum_into` has taken `min_seconds` and 11 turns. The limits are measured before,
/// halfway and after, and those of each problem in turn with it. Problems bound by arithmetic are
/// timed in turn with their neighbours, so that their ratios hold while the speed of the machine
/// drifts; those bound by memory one after another, each over operand sets of `buffer_bytes` in
/// all.
Report measure(const std::vector<Problem>& problems, const MeasureOptions& options);

}  // namespace einkern::tools
