// SPDX-License-Identifier: Apache-2.0
// Runs something with several numbers of threads, however few processors there are.
#pragma once

#include <tbb/global_control.h>

#include "../../../engine/exec/parallel.h"

namespace einkern::test {

/// Calls `f(threads)` with loops over 1, 2 and 5 threads. oneTBB makes no more workers than there
/// are processors unless it is told to.
template <class F>
void with_threads(F&& f) {
  const tbb::global_control workers(tbb::global_control::max_allowed_parallelism, 5);
  for (const int threads : {1, 2, 5}) {
    exec::in_arena(threads, [&](std::int64_t) { f(threads); });
  }
}

}  // namespace einkern::test
