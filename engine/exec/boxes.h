// SPDX-License-Identifier: Apache-2.0
// Cuts a group of loops into boxes in label space and lists the offsets of the positions of a box.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <optional>

#include "../base/layout.h"
#include "../kernel/matmul.h"
#include "../plan/step.h"
#include "scratch.h"

namespace einkern::exec {

/// Stride of a loop in one tensor: `&plan::Loop::a`, `b` or `c`.
using StrideOf = std::int64_t plan::Loop::*;

/// Number of positions of a group.
std::int64_t extent(const plan::Loops& loops) noexcept;

/// Are the positions evenly apart in every tensor?
inline bool is_linear(const plan::Loops& loops) noexcept { return loops.size() <= 1; }
/// From a position of such a group to the next; 0 when there is only one.
inline std::int64_t step_of(const plan::Loops& loops, StrideOf stride) noexcept {
  return loops.empty() ? 0 : loops.back().*stride;
}

/// Offset of position `index` (flattened, last loop innermost) of a group.
std::int64_t offset_at(const plan::Loops& loops, std::int64_t index, StrideOf stride) noexcept;

/// Writes the offsets of all positions of a group, flattened.
void list_offsets(const plan::Loops& loops, StrideOf stride, std::int64_t* to) noexcept;

/// The offsets of all positions of a group. Memory of long lists comes from the pool.
class OffsetList {
 public:
  OffsetList() = default;
  OffsetList(const plan::Loops& loops, StrideOf stride);

  std::size_t size() const noexcept { return size_; }
  const std::int64_t* data() const noexcept { return begin(); }
  const std::int64_t* begin() const noexcept {
    return block_ ? block_->as<std::int64_t>() : inline_;
  }
  const std::int64_t* end() const noexcept { return begin() + size_; }
  std::int64_t operator[](std::size_t i) const noexcept { return begin()[i]; }

 private:
  static constexpr std::size_t kInline = 64;
  std::size_t size_ = 0;
  std::int64_t inline_[kInline];
  std::optional<ScratchBlock> block_;
};

/// What boxes should be like.
struct BoxRules {
  std::int64_t line = 1;      // elements of a cache line
  std::int64_t target = 1;    // positions wanted
  std::int64_t multiple = 1;  // ends inside the innermost loop, and inside one of unit stride
  std::int64_t panel = 1;     // positions that are computed together, whether all are there or not
};

/// A group of loops cut into a grid of boxes. Boxes, not intervals of the flattened group: whole
/// lines of every tensor fit into one box even where their unit strides lie along different labels.
class Boxes {
 public:
  /// First a run of the unit-stride loop of each tensor in `units` (one to four lines), then inner
  /// loops as far as they fit; outer ones up to 9/4 of the target where that fills panels. A
  /// function of its arguments only.
  Boxes(const plan::Loops& loops, std::initializer_list<StrideOf> units, const BoxRules& rules);

  std::int64_t count() const noexcept { return count_; }
  /// Positions of the largest box.
  std::int64_t largest() const noexcept { return largest_; }
  std::int64_t size(std::int64_t box) const noexcept;

  /// Offset of the first position of a box.
  std::int64_t first(std::int64_t box, StrideOf stride) const noexcept;
  /// Writes the offset of every position of a box, flattened; returns how many.
  std::int64_t offsets(std::int64_t box, StrideOf stride, std::int64_t* to) const noexcept;
  /// Where the unit stride of a tensor lies within a box.
  kernel::UnitRun unit(std::int64_t box, StrideOf stride) const noexcept;

 private:
  /// Start and size of a box along every loop, innermost first.
  template <class F>
  void each_loop(std::int64_t box, const F& f) const noexcept;

  const plan::Loops* loops_;
  Dims box_;  // sizes along every loop
  std::int64_t count_ = 1, largest_ = 1;
};

}  // namespace einkern::exec
