// SPDX-License-Identifier: Apache-2.0
// Runs contractions that read every element of a big operand once: matrix times vector, and dots.
#include <algorithm>
#include <cstdint>
#include <memory>

#include "../base/small_vector.h"
#include "boxes.h"
#include "contract.h"
#include "epilogue.h"
#include "parallel.h"
#include "parts.h"
#include "scratch.h"

namespace einkern::exec {
namespace {

using plan::Loop;
using plan::Loops;

// Elements of a task: long enough for streams to start, short enough to share out.
constexpr std::int64_t kVectorTaskElements = 65536;
// A sum over more than two of these is cut, and the parts are added in order.
constexpr std::int64_t kSumBlock = 65536;
// Elements of a strided run that are gathered at a time.
constexpr std::int64_t kGather = 1024;

/// Moves the loop with unit stride in a tensor to the end; says whether there is one.
bool unit_last(Loops& loops, StrideOf stride) {
  const auto unit =
      std::find_if(loops.begin(), loops.end(), [&](const Loop& loop) { return loop.*stride == 1; });
  if (unit == loops.end()) return false;
  std::rotate(unit, unit + 1, loops.end());
  return true;
}

/// Removes and returns the last loop; a single iteration when there is none.
Loop take_last(Loops& loops) {
  if (loops.empty()) return {};
  const Loop last = loops.back();
  loops.pop_back();
  return last;
}

/// Sum of a[i a_stride] b[i b_stride] over a run.
template <class T>
T dot_run(const kernel::MatmulFunctions<T>& functions, const T* a, std::int64_t a_stride,
          const T* b, std::int64_t b_stride, std::int64_t size) {
  if (a_stride == 1 && b_stride == 1) return functions.dot(a, b, size);
  T gathered_a[kGather], gathered_b[kGather];
  T sum = 0;
  for (std::int64_t first = 0; first < size; first += kGather) {
    const std::int64_t n = std::min(kGather, size - first);
    const T *x = a + first * a_stride, *y = b + first * b_stride;
    if (a_stride != 1) {
      for (std::int64_t i = 0; i < n; ++i) gathered_a[i] = x[i * a_stride];
      x = gathered_a;
    }
    if (b_stride != 1) {
      for (std::int64_t i = 0; i < n; ++i) gathered_b[i] = y[i * b_stride];
      y = gathered_b;
    }
    sum += functions.dot(x, y, n);
  }
  return sum;
}

template <class T>
void run_dot_of(const plan::Contract& step, const Frame& frame) {
  const auto* const a = reinterpret_cast<const T*>(frame.address(step.a));
  const auto* const b = reinterpret_cast<const T*>(frame.address(step.b));
  auto* const c = reinterpret_cast<T*>(frame.address(step.c));
  const auto& functions = frame.kernels.matmul.of<T>();
  Loops outer = step.k;
  if (!unit_last(outer, &Loop::a)) unit_last(outer, &Loop::b);
  const Loop run = take_last(outer);
  const std::int64_t runs = extent(outer);
  const std::int64_t batch = extent(step.batch);

  // A part of a sum: some whole runs, or a piece of one.
  const std::int64_t pieces = divide_up(run.size, kSumBlock);
  const std::int64_t runs_at_once = std::clamp<std::int64_t>(kSumBlock / run.size, 1, runs);
  const std::int64_t parts = divide_up(runs, runs_at_once) * pieces;
  // A sum in one part goes where it belongs.
  std::optional<ScratchBlock> memory;
  if (parts > 1) memory.emplace(static_cast<std::size_t>(parts * batch) * sizeof(T));
  T* const sums = memory ? memory->as<T>() : nullptr;
  const auto part_sum = [&](std::int64_t entry, std::int64_t part) {
    const T* const x = a + offset_at(step.batch, entry, &Loop::a);
    const T* const y = b + offset_at(step.batch, entry, &Loop::b);
    const std::int64_t start = part % pieces * kSumBlock;
    const std::int64_t size = std::min(kSumBlock, run.size - start);
    const std::int64_t first = part / pieces * runs_at_once;
    T sum = 0;
    for (std::int64_t r = first; r < std::min(first + runs_at_once, runs); ++r) {
      sum += dot_run(functions, x + offset_at(outer, r, &Loop::a) + start * run.a, run.a,
                     y + offset_at(outer, r, &Loop::b) + start * run.b, run.b, size);
    }
    return sum;
  };
  const std::int64_t parts_at_once = std::clamp<std::int64_t>(
      kVectorTaskElements / (runs_at_once * std::min(run.size, kSumBlock)), 1, parts * batch);
  const double work =
      static_cast<double>(batch) * static_cast<double>(runs) * static_cast<double>(run.size);
  parallel_for(divide_up(parts * batch, parts_at_once), work, [&](std::int64_t tile) {
    const std::int64_t end = std::min((tile + 1) * parts_at_once, parts * batch);
    for (std::int64_t i = tile * parts_at_once; i < end; ++i) {
      T& to = parts == 1 ? c[offset_at(step.batch, i, &Loop::c)] : sums[i];
      to = part_sum(i / parts, i % parts);
    }
  });
  if (parts == 1) return;
  for (std::int64_t entry = 0; entry < batch; ++entry) {
    T sum = sums[entry * parts];
    for (std::int64_t part = 1; part < parts; ++part) sum += sums[entry * parts + part];
    c[offset_at(step.batch, entry, &Loop::c)] = sum;
  }
}

/// y[o] = sum_k w[o, k] x[k] per batch entry; `w` is the operand that has the free labels.
template <class T>
class MatrixVector {
 public:
  MatrixVector(const plan::Contract& step, const Frame& frame)
      : step_(step),
        functions_(frame.kernels.matmul.of<T>()),
        of_w_(step.m.empty() ? &Loop::b : &Loop::a),
        of_x_(step.m.empty() ? &Loop::a : &Loop::b),
        w_(reinterpret_cast<const T*>(frame.address(step.m.empty() ? step.b : step.a))),
        x_(reinterpret_cast<const T*>(frame.address(step.m.empty() ? step.a : step.b))),
        c_(reinterpret_cast<T*>(frame.address(step.c))),
        outer_(step.m.empty() ? step.n : step.m),
        sums_(step.k) {
    by_rows_ = unit_last(sums_, of_w_);
    if (by_rows_) {
      along_ = take_last(sums_);
      runs_w_ = OffsetList(sums_, of_w_);
      runs_x_ = OffsetList(sums_, of_x_);
    } else if (unit_last(outer_, of_w_)) {
      across_ = take_last(outer_);
    }
    batch_ = extent(step.batch);
    rows_ = extent(outer_);
    count_ = extent(step.k);
    piece_ = std::min(across_.size, kPiece);
    pieces_ = divide_up(across_.size, piece_);
    blocks_ = batch_ * rows_ * pieces_;
    cut_sums();
  }

