// SPDX-License-Identifier: Apache-2.0
// The limits of this machine, measured: multiply-adds, reading, copying, writing.
#pragma once

#include <cstdint>
#include <functional>
#include <limits>
#include <string>
#include <vector>

#include "../engine/kernel/probe.h"
#include "../engine/tensor/tensor.h"

namespace einkern::tools {

/// Rates in units of 10^9 a second, over all threads of the arena.
struct Limits {
  double peak_f32_gflops = 0, peak_f64_gflops = 0;
  double read_gbs = 0;
  double copy_gbs = 0;   // bytes read and bytes written, non-temporally
  double write_gbs = 0;  // non-temporally

  double peak_gflops(DType dtype) const {
    return compute_dtype(dtype) == f32 ? peak_f32_gflops : peak_f64_gflops;
  }
};

/// A product of two 1024 x 1024 matrices in f32: what one run says of the machine's speed to
/// another.
struct Canary {
  std::string library;
  double before = 0, after = 0;  // seconds
};

/// Measures as often as it is told and keeps the best, since whatever shares the machine only slows
/// a probe down.
class LimitProbe {
 public:
  /// Bandwidths are measured over buffers of `buffer_bytes`.
  explicit LimitProbe(std::int64_t buffer_bytes);

  void measure();
  const Limits& best() const noexcept { return best_; }
  /// A short measurement: of multiply-adds, some milliseconds that touch no memory; of bandwidths,
  /// the next part of the buffers.
  double peak_gflops_now(DType dtype);
  double read_gbs_now();
  double write_gbs_now();
  /// The worst measurement of the f32 peak so far relative to the best: 1 on a steady machine.
  double steadiness() const noexcept { return slowest_peak_ / best_.peak_f32_gflops; }

 private:
  /// Multiply-adds of one task, about a millisecond of them.
  struct PeakTask {
    kernel::MultiplyAddProbe fma;
    std::int64_t rounds = 0;
  };

  double peak_rate(const PeakTask& task, int repetitions) const;
  double part_rate(void (LimitProbe::*piece)(std::int64_t) const);
  void read_piece(std::int64_t piece) const;
  void copy_piece(std::int64_t piece) const;
  void write_piece(std::int64_t piece) const;

  Tensor from_, to_;
  const char* read_ = nullptr;
  char* written_ = nullptr;
  std::int64_t pieces_ = 0, next_piece_ = 0;
  PeakTask f32_, f64_;
  Limits best_;
  double slowest_peak_ = std::numeric_limits<double>::infinity();
};

/// The limits while one problem is timed, from probes in turn with it: where a machine is shared,
/// its bandwidth changes by half within a minute, and the best of a run is nobody's limit for long.
class LimitsInTurn {
 public:
  /// Of a problem bound by memory both bandwidths are probed, else the multiply-adds of `dtype`.
  LimitsInTurn(LimitProbe& probe, DType dtype, bool memory_bound);

  /// Probes, unless the last probe took longer than the turns since, which took `seconds` more.
  /// Says whether it did: operands may have left the caches.
  bool after_turn(double seconds);
  /// Medians of what was probed; for the rest, the best of the run.
  Limits limits() const;

 private:
  struct Rate {
    std::function<double()> now;
    double Limits::*limit;
    std::vector<double> rates;
  };

  LimitProbe& probe_;
  std::vector<Rate> rates_;
  double since_ = std::numeric_limits<double>::infinity(), took_ = 0;
};

}  // namespace einkern::tools
