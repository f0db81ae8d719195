// SPDX-License-Identifier: Apache-2.0
// Runs small matrix products whose batch has the unit stride: side by side in the lanes.
#include <algorithm>
#include <cstdint>
#include <cstring>
#include <optional>

#include "../base/machine.h"
#include "../base/small_vector.h"
#include "boxes.h"
#include "contract.h"
#include "epilogue.h"
#include "parallel.h"
#include "parts.h"
#include "scratch.h"
#include "stores.h"

namespace einkern::exec {
namespace {

using plan::Loop;
using plan::Loops;

// Bytes of a run of lanes in one task: between runs lie new pages. Where there is no room for what
// is packed, down to the shortest.
constexpr std::int64_t kShortestRun = 256, kLeastRun = 1024, kMostRun = 8192;
// Bytes of a task's share of the three tensors, unless its runs get too short.
constexpr std::int64_t kLanesTaskBytes = 192 << 10;
// Rows of c that are computed together, when there is no room for all of them.
constexpr std::int64_t kRows = 8;
// An operand that more tiles than one read, 4 rows or columns each, is packed: its lines may lie a
// power of two apart, or on more pages than the processor keeps addresses of.
constexpr std::int64_t kTile = 4;

std::int64_t size_of_list(const OffsetList& list) { return static_cast<std::int64_t>(list.size()); }

template <class T>
class LaneProducts {
 public:
  /// `in_place`: nothing is packed or staged; all loops are linear.
  LaneProducts(const plan::Contract& step, const Frame& frame, std::int64_t chunk, bool in_place)
      : step_(step),
        functions_(frame.kernels.matmul.of<T>()),
        moves_(frame.kernels.copy),
        lanes_(step.batch.back()),
        outer_(step.batch.begin(), step.batch.end() - 1),
        chunk_(chunk),
        rows_(extent(step.m)),
        block_rows_(std::min(rows_, kRows)),
        columns_(extent(step.n)),
        steps_(extent(step.k)),
        a_(reinterpret_cast<const T*>(frame.address(step.a))),
        b_(reinterpret_cast<const T*>(frame.address(step.b))),
        c_(reinterpret_cast<T*>(frame.address(step.c))),
        rows_c_(step.m, &Loop::c),
        columns_c_(step.n, &Loop::c) {
    if (!in_place) {
      pack_a_ = columns_ > kTile || lanes_.a == 0 || !is_linear(step.m) || !is_linear(step.k);
      pack_b_ = rows_ > kTile || lanes_.b == 0 || !is_linear(step.n) || !is_linear(step.k);
    }
    streams_ = stores_for(static_cast<double>(extent(step.batch)) * static_cast<double>(rows_) *
                          static_cast<double>(columns_) * sizeof(T)) == kernel::Stores::streaming;
    // Only vectors of a whole line may go around the caches one by one.
    const bool whole_lines = frame.kernels.target.vector_bytes == kLineBytes && c_is_aligned();
    if (in_place && (!whole_lines || step.epilogue)) streams_ = false;
    if (step.epilogue) epilogue_.emplace(step, frame);
    direct_ =
        is_linear(step.m) && is_linear(step.n) && (!streams_ || (whole_lines && !step.epilogue));
    kept_.emplace(bytes_of_lists());
    Carver carver(kept_->data());
    if (pack_a_) at_a_ = list(carver, step.m, &Loop::a, step.k, &Loop::a);
    if (pack_b_) at_b_ = list(carver, step.k, &Loop::b, step.n, &Loop::b);
    if (epilogue_) at_c_ = list(carver, step.m, &Loop::c, step.n, &Loop::c);
  }

  void run() const {
    Carver counter(nullptr);
    carve(counter);
    ScratchPool scratch(counter.bytes());
    const std::int64_t chunks = (lanes_.size + chunk_ - 1) / chunk_;
    const double products =
        static_cast<double>(rows_) * static_cast<double>(columns_) * static_cast<double>(steps_);
    const double work = (products / 4 + static_cast<double>(lane_elements())) *
                        static_cast<double>(extent(step_.batch));
    parallel_for(extent(outer_) * chunks, work, [&](std::int64_t tile) {
      const ScratchPool::Lease lease(scratch);
      run_chunk(tile / chunks, tile % chunks * chunk_, lease.data());
    });
    if (epilogue_) epilogue_->finish();
  }

 private:
  static constexpr std::int64_t kLineLanes = kernel::kLineOf<T>;

