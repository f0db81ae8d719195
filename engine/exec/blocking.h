// SPDX-License-Identifier: Apache-2.0
// How a packed matrix product is blocked for the caches and cut into tasks: a model in plain
// numbers.
#pragma once

#include <cstdint>

#include "../base/machine.h"

namespace einkern::exec {

/// Which part of the work a task owns.
enum class Cut : std::uint8_t {
  batch,    // whole matrices of the batch: packs both operands for itself
  rows,     // a box of m: packs its part of a, shares a packed b
  columns,  // a box of n: packs its part of b, shares a packed a
  sums,     // a run of k boxes: a small matrix of its own, added to the others in order
};

/// A product as the model sees it.
struct ProductSize {
  std::int64_t rows = 1, columns = 1, steps = 1, batch = 1;
  std::int64_t element_bytes = 4;
  // Largest block of the sum, and how many there are: fixed by the target.
  std::int64_t kc = 1, k_boxes = 1;
  // The unit strides of b and c lie along different labels of n: boxes of n must be large.
  bool scattered_columns = false;
  // b could be read where it lies: its columns are neighbours, its steps evenly apart.
  bool plain_b = false;
  // The same for a: its steps are neighbours, its rows so many elements apart (0: not so).
  std::int64_t plain_a_stride = 0;
  // Something is done to complete boxes of c.
  bool epilogue = false;
};

/// The register tile.
struct TileSize {
  std::int64_t mr = 1, nr = 1;
};

/// The answer: sizes to aim at (labels may force others). Bits depend on neither.
struct Blocks {
  Cut cut = Cut::rows;
  std::int64_t mc = 1, nc = 1;
  bool pack_a = true, pack_b = true;  // boxes of b that end within a vector are always packed
};

/// A function of its arguments only; `machine` is asked for the size of its caches.
Blocks choose_blocks(const ProductSize& product, const TileSize& tile, const Machine& machine);

/// Tasks that a product is cut into where it is large enough: what divides evenly among the usual
/// numbers of threads.
inline constexpr std::int64_t kTasks = 8;
/// Work of a task: enough to hide the start of it, little enough for threads to end together.
inline constexpr double kTaskFlops = 4e6;
/// A packed operand that all tasks share stays below this much memory; longer sums take rounds.
inline constexpr std::int64_t kSharedBytes = std::int64_t{64} << 20;

}  // namespace einkern::exec
