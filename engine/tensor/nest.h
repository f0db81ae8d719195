// SPDX-License-Identifier: Apache-2.0
// Views of one shape into a short nest of loops over all their elements, in the order of the memory
// of the first view.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstdlib>

#include "../base/layout.h"

namespace einkern {

/// Loops over the elements of `N` views of one shape. Axes of size 1 are dropped, axes that the
/// first view runs backwards are turned round, the finest stride of the first view is innermost,
/// and neighbouring axes that nest in all views are fused: contiguous views are one row.
template <std::size_t N>
class Nest {
 public:
  using Counts = std::array<std::int64_t, N>;

  Nest(const Dims& shape, const std::array<const Dims*, N>& strides) {
    for (std::size_t axis = 0; axis < shape.size(); ++axis) {
      if (shape[axis] == 0) empty_ = true;
      if (shape[axis] <= 1) continue;
      Loop loop{shape[axis], {}};
      for (std::size_t v = 0; v < N; ++v) loop.steps[v] = (*strides[v])[axis];
      if (loop.steps[0] < 0) turn_round(loop);
      loops_.push_back(loop);
    }
    std::stable_sort(loops_.begin(), loops_.end(), [](const Loop& a, const Loop& b) {
      for (std::size_t v = 0; v < N; ++v) {
        const std::int64_t x = std::abs(a.steps[v]), y = std::abs(b.steps[v]);
        if (x != y) return x > y;
      }
      return false;
    });
    fuse();
  }

  /// Calls `f(count, offsets, steps)` for every innermost row: its elements lie at
  /// `offsets[v] + i * steps[v]`, i < count, from the first element of view v.
  template <class F>
  void for_each_row(F&& f) const {
    if (empty_) return;
    if (loops_.empty()) return f(std::int64_t{1}, start_, Counts{});
    const Loop& row = loops_.back();
    const std::size_t outer = loops_.size() - 1;
    Dims index(outer, 0);
    Counts offsets = start_;
    while (true) {
      f(row.size, offsets, row.steps);
      std::size_t axis = outer;
      while (axis > 0) {
        const Loop& loop = loops_[axis - 1];
        if (++index[axis - 1] < loop.size) {
          for (std::size_t v = 0; v < N; ++v) offsets[v] += loop.steps[v];
          break;
        }
        index[--axis] = 0;
        for (std::size_t v = 0; v < N; ++v) offsets[v] -= (loop.size - 1) * loop.steps[v];
      }
      if (axis == 0) return;
    }
  }

 private:
  struct Loop {
    std::int64_t size;
    Counts steps;
  };

  void turn_round(Loop& loop) {
    for (std::size_t v = 0; v < N; ++v) {
      start_[v] += (loop.size - 1) * loop.steps[v];
      loop.steps[v] = -loop.steps[v];
    }
  }

  void fuse() {
    SmallVector<Loop, 6> fused;
    for (const Loop& loop : loops_) {
      if (!fused.empty() && nests(fused.back(), loop)) {
        fused.back() = {fused.back().size * loop.size, loop.steps};
      } else {
        fused.push_back(loop);
      }
    }
    loops_ = fused;
  }

  static bool nests(const Loop& outer, const Loop& inner) noexcept {
    for (std::size_t v = 0; v < N; ++v) {
      if (outer.steps[v] != inner.steps[v] * inner.size) return false;
    }
    return true;
  }

  SmallVector<Loop, 6> loops_;  // outermost first
  Counts start_{};
  bool empty_ = false;
};

}  // namespace einkern
