// SPDX-License-Identifier: Apache-2.0
// Parallel loops on oneTBB: which arena, fixed tiles, isolation.
#include "parallel.h"

#include <tbb/blocked_range.h>
#include <tbb/info.h>
#include <tbb/parallel_for.h>
#include <tbb/partitioner.h>
#include <tbb/task.h>
#include <tbb/task_arena.h>

#include <cstdlib>
#include <map>
#include <memory>
#include <mutex>
#include <string>

#include "../base/error.h"
#include "../base/machine.h"

namespace einkern::exec {
namespace {

/// The arena of this width; made once, never destroyed, since its workers may outlive static
/// objects.
tbb::task_arena& arena_of(int threads) {
  static std::mutex mutex;
  static auto& arenas = *new std::map<int, std::unique_ptr<tbb::task_arena>>;
  const std::lock_guard lock(mutex);
  auto& arena = arenas[threads];
  if (!arena) arena = std::make_unique<tbb::task_arena>(threads);
  return *arena;
}

/// EINKERN_THREADS, or 0.
int threads_of_environment() {
  static const int threads = [] {
    const char* text = std::getenv("EINKERN_THREADS");
    if (text == nullptr || *text == '\0') return 0;
    char* end = nullptr;
    const long value = std::strtol(text, &end, 10);
    if (*end != '\0' || value < 1 || value > 4096) {
      fail<ValueError>("EINKERN_THREADS: expected a number from 1 to 4096, got '" +
                       std::string(text) + "'");
    }
    return static_cast<int>(value);
  }();
  return threads;
}

/// Is this thread inside an arena that somebody entered? oneTBB puts every thread that has ever
/// used it into an implicit arena of default width; only a running task, or another width, tells a
/// chosen arena from that one.
bool inside_arena() {
  if (tbb::this_task_arena::current_thread_index() == tbb::task_arena::not_initialized)
    return false;
  return tbb::task::current_context() != nullptr ||
         tbb::this_task_arena::max_concurrency() != tbb::info::default_concurrency();
}

// The arena that `in_arena` chose for loops of this thread; null inside a caller's own. Entered
// only when a loop is long enough to be worth it.
thread_local tbb::task_arena* chosen = nullptr;

/// Null: the arena we are in.
tbb::task_arena* choose(int threads) {
  if (threads <= 0) threads = threads_of_environment();
  if (threads > 0) return &arena_of(threads);
  if (chosen != nullptr) return chosen;
  static tbb::task_arena& process_wide = arena_of(machine().processors);
  return inside_arena() ? nullptr : &process_wide;
}

tbb::task_arena* arena_of_loops() { return chosen != nullptr ? chosen : choose(0); }

class ChosenScope {
 public:
  explicit ChosenScope(tbb::task_arena* arena) : outer_(chosen) { chosen = arena; }
  ~ChosenScope() { chosen = outer_; }
  ChosenScope(const ChosenScope&) = delete;
  ChosenScope& operator=(const ChosenScope&) = delete;

 private:
  tbb::task_arena* outer_;
};

}  // namespace

void parallel_for(std::int64_t tiles, double work, TileFunction f) {
  if (tiles <= 1 || work <= kSerialWork || concurrency() == 1) {
    for (std::int64_t tile = 0; tile < tiles; ++tile) f(tile);
    return;
  }
  tbb::task_arena* const arena = arena_of_loops();
  const auto loop = [&] {
    tbb::this_task_arena::isolate([&] {
      tbb::parallel_for(
          tbb::blocked_range<std::int64_t>(0, tiles, 1),
          [&](const tbb::blocked_range<std::int64_t>& range) {
            // A tile may enter the library again, on a thread that has chosen nothing.
            const ChosenScope scope(arena);
            for (std::int64_t tile = range.begin(); tile < range.end(); ++tile) f(tile);
          },
          tbb::simple_partitioner());
    });
  };
  if (arena != nullptr) {
    arena->execute(loop);
  } else {
    loop();
  }
}

void in_arena(int threads, TileFunction f) {
  const ChosenScope scope(choose(threads));
  f(0);
}

int thread_number() {
  const int index = tbb::this_task_arena::current_thread_index();
  return index == tbb::task_arena::not_initialized ? 0 : index;
}

int concurrency() {
  if (const tbb::task_arena* arena = arena_of_loops()) return arena->max_concurrency();
  return tbb::this_task_arena::max_concurrency();
}

}  // namespace einkern::exec
