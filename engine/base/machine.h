// SPDX-License-Identifier: Apache-2.0
// What this machine is (caches, processors, memory) and what a SIMD target can do, as plain data.
#pragma once

#include <cstdint>
#include <string_view>

namespace einkern {

/// Facts about the machine, read once.
struct Machine {
  std::int64_t l1d_bytes = 32 << 10;  // per core
  std::int64_t l2_bytes = 1 << 20;    // per core
  std::int64_t l3_bytes = 8 << 20;    // shared
  std::int64_t memory_bytes = 0;      // physical, or the container's limit when that is smaller
  int processors = 1;                 // min(affinity, rounded-up CPU quota of the container)
};

/// The machine we run on.
const Machine& machine();

/// A SIMD target as the planner sees it. The kernel room fills one per compiled target; `make_plan`
/// takes it as an argument, so that plans can be tested for targets that this machine lacks.
struct Target {
  std::string_view name;  // "AVX3", "AVX2", "SSE4", "SCALAR"
  int vector_bytes = 16;  // width of a register
  // Register tile of the matrix kernel: mr rows of nr contiguous columns.
  int mr_f32 = 4, nr_f32 = 8;
  int mr_f64 = 4, nr_f64 = 4;
  int attend_vectors = 2;  // of rows in a tile of streamed attention
  // Contracted labels are summed in blocks of this many products: fixed per target and dtype, since
  // it decides the order of a sum.
  int kc_f32 = 256, kc_f64 = 256;
  // Cost model, per thread: fixed numbers, never measured ones.
  double peak_f32 = 16e9, peak_f64 = 8e9;                // flop/s
  double read_bandwidth = 14e9, write_bandwidth = 17e9;  // byte/s
  double call_overhead = 2e-7;                           // s per step
};

}  // namespace einkern