  void run() {
    if (by_rows_ && along_.*of_x_ != 1) gather_vectors();
    std::optional<ScratchBlock> memory;
    if (parts_ > 1) {
      memory.emplace(static_cast<std::size_t>(parts_ * results()) * sizeof(T));
      partial_ = memory->as<T>();
    }
    const std::int64_t at_once = std::clamp<std::int64_t>(
        kVectorTaskElements / (piece_ * std::min(part_, count_)), 1, blocks_ * parts_);
    const double work = static_cast<double>(results()) * static_cast<double>(count_);
    parallel_for(divide_up(blocks_ * parts_, at_once), work, [&](std::int64_t task) {
      const std::int64_t end = std::min((task + 1) * at_once, blocks_ * parts_);
      for (std::int64_t i = task * at_once; i < end; ++i) run_block(i % blocks_, i / blocks_);
    });
    if (parts_ > 1) add_parts();
  }

 private:
  // Outputs of a task: they stay in L1 while the rows pass by.
  static constexpr std::int64_t kPiece = 4096 / sizeof(T);
  // Sums are cut where there are fewer blocks of outputs than this.
  static constexpr std::int64_t kManyBlocks = 16;
  // Factors that lie ready at a time.
  static constexpr std::int64_t kFactors = 256;

  std::int64_t results() const { return batch_ * rows_ * across_.size; }

  void cut_sums() {
    const std::int64_t most = std::max(kSumBlock / piece_ / kFactors, std::int64_t{1}) * kFactors;
    const bool one_run = !by_rows_ || sums_.empty();
    part_ = blocks_ < kManyBlocks && one_run && count_ >= 2 * most ? most : count_;
    parts_ = divide_up(count_, part_);
  }

  /// Copies of the vectors, contiguous in the order of the sums.
  void gather_vectors() {
    vectors_.emplace(static_cast<std::size_t>(batch_ * count_) * sizeof(T));
    T* to = vectors_->as<T>();
    for (std::int64_t entry = 0; entry < batch_; ++entry) {
      const T* const from = x_ + offset_at(step_.batch, entry, of_x_);
      for (const std::int64_t run : runs_x_) {
        for (std::int64_t p = 0; p < along_.size; ++p) *to++ = from[run + p * (along_.*of_x_)];
      }
    }
  }

