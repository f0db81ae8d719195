// SPDX-License-Identifier: Apache-2.0
// Runs many small matrix products: side by side in the lanes, or one by one in registers.
#include <algorithm>
#include <cstdint>
#include <vector>

#include "../base/machine.h"
#include "../base/small_vector.h"
#include "boxes.h"
#include "contract.h"
#include "parallel.h"
#include "scratch.h"

namespace einkern::exec {
namespace {

using plan::Loop;
using OffsetList = SmallVector<std::int64_t, 16>;

// Lanes of a task. Fewer than 64 are short runs in as many streams as the matrices have elements.
constexpr std::int64_t kLeastLanes = 64, kMostLanes = 256;
// Matrices of a task: some microseconds of work.
constexpr std::int64_t kMatrices = 256;

OffsetList offsets_of(const plan::Loops& loops, StrideOf stride) {
  OffsetList offsets(static_cast<std::size_t>(extent(loops)));
  list_offsets(loops, stride, offsets.data());
  return offsets;
}

template <class T>
const T* data_of(const plan::Operand& operand, const Frame& frame) {
  return reinterpret_cast<const T*>(frame.address(operand));
}

template <class T>
void run_lanes_of(const plan::Contract& step, const Frame& frame, std::int64_t chunk) {
  const Loop lanes = step.batch.back();
  const plan::Loops outer(step.batch.begin(), step.batch.end() - 1);
  const OffsetList rows_a = offsets_of(step.m, &Loop::a), rows_c = offsets_of(step.m, &Loop::c);
  const OffsetList columns_b = offsets_of(step.n, &Loop::b);
  const OffsetList columns_c = offsets_of(step.n, &Loop::c);
  const OffsetList steps_a = offsets_of(step.k, &Loop::a), steps_b = offsets_of(step.k, &Loop::b);
  const auto size = [](const OffsetList& list) { return static_cast<std::int64_t>(list.size()); };
  kernel::LaneBlock<T> whole{.rows_a = rows_a.data(),
                             .rows_c = rows_c.data(),
                             .columns_b = columns_b.data(),
                             .columns_c = columns_c.data(),
                             .steps_a = steps_a.data(),
                             .steps_b = steps_b.data(),
                             .row_count = size(rows_a),
                             .column_count = size(columns_b),
                             .steps = size(steps_a),
                             .same_a = lanes.a == 0,
                             .same_b = lanes.b == 0};
  const T* const a = data_of<T>(step.a, frame);
  const T* const b = data_of<T>(step.b, frame);
  T* const c = reinterpret_cast<T*>(frame.address(step.c));
  const std::int64_t chunks = (lanes.size + chunk - 1) / chunk;
  const std::int64_t tiles = extent(outer) * chunks;
  const double products = static_cast<double>(whole.row_count) *
                          static_cast<double>(whole.column_count) *
                          static_cast<double>(whole.steps);
  parallel_for(tiles, products * static_cast<double>(extent(step.batch)), [&](std::int64_t tile) {
    const std::int64_t entry = tile / chunks, first = tile % chunks * chunk;
    kernel::LaneBlock<T> block = whole;
    block.lanes = std::min(chunk, lanes.size - first);
    block.a = a + offset_at(outer, entry, &Loop::a) + first * lanes.a;
    block.b = b + offset_at(outer, entry, &Loop::b) + first * lanes.b;
    block.c = c + offset_at(outer, entry, &Loop::c) + first;
    frame.kernels.matmul.of<T>().multiply_lanes(block);
  });
}

/// Are the positions of `loops` neighbours in this tensor?
bool contiguous_along(const plan::Loops& loops, StrideOf stride) {
  return loops.empty() || (loops.size() == 1 && loops[0].*stride == 1);
}

template <class T>
class SmallProducts {
 public:
  SmallProducts(const plan::Contract& step, const Frame& frame)
      : step_(step),
        functions_(frame.kernels.matmul.of<T>()),
        a_(data_of<T>(step.a, frame)),
        b_(data_of<T>(step.b, frame)),
        c_(reinterpret_cast<T*>(frame.address(step.c))),
        rows_a_(offsets_of(step.m, &Loop::a)),
        rows_c_(offsets_of(step.m, &Loop::c)),
        columns_b_(offsets_of(step.n, &Loop::b)),
        columns_c_(offsets_of(step.n, &Loop::c)),
        steps_a_(offsets_of(step.k, &Loop::a)),
        steps_b_(offsets_of(step.k, &Loop::b)),
        gather_b_(!contiguous_along(step.n, &Loop::b)),
        scatter_c_(!contiguous_along(step.n, &Loop::c)) {
    // Copies of b and c whose columns are neighbours.
    if (gather_b_) dense_steps_ = dense(steps_b_.size());
    if (scatter_c_) dense_rows_ = dense(rows_c_.size());
  }

