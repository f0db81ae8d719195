// SPDX-License-Identifier: Apache-2.0
// Runs contractions without a sum: every product is written once.
#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <optional>

#include "boxes.h"
#include "contract.h"
#include "epilogue.h"
#include "parallel.h"
#include "parts.h"
#include "stores.h"

namespace einkern::exec {
namespace {

using plan::Loop;
using plan::Loops;

// Elements of a task: long enough for streams to start, short enough to share out.
constexpr std::int64_t kOuterTaskElements = 65536;
// Products on their way around the caches wait in L1: no more than the stores that a core holds, so
// that the next ones are computed while these leave.
constexpr std::int64_t kOuterStageBytes = 4 << 10;

/// Takes the loop with the smallest stride of c out of the others; a single iteration when there is
/// none.
Loop take_nearest(Loops& loops) {
  const auto nearest =
      std::min_element(loops.begin(), loops.end(),
                       [](const Loop& x, const Loop& y) { return std::abs(x.c) < std::abs(y.c); });
  if (nearest == loops.end()) return {};
  const Loop taken = *nearest;
  loops.erase(static_cast<std::size_t>(nearest - loops.begin()));
  return taken;
}

Loops all_loops(const plan::Contract& step) {
  Loops loops = step.batch;
  loops.insert(loops.end(), step.m.begin(), step.m.end());
  loops.insert(loops.end(), step.n.begin(), step.n.end());
  return loops;
}

/// Blocks of rows: `columns_` are neighbours in c, `rows_` come next.
template <class T>
class Products {
 public:
  Products(const plan::Contract& step, const Frame& frame)
      : functions_(frame.kernels.matmul.of<T>()),
        moves_(frame.kernels.copy),
        a_(reinterpret_cast<const T*>(frame.address(step.a))),
        b_(reinterpret_cast<const T*>(frame.address(step.b))),
        c_(reinterpret_cast<T*>(frame.address(step.c))),
        outer_(all_loops(step)),
        columns_(take_nearest(outer_)),
        rows_(take_nearest(outer_)),
        size_(extent(outer_) * rows_.size * columns_.size),
        dense_(columns_.c == 1),
        streams_(dense_ &&
                 stores_for(static_cast<double>(size_) * sizeof(T)) == kernel::Stores::streaming),
        piece_(std::min(columns_.size, kStage)),
        pieces_(divide_up(columns_.size, piece_)),
        group_(std::clamp<std::int64_t>(kStage / columns_.size, 1, rows_.size)),
        groups_(divide_up(rows_.size, group_)) {
    if (!step.epilogue) return;
    epilogue_.emplace(step, frame);
    rows_at_ = OffsetList({Loop{.size = group_, .c = rows_.c}}, &Loop::c);
    columns_at_ = OffsetList({Loop{.size = piece_, .c = columns_.c}}, &Loop::c);
  }

  void run() const {
    const std::int64_t blocks = extent(outer_) * groups_ * pieces_;
    const std::int64_t at_once =
        std::clamp<std::int64_t>(kOuterTaskElements / (piece_ * group_), 1, blocks);
    parallel_for(divide_up(blocks, at_once), static_cast<double>(size_), [&](std::int64_t task) {
      const std::int64_t end = std::min((task + 1) * at_once, blocks);
      std::optional<EpilogueTask> last;
      if (epilogue_) last.emplace(*epilogue_);
      for (std::int64_t block = task * at_once; block < end; ++block) {
        run_block(block, last ? &*last : nullptr);
      }
      if (streams_) moves_.fence();
    });
    if (epilogue_) epilogue_->finish();
  }

 private:
  static constexpr std::int64_t kStage = kOuterStageBytes / static_cast<std::int64_t>(sizeof(T));

  void run_block(std::int64_t index, EpilogueTask* last) const {
    const std::int64_t start = index % pieces_ * piece_;
    const std::int64_t row = index / pieces_ % groups_ * group_;
    const std::int64_t outer = index / pieces_ / groups_;
    T* const c = c_ + offset_at(outer_, outer, &Loop::c) + row * rows_.c + start * columns_.c;
    kernel::ProductBlock<T> block{
        .a = a_ + offset_at(outer_, outer, &Loop::a) + row * rows_.a + start * columns_.a,
        .b = b_ + offset_at(outer_, outer, &Loop::b) + row * rows_.b + start * columns_.b,
        .c = c,
        .a_row = rows_.a,
        .a_step = columns_.a,
        .b_row = rows_.b,
        .b_step = columns_.b,
        .c_row = rows_.c,
        .rows = std::min(group_, rows_.size - row),
        .columns = std::min(piece_, columns_.size - start),
    };
    if (!streams_ && dense_) {
      functions_.products(block);
      if (last != nullptr) finish(*last, block, c, nullptr);
      return;
    }
    alignas(64) T stage[kStage];
    block.c = stage;
    block.c_row = block.columns;
    functions_.products(block);
    if (last != nullptr) return finish(*last, block, c, stage);
    if (!dense_) return scatter(stage, block, c);
    const auto bytes = block.columns * static_cast<std::int64_t>(sizeof(T));
    if (rows_.c == block.columns) return moves_.stream(stage, c, block.rows * bytes);
    for (std::int64_t r = 0; r < block.rows; ++r) {
      moves_.stream(stage + r * block.columns, c + r * rows_.c, bytes);
    }
  }

  /// What becomes of a block, which lies in the stage unless it is where it belongs.
  void finish(EpilogueTask& last, const kernel::ProductBlock<T>& block, T* c, T* staged) const {
    last.apply({.first = c - c_,
                .rows = rows_at_.data(),
                .row_count = block.rows,
                .columns = dense_ ? nullptr : columns_at_.data(),
                .column_count = block.columns,
                .staged = staged,
                .stride = block.columns,
                .stores = streams_ ? kernel::Stores::streaming : kernel::Stores::cached});
  }

  void scatter(const T* from, const kernel::ProductBlock<T>& block, T* c) const {
    for (std::int64_t r = 0; r < block.rows; ++r) {
      for (std::int64_t i = 0; i < block.columns; ++i) c[r * rows_.c + i * columns_.c] = *from++;
    }
  }

  const kernel::MatmulFunctions<T>& functions_;
  const kernel::CopyKernels& moves_;
  const T *const a_, *const b_;
  T* const c_;
  Loops outer_;
  const Loop columns_, rows_;
  const std::int64_t size_;
  const bool dense_, streams_;
  const std::int64_t piece_, pieces_;  // of the columns
  const std::int64_t group_, groups_;  // of rows that are short
  std::optional<Epilogue> epilogue_;   // applied block by block
  OffsetList rows_at_, columns_at_;
};

/// Do both operands go along c's unit stride, or stay where they are?
bool is_elementwise(const plan::Contract& step) {
  Loops loops = all_loops(step);
  const Loop columns = take_nearest(loops);
  const auto fits = [](std::int64_t stride) { return stride == 0 || stride == 1; };
  return columns.c == 1 && fits(columns.a) && fits(columns.b);
}

}  // namespace

void run_outer(const plan::Contract& step, const Frame& frame) {
  // Other outer products have layouts worth packing for.
  constexpr std::int64_t kMatrix = 16;
  if (!is_elementwise(step) && extent(step.m) >= kMatrix && extent(step.n) >= kMatrix) {
    return run_matmul(step, frame);
  }
  with_float(step, [&]<class T>(T) { Products<T>(step, frame).run(); });
}

}  // namespace einkern::exec