  void run_block(std::int64_t block, std::int64_t part) const {
    const std::int64_t start = block % pieces_ * piece_,
                       size = std::min(piece_, across_.size - start);
    const std::int64_t row = block / pieces_ % rows_, entry = block / pieces_ / rows_;
    const std::int64_t first = part * part_, last = std::min(first + part_, count_);
    const T* const w = w_ + offset_at(step_.batch, entry, of_w_) + offset_at(outer_, row, of_w_) +
                       start * (across_.*of_w_);
    const T* const x = x_ + offset_at(step_.batch, entry, of_x_);
    T* const c = parts_ > 1
                     ? partial_ + part * results() + (entry * rows_ + row) * across_.size + start
                     : c_ + offset_at(step_.batch, entry, &Loop::c) +
                           offset_at(outer_, row, &Loop::c) + start * across_.c;
    const std::int64_t c_stride = parts_ > 1 ? 1 : across_.c;
    if (by_rows_) {
      *c = row_sum(w, x, entry, first, last);
    } else {
      columns(w, x, first, last, size, c, c_stride);
    }
  }

  T row_sum(const T* w, const T* x, std::int64_t entry, std::int64_t first,
            std::int64_t last) const {
    const T* const copied = vectors_ ? vectors_->as<const T>() + entry * count_ : nullptr;
    if (runs_w_.size() == 1) {
      return functions_.dot(w + first, (copied != nullptr ? copied : x) + first, last - first);
    }
    T sum = 0;
    for (std::size_t r = 0; r < runs_w_.size(); ++r) {
      const T* const run =
          copied != nullptr ? copied + static_cast<std::int64_t>(r) * along_.size : x + runs_x_[r];
      sum += functions_.dot(w + runs_w_[r], run, along_.size);
    }
    return sum;
  }

  void columns(const T* w, const T* x, std::int64_t first, std::int64_t last, std::int64_t size,
               T* c, std::int64_t c_stride) const {
    T staged[kPiece], weights[kFactors];
    std::int64_t rows[kFactors];
    T* const y = c_stride == 1 || size == 1 ? c : staged;
    for (std::int64_t at = first; at < last; at += kFactors) {
      const std::int64_t count = std::min(kFactors, last - at);
      for (std::int64_t p = 0; p < count; ++p) {
        rows[p] = sum_offset(at + p, of_w_);
        weights[p] = x[sum_offset(at + p, of_x_)];
      }
      functions_.weighted_rows({.x = w,
                                .rows = rows,
                                .weights = weights,
                                .row_count = count,
                                .size = size,
                                .y = y,
                                .add = at != first});
    }
    if (y == c) return;
    for (std::int64_t i = 0; i < size; ++i) c[i * c_stride] = staged[i];
  }

  std::int64_t sum_offset(std::int64_t p, StrideOf stride) const {
    return sums_.size() == 1 ? p * (sums_[0].*stride) : offset_at(sums_, p, stride);
  }

  /// Adds the parts of every sum in order.
  void add_parts() const {
    for (std::int64_t i = 0; i < results(); ++i) {
      T sum = partial_[i];
      for (std::int64_t part = 1; part < parts_; ++part) sum += partial_[part * results() + i];
      const std::int64_t row = i / across_.size % rows_, entry = i / across_.size / rows_;
      c_[offset_at(step_.batch, entry, &Loop::c) + offset_at(outer_, row, &Loop::c) +
         i % across_.size * across_.c] = sum;
    }
  }

  const plan::Contract& step_;
  const kernel::MatmulFunctions<T>& functions_;
  const StrideOf of_w_, of_x_;
  const T *const w_, *const x_;
  T* const c_;
  Loops outer_, sums_;          // free labels and contracted ones, less those taken out below
  Loop along_;                  // contracted, unit stride in w
  Loop across_;                 // free, unit stride in w: outputs computed together
  bool by_rows_ = false;        // along_ there is
  OffsetList runs_w_, runs_x_;  // of the runs along along_
  std::int64_t batch_ = 1, rows_ = 1, count_ = 1;
  std::int64_t piece_ = 1, pieces_ = 1, blocks_ = 1;  // of across_
  std::int64_t part_ = 1, parts_ = 1;                 // of a sum
  std::optional<ScratchBlock> vectors_;
  T* partial_ = nullptr;
};

}  // namespace

void run_dot(const plan::Contract& step, const Frame& frame) {
  with_float(step, [&]<class T>(T) { run_dot_of<T>(step, frame); });
  run_epilogue(step, frame);
}

void run_matvec(const plan::Contract& step, const Frame& frame) {
  with_float(step, [&]<class T>(T) { MatrixVector<T>(step, frame).run(); });
  run_epilogue(step, frame);
}

}  // namespace einkern::exec