  void run() const {
    const std::int64_t batch = extent(step_.batch);
    const double products = static_cast<double>(rows_a_.size()) *
                            static_cast<double>(columns_b_.size()) *
                            static_cast<double>(steps_a_.size());
    parallel_for((batch + kMatrices - 1) / kMatrices, products * static_cast<double>(batch),
                 [&](std::int64_t tile) {
                   run_range(tile * kMatrices, std::min((tile + 1) * kMatrices, batch));
                 });
  }

 private:
  // Matrices whose operands lie ready at a time.
  static constexpr std::int64_t kGroup = 8;

  OffsetList dense(std::size_t rows) const {
    OffsetList offsets(rows);
    for (std::size_t i = 0; i < rows; ++i) {
      offsets[i] = static_cast<std::int64_t>(i * columns_b_.size());
    }
    return offsets;
  }

  void run_range(std::int64_t first, std::int64_t end) const {
    const kernel::SmallBlock<T> block{.rows_a = rows_a_.data(),
                                      .rows_c = scatter_c_ ? dense_rows_.data() : rows_c_.data(),
                                      .steps_a = steps_a_.data(),
                                      .steps_b = gather_b_ ? dense_steps_.data() : steps_b_.data(),
                                      .row_count = static_cast<std::int64_t>(rows_a_.size()),
                                      .column_count = static_cast<std::int64_t>(columns_b_.size()),
                                      .steps = static_cast<std::int64_t>(steps_a_.size())};
    const std::size_t b_size = gather_b_ ? steps_b_.size() * columns_b_.size() : 0;
    const std::size_t c_size = scatter_c_ ? rows_c_.size() * columns_b_.size() : 0;
    SmallVector<T, 512> copies((b_size + c_size) * kGroup);
    for (std::int64_t group = first; group < end; group += kGroup) {
      const std::int64_t count = std::min(kGroup, end - group);
      const T *a[kGroup], *b[kGroup];
      T *c[kGroup], *target[kGroup];
      for (std::int64_t e = 0; e < count; ++e) {
        T* const copy = copies.data() + static_cast<std::size_t>(e) * (b_size + c_size);
        a[e] = a_ + offset_at(step_.batch, group + e, &Loop::a);
        b[e] = b_ + offset_at(step_.batch, group + e, &Loop::b);
        target[e] = c_ + offset_at(step_.batch, group + e, &Loop::c);
        if (gather_b_) b[e] = gather(b[e], copy);
        c[e] = scatter_c_ ? copy + b_size : target[e];
      }
      functions_.multiply_small(block, a, b, c, count);
      if (!scatter_c_) continue;
      for (std::int64_t e = 0; e < count; ++e) scatter(c[e], target[e]);
    }
  }

  const T* gather(const T* from, T* to) const {
    T* out = to;
    for (const std::int64_t step : steps_b_) {
      for (const std::int64_t column : columns_b_) *out++ = from[step + column];
    }
    return to;
  }

  void scatter(const T* from, T* to) const {
    for (const std::int64_t row : rows_c_) {
      for (const std::int64_t column : columns_c_) to[row + column] = *from++;
    }
  }

  const plan::Contract& step_;
  const kernel::MatmulFunctions<T>& functions_;
  const T *const a_, *const b_;
  T* const c_;
  const OffsetList rows_a_, rows_c_, columns_b_, columns_c_, steps_a_, steps_b_;
  const bool gather_b_, scatter_c_;
  OffsetList dense_steps_, dense_rows_;
};

}  // namespace

bool run_lanes(const plan::Contract& step, const Frame& frame) {
  if (step.batch.empty()) return false;
  const Loop& lanes = step.batch.back();
  const auto fits = [](std::int64_t stride) { return stride == 0 || stride == 1; };
  if (lanes.c != 1 || lanes.size < 8 || !fits(lanes.a) || !fits(lanes.b)) return false;
  const std::int64_t m = extent(step.m), n = extent(step.n), k = extent(step.k);
  // The chunk of both operands and of c must stay in L2.
  const auto lane_bytes = static_cast<double>(size_of(step.c.dtype)) *
                          (static_cast<double>(m) * static_cast<double>(k) +
                           static_cast<double>(n) * static_cast<double>(k) +
                           static_cast<double>(m) * static_cast<double>(n));
  const double room = static_cast<double>(machine().l2_bytes) / 2 / lane_bytes;
  const bool streams = m == 1 || n == 1;  // every element is used once: nothing needs to stay
  if (!streams && room < static_cast<double>(std::min(kLeastLanes, lanes.size))) return false;
  const auto chunk = static_cast<std::int64_t>(
      std::clamp(room, static_cast<double>(kLeastLanes), static_cast<double>(kMostLanes)));
  with_float(step,
             [&]<class T>(T) { run_lanes_of<T>(step, frame, chunk / kLeastLanes * kLeastLanes); });
  return true;
}

void run_small(const plan::Contract& step, const Frame& frame) {
  with_float(step, [&]<class T>(T) { SmallProducts<T>(step, frame).run(); });
}

}  // namespace einkern::exec