  struct Arrays {
    T *a, *b, *c;
  };
  Arrays carve(Carver& carver) const {
    return {carver.take<T>(pack_a_ ? packed_size(block_rows_ * steps_) : 0),
            carver.take<T>(pack_b_ ? packed_size(steps_ * columns_) : 0),
            carver.take<T>(direct_ ? 0 : block_rows_ * columns_ * chunk_)};
  }
  /// From a line of packed lanes to the next: an odd number of lines, so that the lines of a run do
  /// not meet in one set of the cache.
  static std::int64_t line_step(std::int64_t runs) { return (runs | 1) * kLineLanes; }
  std::int64_t packed_size(std::int64_t runs) const {
    return chunk_ / kLineLanes * line_step(runs);
  }
  std::int64_t lane_elements() const {
    return rows_ * steps_ + steps_ * columns_ + rows_ * columns_;
  }

  bool c_is_aligned() const {
    bool aligned = reinterpret_cast<std::uintptr_t>(c_) % kLineBytes == 0;
    for (const Loops* loops : {&outer_, &step_.m, &step_.n}) {
      for (const Loop& loop : *loops) aligned = aligned && loop.c % kLineLanes == 0;
    }
    return aligned;
  }

  std::size_t bytes_of_lists() const {
    Carver counter(nullptr);
    counter.take<std::int64_t>(rows_ * steps_);
    counter.take<std::int64_t>(steps_ * columns_);
    counter.take<std::int64_t>(rows_ * columns_);
    return counter.bytes();
  }
  static const std::int64_t* list(Carver& carver, const Loops& outer, StrideOf of_outer,
                                  const Loops& inner, StrideOf of_inner) {
    const OffsetList x = OffsetList(outer, of_outer), y = OffsetList(inner, of_inner);
    auto* const all = carver.take<std::int64_t>(size_of_list(x) * size_of_list(y));
    std::int64_t* to = all;
    for (const std::int64_t i : x) {
      for (const std::int64_t j : y) *to++ = i + j;
    }
    return all;
  }

  void run_chunk(std::int64_t entry, std::int64_t first, std::byte* memory) const {
    Carver carver(memory);
    const Arrays arrays = carve(carver);
    const std::int64_t lanes = std::min(chunk_, lanes_.size - first);
    kernel::LaneBlock<T> block{
        .a = a_ + offset_at(outer_, entry, &Loop::a) + first * lanes_.a,
        .b = b_ + offset_at(outer_, entry, &Loop::b) + first * lanes_.b,
        .c = c_ + offset_at(outer_, entry, &Loop::c) + first,
        .a_row = step_of(step_.m, &Loop::a),
        .a_step = step_of(step_.k, &Loop::a),
        .b_column = step_of(step_.n, &Loop::b),
        .b_step = step_of(step_.k, &Loop::b),
        .c_row = step_of(step_.m, &Loop::c),
        .c_column = step_of(step_.n, &Loop::c),
        .rows = rows_,
        .columns = columns_,
        .steps = steps_,
        .lanes = lanes,
        .stream = streams_ && direct_,
    };
    if (pack_b_) {
      const std::int64_t runs = steps_ * columns_;
      functions_.pack_lanes({.source = block.b,
                             .at = at_b_,
                             .runs = runs,
                             .lanes = lanes,
                             .same = lanes_.b == 0,
                             .packed = arrays.b,
                             .line = line_step(runs)});
      block.b = arrays.b;
      block.b_column = kLineLanes;
      block.b_step = columns_ * kLineLanes;
      block.b_line = line_step(runs);
    }
    std::optional<EpilogueTask> last;
    if (epilogue_) last.emplace(*epilogue_);
    for (std::int64_t row = 0; row < rows_; row += block_rows_) {
      const std::int64_t rows = std::min(block_rows_, rows_ - row);
      run_rows(block, row, rows, arrays);
      if (last) {
        finish(*last, block, row, rows, arrays);
      } else if (!direct_) {
        unstage(arrays.c, block.c, row, rows, lanes);
      }
    }
    if (streams_) moves_.fence();
  }

  /// Rows of c from `row` on; `block` is at the first one.
  void run_rows(kernel::LaneBlock<T> block, std::int64_t row, std::int64_t rows,
                const Arrays& arrays) const {
    block.rows = rows;
    if (pack_a_) {
      const std::int64_t runs = rows * steps_;
      functions_.pack_lanes({.source = block.a,
                             .at = at_a_ + row * steps_,
                             .runs = runs,
                             .lanes = block.lanes,
                             .same = lanes_.a == 0,
                             .packed = arrays.a,
                             .line = line_step(runs)});
      block.a = arrays.a;
      block.a_row = steps_ * kLineLanes;
      block.a_step = kLineLanes;
      block.a_line = line_step(runs);
    } else {
      block.a += row * block.a_row;
    }
    if (direct_) {
      block.c += row * block.c_row;
    } else {
      block.c = arrays.c;
      block.c_row = columns_ * chunk_;
      block.c_column = chunk_;
    }
    functions_.multiply_lanes(block);
  }

