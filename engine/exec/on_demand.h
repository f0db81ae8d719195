// SPDX-License-Identifier: Apache-2.0
// Things that tasks share, made by whichever needs them first.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <thread>

#include "scratch.h"

namespace einkern::exec {

/// Things that whichever task needs them first makes for all. Whoever waits for another task waits
/// for one that is running, never for one that has yet to start.
class OnDemand {
 public:
  explicit OnDemand(std::int64_t count)
      : count_(count), memory_(static_cast<std::size_t>(count) * sizeof(std::atomic<State>)) {
    std::uninitialized_default_construct_n(states(), count);
  }

  /// Nothing is made; no task may be running.
  void clear() {
    for (std::int64_t i = 0; i < count_; ++i) {
      states()[i].store(State::missing, std::memory_order_relaxed);
    }
  }

  template <class Make>
  void once(std::int64_t i, const Make& make) {
    std::atomic<State>& state = states()[i];
    State seen = state.load(std::memory_order_acquire);
    if (seen == State::made) return;
    if (seen == State::missing &&
        state.compare_exchange_strong(seen, State::being_made, std::memory_order_acquire)) {
      make();
      state.store(State::made, std::memory_order_release);
      return;
    }
    for (int turns = 0; state.load(std::memory_order_acquire) != State::made; ++turns) {
      if (turns > kTurns) std::this_thread::yield();
    }
  }

 private:
  enum class State : std::uint8_t { missing, being_made, made };
  // Looks before the processor is given away: packing a box takes tens of microseconds.
  static constexpr int kTurns = 2000;
  std::atomic<State>* states() const { return memory_.as<std::atomic<State>>(); }

  std::int64_t count_;
  ScratchBlock memory_;
};

}  // namespace einkern::exec
