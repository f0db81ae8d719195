// SPDX-License-Identifier: Apache-2.0
// How an Attend step is cut into tiles of rows and pieces of keys: by its shapes and the target
// only, so that it can be printed, and gives the same bits with any number of threads.
#pragma once

#include <cstdint>
#include <string_view>

#include "../base/machine.h"
#include "attend_axes.h"
#include "step.h"

namespace einkern::plan {

/// Keys of a block: what a tile of weights holds, so that it stays in L1. Blocks start at
/// multiples, whatever is hidden. 192 beat 96 by 0.5 % and 384 by 1 % at d = 64.
inline constexpr std::int64_t kKeyBlock = 192;

/// Most rows whose scores are computed with elements of keys in lanes: beyond, rows fill lanes.
inline constexpr std::int64_t kDecodeRows = 8;
/// Keys of a block of such rows: keys and values stay in L1 for a second group of rows, and what is
/// asked for ahead in L2.
inline constexpr std::int64_t kDecodeBlock = 64;
static_assert(kKeyBlock % kDecodeBlock == 0);

struct AttendCut {
  bool few_rows = false;  // elements of keys in lanes, each read once for all rows
  std::int64_t batch = 0;
  std::int64_t tile_rows = 1;   // most rows of a tile
  std::int64_t tiles = 0;       // of a batch position
  std::int64_t pieces = 1;      // that the keys of a tile are cut into,
  std::int64_t piece_keys = 0;  // each of this many, whose states are merged
  bool copies_keys = false;     // first, where they do not lie well
  bool copies_values = false;
  std::string_view why_copied;  // empty, or as explain says it: "whose rows lie apart"
  std::int64_t round = 0;       // batch positions whose copies are held at the same time
  double copied_bytes = 0;      // of a round
  double extra_bytes = 0;       // estimate: copies, tables, states, what a thread works in
  double score_bytes = 0;       // that a tensor of scores would take

  /// Are pieces tasks of their own where this many batch positions are at hand? The bits are the
  /// same if not.
  bool side_by_side(std::int64_t positions) const noexcept;
  /// What threads share out, over all batch positions.
  std::int64_t tasks() const noexcept;
  /// Keys of a block.
  std::int64_t key_block() const noexcept { return few_rows ? kDecodeBlock : kKeyBlock; }
};

AttendCut cut_attend(const Attend& step, const Target& target);

/// What writing scores and reading them again would take, in the cost model: twice with a softmax.
double seconds_of_scores(const AttendCut& cut, const Attend& step, const Target& target);

/// The loops of a group with those innermost along which keys or values lie side by side, fused.
Loops arranged(const Loops& loops);

/// Do the positions of a group lie side by side?
bool lie_dense(const Loops& loops, std::int64_t Loop::*stride);

}  // namespace einkern::plan
