// SPDX-License-Identifier: Apache-2.0
// Loops that do nothing but reach a limit of the machine: arithmetic, reading, writing.
#pragma once

#include <cstdint>

namespace einkern::kernel {

/// Multiply-adds in registers, as many chains as hide their latency.
struct MultiplyAddProbe {
  /// Returns a value that depends on all of them.
  double (*run)(std::int64_t rounds) noexcept = nullptr;
  double flops_per_round = 0;
};

struct ProbeKernels {
  MultiplyAddProbe f32, f64;
  /// Reads whole lines of 64 bytes; returns a value that depends on every byte.
  std::uint64_t (*read)(const void* from, std::int64_t lines) noexcept = nullptr;
  /// Writes numbers to whole lines (aligned to 64 bytes) around the caches.
  void (*write)(void* to, std::int64_t lines) noexcept = nullptr;
};

/// Sets every pointer to the kernels of the target that Highway dispatches to now.
void fill_probe(ProbeKernels& kernels);

}  // namespace einkern::kernel