  /// What becomes of some rows, which are staged unless they are where they belong.
  void finish(EpilogueTask& last, const kernel::LaneBlock<T>& block, std::int64_t row,
              std::int64_t rows, const Arrays& arrays) const {
    last.apply({.first = block.c - c_,
                .rows = at_c_ + row * columns_,
                .row_count = rows * columns_,
                .column_count = block.lanes,
                .staged = direct_ ? nullptr : arrays.c,
                .stride = chunk_,
                .stores = streams_ ? kernel::Stores::streaming : kernel::Stores::cached});
  }

  void unstage(const T* from, T* c, std::int64_t first, std::int64_t rows,
               std::int64_t lanes) const {
    const std::int64_t bytes = lanes * static_cast<std::int64_t>(sizeof(T));
    for (std::int64_t row = first; row < first + rows; ++row) {
      for (const std::int64_t column : columns_c_) {
        T* const to = c + rows_c_[static_cast<std::size_t>(row)] + column;
        if (streams_) {
          moves_.stream(from, to, bytes);
        } else {
          std::memcpy(to, from, static_cast<std::size_t>(bytes));
        }
        from += chunk_;
      }
    }
  }

  const plan::Contract& step_;
  const kernel::MatmulFunctions<T>& functions_;
  const kernel::CopyKernels& moves_;
  const Loop lanes_;
  const Loops outer_;
  const std::int64_t chunk_, rows_, block_rows_, columns_, steps_;
  const T *const a_, *const b_;
  T* const c_;
  const OffsetList rows_c_, columns_c_;
  bool pack_a_ = false, pack_b_ = false, streams_ = false, direct_ = false;
  std::optional<ScratchBlock> kept_;  // the lists
  const std::int64_t *at_a_ = nullptr, *at_b_ = nullptr, *at_c_ = nullptr;
  std::optional<Epilogue> epilogue_;  // applied to some rows at a time
};

}  // namespace

bool run_lanes(const plan::Contract& step, const Frame& frame) {
  if (step.batch.empty()) return false;
  const Loop& lanes = step.batch.back();
  const auto fits = [](std::int64_t stride) { return stride == 0 || stride == 1; };
  if (lanes.c != 1 || lanes.size < 8 || !fits(lanes.a) || !fits(lanes.b)) return false;
  const std::int64_t m = extent(step.m), n = extent(step.n), k = extent(step.k);
  const auto element = static_cast<std::int64_t>(size_of(step.c.dtype));
  const auto m_d = static_cast<double>(m), n_d = static_cast<double>(n),
             k_d = static_cast<double>(k);
  const double bytes = static_cast<double>(element) * (m_d * k_d + k_d * n_d + m_d * n_d);
  const double wanted =
      std::clamp(static_cast<double>(kLanesTaskBytes) / bytes * static_cast<double>(element),
                 static_cast<double>(kLeastRun), static_cast<double>(kMostRun));
  std::int64_t chunk = static_cast<std::int64_t>(wanted) / kLineBytes * kLineBytes / element;
  // What is packed of b, and of a few rows of a and c, must stay in L2.
  const double rows = std::min(m_d, static_cast<double>(kRows));
  const double kept = static_cast<double>(element) * (k_d * n_d + rows * (k_d + n_d));
  const double room = static_cast<double>(machine().l2_bytes) * 0.75 / kept;
  const auto fits_l2 = [&] { return static_cast<double>(std::min(chunk, lanes.size)) <= room; };
  while (!fits_l2() && chunk * element > kShortestRun) chunk /= 2;
  if (!fits_l2()) {
    // Where every element is used once, nothing needs to stay.
    const bool plain =
        lanes.a == 1 && lanes.b == 1 && is_linear(step.m) && is_linear(step.n) && is_linear(step.k);
    if ((m > 1 && n > 1) || !plain) return false;
  }
  const bool in_place = !fits_l2();
  with_float(step, [&]<class T>(T) { LaneProducts<T>(step, frame, chunk, in_place).run(); });
  return true;
}

}  // namespace einkern::exec
