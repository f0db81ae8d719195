// SPDX-License-Identifier: Apache-2.0
// Hands the tiles of rows and pieces of keys that an Attend step is cut into to threads.
#include "attend.h"

#include <algorithm>
#include <limits>
#include <optional>
#include <span>
#include <type_traits>

#include "../base/error.h"
#include "../plan/attend_cut.h"
#include "attend_decode.h"
#include "attend_fold.h"
#include "attend_keys.h"
#include "attend_scores.h"
#include "boxes.h"
#include "parallel.h"

namespace einkern::exec {
namespace {

template <class T>
class AttendRun {
 public:
  AttendRun(const plan::Attend& step, const Frame& frame)
      : cut_(plan::cut_attend(step, frame.kernels.target)),
        batch_(step, plan::ScoreAxis::Role::batch),
        rows_(step, plan::ScoreAxis::Role::row, cut_.tile_rows),
        keys_(step, plan::ScoreAxis::Role::streamed),
        inner_(plan::arranged(step.inner)),
        columns_(plan::arranged(step.columns)),
        step_(step),
        frame_(frame) {}

  void run() {
    if (batch_.count() == 0 || rows_.count() == 0) return;
    const auto& functions = frame_.kernels.attend.of<T>();
    EINKERN_CHECK(functions.lanes * functions.most_vectors == cut_.tile_rows);
    const RowTiles tiles(rows_, cut_.tile_rows);
    const AttendScores scores(step_, frame_, batch_, rows_, keys_, tiles, functions.lanes);
    const AttendShared<T> shared{.step = step_,
                                 .frame = frame_,
                                 .functions = functions,
                                 .batch = batch_,
                                 .rows = rows_,
                                 .keys = keys_,
                                 .scores = scores,
                                 .q_inner = loop_offsets(inner_, &plan::Loop::a),
                                 .out_columns = loop_offsets(columns_, &plan::Loop::c),
                                 .q_strides = axis_strides(step_, &plan::ScoreAxis::q),
                                 .out_strides = axis_strides(step_, &plan::ScoreAxis::out),
                                 .q_dense = plan::lie_dense(inner_, &plan::Loop::a),
                                 .out_dense = plan::lie_dense(columns_, &plan::Loop::c)};
    AttendKeys<T> keys(step_, cut_, frame_, batch_, keys_, inner_, columns_);
    for (std::int64_t first = 0; first < batch_.count(); first += keys.round()) {
      keys.load(first);
      const std::int64_t positions = std::min(keys.round(), batch_.count() - first);
      if (cut_.few_rows) {
        run<DecodeFold<T>>(shared, keys, first, positions, tiles);
      } else {
        run<AttendFold<T>>(shared, keys, first, positions, tiles);
      }
    }
  }

 private:
  double work(std::int64_t positions) const {
    return static_cast<double>(positions) * static_cast<double>(rows_.count()) *
           static_cast<double>(keys_.count() + 1) *
           static_cast<double>(extent(inner_) + extent(columns_) + 8) / 4;
  }

  /// A tile of rows of one batch position; later rows first, since causal ones have more to do.
  struct Tile {
    std::int64_t batch, row_tile, row, rows;
  };
  static Tile tile_at(const RowTiles& tiles, std::int64_t first, std::int64_t tile) {
    const std::int64_t row_tile = tiles.count() - 1 - tile % tiles.count();
    const auto [row, rows] = tiles.at(row_tile);
    return {first + tile / tiles.count(), row_tile, row, rows};
  }

  template <class Fold>
  void start(Fold& fold, const Tile& tile, const AttendKeys<T>& keys, bool with_sinks) const {
    StoredKeys next;
    if (keys.holds(tile.batch + 1)) next = keys.at(tile.batch + 1);
    fold.start(tile.batch, tile.row, tile.rows, keys.at(tile.batch), next, with_sinks);
  }

  /// The keys that segments lie among.
  struct KeyRun {
    std::int64_t first = std::numeric_limits<std::int64_t>::max(), last = 0;
  };
  static KeyRun run_of(std::span<const Segment> segments) {
    KeyRun run;
    for (const Segment& segment : segments) {
      run.first = std::min(run.first, segment.key);
      run.last = std::max(run.last, segment.key + segment.keys);
    }
    return run;
  }
  /// Tells the fold of a tile what keys the next one, whose rows come before, reads first.
  void look_back(AttendFold<T>& fold, const Tile& tile, const AttendScores& scores,
                 const KeyRun& run) const {
    if (tile.row_tile == 0) return;
    const std::int64_t first = run_of(scores.segments(tile.batch, tile.row_tile - 1)).first;
    if (first < run.first) fold.expect(first, run.first - first);
  }

  /// Writes the rows; all over again, selecting, when values that are not finite got in and some
  /// keys may be hidden.
  template <class Fold>
  void finish(const AttendShared<T>& shared, Fold& fold, const Tile& tile,
              const AttendKeys<T>& keys) const {
    if (fold.finish(shared.scores.visible() != nullptr)) return;
    const std::size_t state_bytes = AttendFold<T>::state_bytes(shared);
    const auto memory = allocate_scratch(state_bytes + AttendFold<T>::work_bytes(shared));
    auto* const bytes = static_cast<std::byte*>(memory->data());
    AttendFold<T> again(shared, bytes, bytes + state_bytes);
    WidenedMemory widened;
    again.start(tile.batch, tile.row, tile.rows, keys.widened(tile.batch, widened), {}, true);
    again.select_visible();
    again.add(shared.scores.segments(tile.batch, tile.row_tile), 0, keys_.count());
    again.finish(false);
  }

