// SPDX-License-Identifier: Apache-2.0
// The last touch of a contraction: its elementwise program over every box whose sums are complete.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "../base/small_vector.h"
#include "../kernel/map_tile.h"
#include "../plan/step.h"
#include "frame.h"
#include "scratch.h"
#include "space.h"

namespace einkern::exec {

/// Sums that are complete: position (r, s) of the box is element first + rows[r] + columns[s] of c;
/// where columns are neighbours they need no list.
struct SumBox {
  std::int64_t first = 0;
  const std::int64_t* rows = nullptr;
  std::int64_t row_count = 0;
  const std::int64_t* columns = nullptr;  // null: 0, 1, 2, ...
  std::int64_t column_count = 0;
  // Not null: the sums lie here instead of in c, (r, s) at r * stride + s.
  void* staged = nullptr;
  std::int64_t stride = 0;
  bool stay = false;  // results replace staged sums; otherwise they go to c, by `stores`
  kernel::Stores stores = kernel::Stores::cached;
};

/// The epilogue of one step, shared by its tasks. Which boxes it meets changes no bit.
class Epilogue {
 public:
  /// `step.epilogue` has a value; both outlive this.
  Epilogue(const plan::Contract& step, const Frame& frame);

  /// Bytes of scratch memory, on a cache line, that every task needs.
  std::size_t scratch_bytes() const noexcept { return program_.scratch_bytes(); }

  /// After the last task: raises the first fault in program order (integers only).
  void finish() const;

  /// What one task does with its boxes.
  class Task {
   public:
    /// `scratch`: memory that no other task uses.
    Task(const Epilogue& epilogue, std::byte* scratch);
    Task(const Task&) = delete;
    Task& operator=(const Task&) = delete;
    ~Task();

    void apply(const SumBox& box) noexcept;

   private:
    /// Positions evenly apart along one axis of the space.
    struct Run {
      std::int64_t first = 0, count = 1;  // in the list of rows or columns
      std::size_t axis = 0;
      std::int64_t step = 0;  // along the axis
    };
    Run run_at(const std::int64_t* list, std::int64_t count, std::int64_t first,
               std::int64_t place) const noexcept;
    void apply_runs(const SumBox& box, const Run& rows, const Run& columns,
                    std::int64_t place) noexcept;
    void run_tiles(std::int64_t rows, std::int64_t columns, kernel::Stores stores) noexcept;

    const Epilogue& epilogue_;
    std::byte* const scratch_;
    SmallVector<kernel::TileOperand, 6> operands_;  // of a rectangle: c, then the inputs
    SmallVector<kernel::TileOperand, 6> tile_;      // of a tile of it
    SmallVector<kernel::TileIndex, 6> indices_, tile_indices_;
    kernel::TileFault fault_;
    bool streamed_ = false;
  };

 private:
  const plan::Map& map_;
  const kernel::CopyKernels& copy_;
  kernel::TileProgram program_;
  Space space_;  // of c, then of the inputs
  SmallVector<std::byte*, 6> data_;
  SmallVector<std::int64_t, 6> bytes_;  // of an element
  SmallVector<bool, 6> is_sum_;
  mutable std::atomic<kernel::TileFault> fault_ = kernel::kNoFault;
};

/// A task's part of an epilogue with memory of its own.
class EpilogueTask {
 public:
  explicit EpilogueTask(const Epilogue& epilogue)
      : memory_(epilogue.scratch_bytes()), task_(epilogue, memory_.data()) {}
  void apply(const SumBox& box) noexcept { task_.apply(box); }

 private:
  ScratchBlock memory_;
  Epilogue::Task task_;
};

/// The epilogue of a step, if it has one, over all of c: where sums are few, or complete late.
void run_epilogue(const plan::Contract& step, const Frame& frame);

}  // namespace einkern::exec
