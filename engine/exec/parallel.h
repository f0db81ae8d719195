// SPDX-License-Identifier: Apache-2.0
// Parallel loops over tiles whose cut depends on shapes only; the only room of oneTBB.
#pragma once

#include <cstddef>
#include <cstdint>

namespace einkern::exec {

/// A borrowed callable `void(std::int64_t tile)`: no allocation, no ownership.
class TileFunction {
 public:
  template <class F>
  TileFunction(const F& f)  // NOLINT(google-explicit-constructor): made from a lambda at the call
      : object_(&f),
        call_([](const void* o, std::int64_t tile) { (*static_cast<const F*>(o))(tile); }) {}
  void operator()(std::int64_t tile) const { call_(object_, tile); }

 private:
  const void* object_;
  void (*call_)(const void*, std::int64_t);
};

/// Below this much work (in elements touched or flops / 8) a loop runs in the calling thread: a
/// oneTBB region costs a few microseconds.
inline constexpr double kSerialWork = 32768;

/// Calls `f(0) ... f(tiles - 1)`, in parallel when `work` is above kSerialWork. Tiles must be
/// independent: which thread runs which is not defined. Runs isolated, so that a waiting worker
/// takes no other task of the caller. The first exception is rethrown after the loop has stopped.
void parallel_for(std::int64_t tiles, double work, TileFunction f);

/// Runs `f(0)` in the arena that section 7 of the conventions names: `threads` > 0 (or
/// EINKERN_THREADS): an arena of that width; otherwise the arena we are in; outside any, one
/// process-wide arena of min(affinity, rounded-up CPU quota) threads.
void in_arena(int threads, TileFunction f);

/// Width of the arena that `parallel_for` would use here.
int concurrency();

/// Number of the calling thread among those, 0 outside of a loop.
int thread_number();

}  // namespace einkern::exec