  template <class Fold>
  void run(const AttendShared<T>& shared, const AttendKeys<T>& keys, std::int64_t first,
           std::int64_t positions, const RowTiles& tiles) const {
    if (cut_.side_by_side(positions)) {
      run_pieces<Fold>(shared, keys, first, positions, tiles);
    } else {
      run_tiles<Fold>(shared, keys, first, positions, tiles);
    }
  }

  template <class Fold>
  void run_tiles(const AttendShared<T>& shared, const AttendKeys<T>& keys, std::int64_t first,
                 std::int64_t positions, const RowTiles& tiles) const {
    const std::size_t state_bytes = Fold::state_bytes(shared);
    const std::size_t states_bytes = cut_.pieces == 1 ? state_bytes : 2 * state_bytes;
    ScratchPool pool(states_bytes + Fold::work_bytes(shared));
    parallel_for(positions * tiles.count(), work(positions), [&](std::int64_t task) {
      const ScratchPool::Lease lease(pool);
      const Tile tile = tile_at(tiles, first, task);
      const auto segments = shared.scores.segments(tile.batch, tile.row_tile);
      Fold fold(shared, lease.data(), lease.data() + states_bytes);
      start(fold, tile, keys, true);
      const KeyRun run = run_of(segments);
      if constexpr (std::is_same_v<Fold, AttendFold<T>>) look_back(fold, tile, shared.scores, run);
      // What one piece holds of a tile without sinks is what merging would leave.
      const bool one_piece =
          cut_.pieces == 1 || segments.empty() ||
          (step_.sink.value < 0 && run.first / cut_.piece_keys == (run.last - 1) / cut_.piece_keys);
      if (one_piece) {
        fold.add(segments, 0, keys_.count());
      } else {
        Fold part(shared, lease.data() + state_bytes, lease.data() + states_bytes);
        start(part, tile, keys, false);
        for (std::int64_t piece = 0; piece < cut_.pieces; ++piece) {
          part.start_again();
          part.add(segments, piece * cut_.piece_keys, (piece + 1) * cut_.piece_keys);
          fold.merge(part);
        }
      }
      finish(shared, fold, tile, keys);
    });
  }

  /// The same bits, the pieces of a tile side by side.
  template <class Fold>
  void run_pieces(const AttendShared<T>& shared, const AttendKeys<T>& keys, std::int64_t first,
                  std::int64_t positions, const RowTiles& row_tiles) const {
    const std::size_t state_bytes = Fold::state_bytes(shared);
    const std::int64_t tiles = positions * row_tiles.count(), tasks = tiles * cut_.pieces;
    const auto states = allocate_scratch(state_bytes * static_cast<std::size_t>(tasks));
    std::vector<std::optional<Fold>> folds(static_cast<std::size_t>(tasks));
    ScratchPool pool(state_bytes + Fold::work_bytes(shared));
    parallel_for(tasks, work(positions), [&](std::int64_t task) {
      const ScratchPool::Lease lease(pool);
      const Tile tile = tile_at(row_tiles, first, task / cut_.pieces);
      const auto at = static_cast<std::size_t>(task);
      Fold& fold =
          folds[at].emplace(shared, static_cast<std::byte*>(states->data()) + at * state_bytes,
                            lease.data() + state_bytes);
      start(fold, tile, keys, false);
      const std::int64_t key = task % cut_.pieces * cut_.piece_keys;
      fold.add(shared.scores.segments(tile.batch, tile.row_tile), key, key + cut_.piece_keys);
    });
    const double merges = static_cast<double>(states->bytes()) / sizeof(T);
    parallel_for(tiles, merges, [&](std::int64_t task) {
      const ScratchPool::Lease lease(pool);
      const Tile tile = tile_at(row_tiles, first, task);
      Fold fold(shared, lease.data(), lease.data() + state_bytes);
      start(fold, tile, keys, true);
      for (std::int64_t piece = 0; piece < cut_.pieces; ++piece) {
        fold.merge(*folds[static_cast<std::size_t>(task * cut_.pieces + piece)]);
      }
      finish(shared, fold, tile, keys);
    });
  }

  const plan::AttendCut cut_;
  const AttendAxes batch_, rows_, keys_;
  const plan::Loops inner_, columns_;
  const plan::Attend& step_;
  const Frame& frame_;
};

}  // namespace

void run(const plan::Attend& step, const Frame& frame) {
  const DType dtype = step.q.dtype;
  const auto readable = [&](const plan::Operand& operand) {
    return operand.dtype == dtype || is_half_float(operand.dtype);
  };
  EINKERN_CHECK(is_float(dtype) && readable(step.k) && readable(step.v) && step.out.dtype == dtype);
  if (dtype == DType::f32) {
    AttendRun<float>(step, frame).run();
  } else {
    AttendRun<double>(step, frame).run();
  }
}

}  // namespace einkern::exec
