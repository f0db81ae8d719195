// SPDX-License-Identifier: Apache-2.0
// Cuts an Attend step into tiles of rows and pieces of keys.
#include "attend_cut.h"

#include <algorithm>
#include <numeric>
#include <optional>

#include "../base/dtype.h"
#include "loops.h"

namespace einkern::plan {
namespace {

// Fewer tiles than this do not fill a machine: their keys are cut in pieces as well.
constexpr std::int64_t kEnoughTiles = 32;
// Blocks of a piece at least, so that merging states stays cheap.
constexpr std::int64_t kPieceBlocks = 5;
// Where rows fill tiles there may be many, whose pieces then follow one another for nothing: 5 cost
// them 3 %.
constexpr std::int64_t kPieceBlocksOfMany = 16;
// Copies of keys and values alive at the same time; more batch positions take turns.
constexpr std::int64_t kCopiedBytes = std::int64_t{32} << 20;
// Rows of queries that pay for a copy of keys whose rows are far apart (0.83 of peak instead of
// 0.87, 0.74 at a stride of 4 KiB).
constexpr std::int64_t kRowsForCopy = 256;
// Behind a table as many tiles have to read a key as well, and rows have to lie at multiples of a
// stride that leaves them an eighth of a way of the second cache, or less (8 heads in a page of one
// token). There reading 4096 keys in place takes 1.08 to 1.26 of the time of copies with AVX2, and
// 0.99 to 1.10 with AVX-512; at 8 tiles 0.97 to 0.99, where 1 to 5 heads share a page 0.96 to 1.03.
constexpr std::int64_t kTilesForCopy = 16;
constexpr std::int64_t kWayBytes = 64 << 10, kPartOfWay = 8;

std::int64_t parts(std::int64_t count, std::int64_t each) { return (count + each - 1) / each; }

/// Tiles of a batch position, where axes that fill a tile count as one: rows must come out the
/// same however many more there are, so that keys are not cut by their number.
std::int64_t tiles_at_least(const AttendAxes& rows, const RowTiles& tiles) {
  if (rows.run() < tiles.most()) return tiles.count();
  std::int64_t count = 1;
  rows.each([&](std::int64_t, std::int64_t size) { count *= size < tiles.most() ? size : 1; });
  return count;
}

/// From a key to the next, as a rule; between pages of one key, what all distances are multiples
/// of. Nothing when there is one key.
std::optional<std::int64_t> key_step(const Attend& step, const std::optional<TakenRows>& taken,
                                     std::int64_t ScoreAxis::*stride, const AttendAxes& keys) {
  if (keys.count() <= 1) return {};
  if (!taken) return step.axes[static_cast<std::size_t>(keys.innermost())].*stride;
  std::optional<std::int64_t> last;
  for (const TakenRows::Part& part : taken->parts) {
    if (part.size != 1) last = part.at == 0 ? part.in : taken->stride;
  }
  return last;
}

/// The rows of an Attend step.
struct Rows {
  std::int64_t count, tiles;
  bool few;
};

/// Why keys or values are copied before they are read; empty when they are not.
std::string_view why_copied(const Attend& step, const Operand& operand,
                            const std::optional<TakenRows>& taken, const Loops& loops,
                            std::int64_t ScoreAxis::*stride, const AttendAxes& keys,
                            const Rows& rows) {
  if (!lie_dense(loops, &Loop::b)) return "whose elements lie apart";
  // Few rows widen what they read.
  if (operand.dtype != step.q.dtype && !(rows.few && step.q.dtype == DType::f32)) {
    return "of another type";
  }
  const auto next = key_step(step, taken, stride, keys);
  const auto width = static_cast<std::int64_t>(extent(loops));
  if (!next || *next == width || rows.count < kRowsForCopy) return {};
  if (!taken) return "whose rows lie apart";
  const auto element = static_cast<std::int64_t>(size_of(operand.dtype));
  const bool meet = std::gcd(*next * element, kWayBytes) >= kPartOfWay * width * element;
  return meet && rows.tiles >= kTilesForCopy ? "whose rows meet in the cache" : "";
}

/// Offsets that are listed: of all keys, once, or once for each part of a table that is read.
double listed(const std::optional<TakenRows>& taken, const AttendAxes& batch,
              const AttendAxes& keys) {
  auto count = static_cast<double>(keys.count());
  batch.each([&](std::int64_t axis, std::int64_t size) {
    if (taken && taken->batch[static_cast<std::size_t>(axis)] != 0)
      count *= static_cast<double>(size);
  });
  return count;
}

}  // namespace

Loops arranged(const Loops& loops) {
  AddressedLoops addressed;
  for (const Loop& loop : loops) addressed.push_back({loop});
  order_loops(addressed, &Loop::b);
  fuse_loops(addressed);
  return plain(addressed);
}

bool lie_dense(const Loops& loops, std::int64_t Loop::*stride) {
  std::int64_t inside = 1;
  for (auto loop = loops.rbegin(); loop != loops.rend(); ++loop) {
    if (loop->size != 1 && (*loop).*stride != inside) return false;
    inside *= loop->size;
  }
  return true;
}

bool AttendCut::side_by_side(std::int64_t positions) const noexcept {
  return pieces > 1 && positions * tiles < kEnoughTiles;
}

std::int64_t AttendCut::tasks() const noexcept {
  return batch * tiles * (side_by_side(round) ? pieces : 1);
}

AttendCut cut_attend(const Attend& step, const Target& target) {
  const auto size = static_cast<std::int64_t>(size_of(step.q.dtype));
  AttendCut cut;
  cut.tile_rows = std::max<std::int64_t>(1, target.vector_bytes / size) * target.attend_vectors;
  const AttendAxes batch(step, ScoreAxis::Role::batch), keys(step, ScoreAxis::Role::streamed),
      rows(step, ScoreAxis::Role::row, cut.tile_rows);
  cut.batch = cut.round = batch.count();
  if (batch.count() == 0 || rows.count() == 0) return cut;
  const RowTiles tiles(rows, cut.tile_rows);
  cut.tiles = tiles.count();
  cut.few_rows = rows.count() <= std::min(kDecodeRows, cut.tile_rows) && step.normalise &&
                 step.factor.code.empty();

  const std::int64_t blocks = parts(keys.count(), kKeyBlock);
  const std::int64_t least = rows.run() < cut.tile_rows ? kPieceBlocks : kPieceBlocksOfMany;
  cut.pieces =
      std::clamp<std::int64_t>(parts(kEnoughTiles, batch.count() * tiles_at_least(rows, tiles)), 1,
                               std::max<std::int64_t>(1, blocks / least));
  // Few rows have small blocks, of which even pieces are made: 4096 keys in four of 1024.
  const std::int64_t unit = cut.key_block();
  cut.piece_keys = parts(parts(keys.count(), unit), cut.pieces) * unit;

  const Loops inner = arranged(step.inner), columns = arranged(step.columns);
  const Rows all{rows.count(), cut.tiles, cut.few_rows};
  const std::string_view why_keys =
      why_copied(step, step.k, step.k_taken, inner, &ScoreAxis::k, keys, all);
  const std::string_view why_values =
      why_copied(step, step.v, step.v_taken, columns, &ScoreAxis::v, keys, all);
  cut.copies_keys = !why_keys.empty();
  cut.copies_values = !why_values.empty();
  cut.why_copied = cut.copies_keys ? why_keys : why_values;
  const auto width = [](const Loops& loops) { return static_cast<std::int64_t>(extent(loops)); };
  const std::int64_t copied =
      keys.count() * size *
      ((cut.copies_keys ? width(inner) : 0) + (cut.copies_values ? width(columns) : 0));
  if (copied > 0) cut.round = std::clamp<std::int64_t>(kCopiedBytes / copied, 1, batch.count());
  cut.copied_bytes = static_cast<double>(cut.round) * static_cast<double>(copied);

  // A state per task, or for the thread at hand; its queries, weights and products; two tables.
  const auto held = static_cast<double>(cut.few_rows ? kDecodeRows : cut.tile_rows);
  const auto element = static_cast<double>(size);
  const double state = held * (element * (extent(columns) + 1) + sizeof(double));
  const double states =
      cut.side_by_side(cut.round) ? static_cast<double>(cut.round * cut.tiles * cut.pieces) : 1;
  const double work = held * element * (extent(inner) + 2 * static_cast<double>(cut.key_block()));
  cut.extra_bytes = cut.copied_bytes + states * state + work +
                    (listed(step.k_taken, batch, keys) + listed(step.v_taken, batch, keys)) *
                        sizeof(std::int64_t);
  cut.score_bytes = static_cast<double>(batch.count()) * static_cast<double>(rows.count()) *
                    static_cast<double>(keys.count()) * element;
  return cut;
}

double seconds_of_scores(const AttendCut& cut, const Attend& step, const Target& target) {
  const double times = step.normalise ? 2 : 1;
  return times * cut.score_bytes * (1 / target.read_bandwidth + 1 / target.write_bandwidth);
}

}  // namespace einkern::plan
