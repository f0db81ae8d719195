// SPDX-License-Identifier: Apache-2.0
// The sizes of cache blocks and tasks.
#include "blocking.h"

#include <algorithm>

#include "parts.h"

namespace einkern::exec {
namespace {

// A matrix this small under a sum of many blocks is cut along the sum.
constexpr std::int64_t kSmallSide = 256, kManyBlocks = 8;
// Panels in a box of b that tasks of rows share: whole runs of four and more lines to pack, yet
// many boxes for the tasks to take turns at.
constexpr std::int64_t kSharedPanels = 4;
// Panels of b from which on a packed a is worth it.
constexpr std::int64_t kFewPanels = 4;
// Tiles of rows up to which a panel of b is read where it lies.
constexpr std::int64_t kFewTiles = 4;

/// Reading rows of a where they lie costs nothing as long as they do not all fall into one set of
/// L1.
bool reads_rows(const ProductSize& product) {
  constexpr std::int64_t kSameSet = 4096;
  const std::int64_t stride = product.plain_a_stride * product.element_bytes;
  return stride != 0 && stride % kSameSet != 0;
}

Cut choose_cut(const ProductSize& product, const TileSize& tile, const Machine& machine,
               double flops) {
  if (product.batch >= kTasks && flops < 64 * kTaskFlops) return Cut::batch;
  if (product.rows <= kSmallSide && product.columns <= kSmallSide &&
      product.k_boxes >= kManyBlocks) {
    return Cut::sums;
  }
  // A task of rows streams all of b past its part of a, one panel at a time, which any cache can
  // feed. A task of columns needs all of a near: only where a is small, and rows are too few to be
  // cut.
  const std::int64_t a_bytes = product.rows * product.kc * product.element_bytes;
  const std::int64_t ratio = product.scattered_columns ? 16 : 4;
  const bool few_rows = product.rows < kTasks * 2 * tile.mr;
  const bool wide = product.columns >= ratio * product.rows && a_bytes <= machine.l2_bytes / 2;
  // Where packing transposes b, each task packs a part of it rather than all, while rows of a are
  // read where they lie: 0.94 of the time at 256^3. Fewer tasks than this end too far apart.
  const bool turned = !product.plain_b && reads_rows(product) && a_bytes <= machine.l2_bytes / 4 &&
                      product.columns <= 2 * product.rows && flops >= 6 * kTaskFlops;
  return wide || turned || (few_rows && product.columns > product.rows) ? Cut::columns : Cut::rows;
}

}  // namespace

Blocks choose_blocks(const ProductSize& product, const TileSize& tile, const Machine& machine) {
  const double flops = 2.0 * static_cast<double>(product.rows) *
                       static_cast<double>(product.columns) * static_cast<double>(product.steps);
  Blocks blocks;
  blocks.cut = choose_cut(product, tile, machine, flops);
  if (blocks.cut == Cut::sums) {
    blocks.mc = product.rows;
    blocks.nc = product.columns;
    return blocks;
  }
  const std::int64_t step_bytes = product.kc * product.element_bytes;
  // Few columns use a packed a too seldom.
  const bool seldom = product.columns <= kFewPanels * tile.nr || blocks.cut == Cut::columns;
  blocks.pack_a = !seldom || !reads_rows(product);
  // Packing b pays when its panels would come from far; out of L2 the tiles can as well read rows.
  // At 256^3 a packed b that two cores share costs them a fifth of the time: half of it comes from
  // the other core.
  // A task of columns reads each panel of its own a few times: at 37 rows packing took a quarter of
  // the time.
  const bool near = blocks.cut == Cut::columns
                        ? product.rows <= kFewTiles * tile.mr
                        : product.columns % (tile.nr / 2) == 0 &&
                              product.columns * step_bytes <= machine.l2_bytes / 2;
  blocks.pack_b = !product.plain_b || !near;
  // A sixth of L2 for a block of a, a quarter for one of b; the rest is for c and what comes next.
  const auto fitting = [&](std::int64_t bytes, std::int64_t multiple) {
    return bytes / step_bytes / multiple * multiple;
  };
  blocks.mc = std::max(4 * tile.mr, fitting(machine.l2_bytes / 6, tile.mr));
  blocks.nc = std::max(tile.nr, fitting(machine.l2_bytes / 4, tile.nr));
  const auto tasks = static_cast<std::int64_t>(
      std::clamp(flops / (2 * kTaskFlops), 1.0, static_cast<double>(kTasks)));
  if (blocks.cut == Cut::rows) {
    // As many boxes as the usual numbers of threads divide: 13 of them on two took 7 % longer at
    // 2048^3 than 16.
    std::int64_t boxes = std::max(tasks, divide_up(product.rows, blocks.mc));
    if (boxes > kTasks) boxes = round_up(boxes, kTasks / 2);
    blocks.mc = std::min(blocks.mc, divide_up(product.rows, boxes));
    // A panel of b is read from anywhere: a box of it is only what a task packs for all at once.
    if (!product.scattered_columns) blocks.nc = std::min(blocks.nc, kSharedPanels * tile.nr);
  }
  if (blocks.cut == Cut::columns) {
    // Here too: 5 tasks of 37 x 1111 on two threads took as long as 6.
    const std::int64_t boxes = tasks > 1 ? round_up(tasks, 2) : 1;
    blocks.nc = std::min(blocks.nc, round_up(divide_up(product.columns, boxes), tile.nr));
  }
  if (product.epilogue) {
    // It finds a box of c in L2; short sums would make the box, and its stage, large.
    const std::int64_t most = machine.l2_bytes / 4 / product.element_bytes;
    blocks.nc = std::min(blocks.nc, std::max(tile.nr, most / (4 * tile.mr) / tile.nr * tile.nr));
    const std::int64_t columns = std::min(blocks.nc, product.columns);
    blocks.mc = std::min(blocks.mc, std::max(4 * tile.mr, most / columns / tile.mr * tile.mr));
  }
  return blocks;
}

}  // namespace einkern::exec
