// SPDX-License-Identifier: Apache-2.0
// The limits of this machine, measured: multiply-adds, reading, copying, writing.
#pragma once

#include <cstdint>
#include <limits>
#include <string>

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
  /// The worst measurement of the f32 peak so far relative to the best: 1 on a steady machine.
  double steadiness() const noexcept { return slowest_peak_ / best_.peak_f32_gflops; }

 private:
  Tensor from_, to_;
  Limits best_;
  double slowest_peak_ = std::numeric_limits<double>::infinity();
};

}  // namespace einkern::tools
