// SPDX-License-Identifier: Apache-2.0
// How a contraction with a short sum is cut into blocks that are streamed: which labels lie in the
// lanes, which are transposed against them, how much of each a block takes.
#pragma once

#include <cstdint>
#include <memory_resource>
#include <optional>
#include <vector>

#include "../base/small_vector.h"
#include "../kernel/kernels.h"
#include "../kernel/matmul_stream.h"
#include "../plan/step.h"
#include "boxes.h"

namespace einkern::exec {

using OffsetTable = std::pmr::vector<std::int64_t>;

/// The columns (loops n) of a contraction, cut into a grid of boxes, and its rows, cut into groups.
struct StreamLayout {
  explicit StreamLayout(std::pmr::memory_resource* tables) : first_row(tables) {}

  kernel::StreamRead read = kernel::StreamRead::lanes;
  plan::Loops lanes;    // loops that are contiguous in c, from the inside out, cut as one
  plan::Loops columns;  // those as one, then the others; across: the operand's unit stride second
  Dims cut;             // positions of a box along each
  SmallVector<std::size_t, 6> order;  // of boxes: the loop of the first entry moves fastest
  plan::Loops steps;                  // contracted loops, the last one innermost
  std::int64_t step_run = 1;          // steps that are neighbours in the operand
  plan::Loops rows;                   // the last one innermost in c
  bool joined = false;                // rows that follow each other are staged as one
  bool far_rows = false;  // too many to be packed: read where they lie, for a single box
  OffsetTable first_row;  // of every group, then their number

  std::int64_t boxes() const;
  std::int64_t largest_box() const;
};

/// The layout of a step on a target, its tables in this memory; nothing where streaming cannot run
/// it.
std::optional<StreamLayout> stream_layout(const plan::Contract& step,
                                          const kernel::Kernels& kernels,
                                          std::pmr::memory_resource* tables);

/// One box of columns as the kernels see it.
struct StreamBox {
  explicit StreamBox(std::pmr::memory_resource* tables)
      : run_at(tables), vector_at(tables), rows(tables), outer(tables), places_(tables) {}

  OffsetTable run_at, vector_at;  // places in c
  OffsetTable rows, outer;        // sources
  std::int64_t positions = 0, run = 1, group_panels = 1, read_run = 1, row_count = 0;
  std::int64_t source = 0, target = 0;  // offsets of its first position

  /// Sets everything for box number `index`; tables of the same shape are kept.
  void set(const StreamLayout& layout, std::int64_t index, std::int64_t lanes);

 private:
  void widen(OffsetTable& table, const StreamLayout& layout, std::size_t first_loop,
             StrideOf stride) const;
  void list_places(const StreamLayout& layout, std::int64_t lanes);
  void list_sources(const StreamLayout& layout);

  Dims size_;
  OffsetTable places_;              // of all positions in c
  std::int64_t first_listed_ = -1;  // first lane of `rows`
};

}  // namespace einkern::exec
