// SPDX-License-Identifier: Apache-2.0
// The limits of this machine, measured: multiply-adds, reading, copying, writing.
#pragma once

#include <cstdint>

#include "../engine/tensor/tensor.h"

namespace einkern::tools {

/// Rates in units of 10^9 a second, over all threads of the arena.
struct Limits {
  double peak_gflops = 0;
  double read_gbs = 0;
  double copy_gbs = 0;   // bytes read and bytes written, non-temporally
  double write_gbs = 0;  // non-temporally
};

/// Measures as often as it is told and keeps the best, since whatever shares the machine only slows
/// a probe down.
class LimitProbe {
 public:
  /// Peak of this dtype (f32 or f64); bandwidths over buffers of `buffer_bytes`.
  LimitProbe(DType dtype, std::int64_t buffer_bytes);

  void measure();
  const Limits& best() const noexcept { return best_; }

 private:
  DType dtype_;
  Tensor from_, to_;
  Limits best_;
};

}  // namespace einkern::tools
