// SPDX-License-Identifier: Apache-2.0
// Runs contractions that read every element of a big operand once: matrix times vector, dots and
// products without a sum.
#include <algorithm>
#include <cstdint>
#include <vector>

#include "boxes.h"
#include "contract.h"
#include "parallel.h"

namespace einkern::exec {
namespace {

using plan::Loop;
using plan::Loops;

// Elements of a task: long enough for streams to start, short enough to share out.
constexpr std::int64_t kTaskElements = 65536;
// A sum over more than two of these is cut, and the parts are added in order.
constexpr std::int64_t kSumBlock = 65536;
// Elements of a strided run that are gathered at a time.
constexpr std::int64_t kGather = 1024;

std::int64_t divide_up(std::int64_t a, std::int64_t b) { return (a + b - 1) / b; }

/// Moves the loop with unit stride in a tensor to the end; says whether there is one.
bool unit_last(Loops& loops, StrideOf stride) {
  const auto unit =
      std::find_if(loops.begin(), loops.end(), [&](const Loop& loop) { return loop.*stride == 1; });
  if (unit == loops.end()) return false;
  std::rotate(unit, unit + 1, loops.end());
  return true;
}

std::vector<std::int64_t> offsets_of(const Loops& loops, StrideOf stride) {
  std::vector<std::int64_t> offsets(static_cast<std::size_t>(extent(loops)));
  list_offsets(loops, stride, offsets.data());
  return offsets;
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
  std::vector<T> sums(static_cast<std::size_t>(parts * batch));
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
      kTaskElements / (runs_at_once * std::min(run.size, kSumBlock)), 1, parts * batch);
  const double work =
      static_cast<double>(batch) * static_cast<double>(runs) * static_cast<double>(run.size);
  parallel_for(divide_up(parts * batch, parts_at_once), work, [&](std::int64_t tile) {
    const std::int64_t end = std::min((tile + 1) * parts_at_once, parts * batch);
    for (std::int64_t i = tile * parts_at_once; i < end; ++i) {
      sums[static_cast<std::size_t>(i)] = part_sum(i / parts, i % parts);
    }
  });
  for (std::int64_t entry = 0; entry < batch; ++entry) {
    T sum = sums[static_cast<std::size_t>(entry * parts)];
    for (std::int64_t part = 1; part < parts; ++part) {
      sum += sums[static_cast<std::size_t>(entry * parts + part)];
    }
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
        free_(step.m.empty() ? step.n : step.m),
        sums_(step.k) {
    by_rows_ = unit_last(sums_, of_w_);
    by_columns_ = !by_rows_ && unit_last(free_, of_w_);
    k_w_ = offsets_of(sums_, of_w_);
    k_x_ = offsets_of(sums_, of_x_);
  }

  void run() const {
    const std::int64_t batch = extent(step_.batch);
    const auto sums = static_cast<std::int64_t>(k_w_.size());
    // The vectors of all entries, contiguous in the order of the sums.
    std::vector<T> x(static_cast<std::size_t>(batch * sums));
    for (std::int64_t entry = 0; entry < batch; ++entry) {
      const T* const from = x_ + offset_at(step_.batch, entry, of_x_);
      T* const to = x.data() + entry * sums;
      for (std::size_t p = 0; p < k_x_.size(); ++p) to[p] = from[k_x_[p]];
    }

    Loops outer = free_;
    Loop run;  // outputs computed together
    if (by_columns_) run = take_last(outer);
    const std::int64_t rows = extent(outer);
    const std::int64_t piece = std::min(run.size, kPiece);
    const std::int64_t pieces = divide_up(run.size, piece);
    const std::int64_t outputs = batch * rows * pieces;
    const std::int64_t at_once =
        std::clamp<std::int64_t>(kTaskElements / (piece * sums), 1, outputs);
    const double work = static_cast<double>(batch) * static_cast<double>(rows) *
                        static_cast<double>(run.size) * static_cast<double>(sums);
    parallel_for(divide_up(outputs, at_once), work, [&](std::int64_t tile) {
      const std::int64_t end = std::min((tile + 1) * at_once, outputs);
      for (std::int64_t i = tile * at_once; i < end; ++i) {
        const std::int64_t entry = i / pieces / rows, row = i / pieces % rows;
        const std::int64_t start = i % pieces * piece;
        const T* const w = w_ + offset_at(step_.batch, entry, of_w_) +
                           offset_at(outer, row, of_w_) + start * (run.*of_w_);
        T* const c = c_ + offset_at(step_.batch, entry, &Loop::c) +
                     offset_at(outer, row, &Loop::c) + start * run.c;
        const T* const vector = x.data() + entry * sums;
        if (by_columns_) {
          columns(w, vector, std::min(piece, run.size - start), c, run.c);
        } else {
          *c = row_sum(w, vector);
        }
      }
    });
  }

 private:
  // Outputs of a task: they stay in L1 while the rows pass by.
  static constexpr std::int64_t kPiece = 4096 / sizeof(T);

  T row_sum(const T* w, const T* x) const {
    T sum = 0;
    if (!by_rows_) {
      for (std::size_t p = 0; p < k_w_.size(); ++p) sum += w[k_w_[p]] * x[p];
      return sum;
    }
    const auto run = static_cast<std::size_t>(sums_.back().size);
    for (std::size_t p = 0; p < k_w_.size(); p += run) {
      sum += functions_.dot(w + k_w_[p], x + p, static_cast<std::int64_t>(run));
    }
    return sum;
  }

  void columns(const T* w, const T* x, std::int64_t size, T* c, std::int64_t c_stride) const {
    T staged[kPiece];
    T* const y = c_stride == 1 ? c : staged;
    functions_.weighted_rows({.x = w,
                              .rows = k_w_.data(),
                              .weights = x,
                              .row_count = static_cast<std::int64_t>(k_w_.size()),
                              .size = size,
                              .y = y});
    if (c_stride == 1) return;
    for (std::int64_t i = 0; i < size; ++i) c[i * c_stride] = staged[i];
  }

  const plan::Contract& step_;
  const kernel::MatmulFunctions<T>& functions_;
  const StrideOf of_w_, of_x_;
  const T *const w_, *const x_;
  T* const c_;
  Loops free_, sums_;
  bool by_rows_ = false, by_columns_ = false;
  std::vector<std::int64_t> k_w_, k_x_;
};

template <class T>
void run_products(const plan::Contract& step, const Frame& frame) {
  const auto* const a = reinterpret_cast<const T*>(frame.address(step.a));
  const auto* const b = reinterpret_cast<const T*>(frame.address(step.b));
  auto* const c = reinterpret_cast<T*>(frame.address(step.c));
  Loops outer = step.batch;
  outer.insert(outer.end(), step.m.begin(), step.m.end());
  outer.insert(outer.end(), step.n.begin(), step.n.end());
  const bool contiguous = unit_last(outer, &Loop::c);
  const Loop run = take_last(outer);
  const std::int64_t rows = extent(outer);
  const std::int64_t piece = std::min(run.size, kTaskElements);
  const std::int64_t pieces = divide_up(run.size, piece);
  const std::int64_t at_once = std::clamp<std::int64_t>(kTaskElements / piece, 1, rows * pieces);
  const double work = static_cast<double>(rows) * static_cast<double>(run.size);
  parallel_for(divide_up(rows * pieces, at_once), work, [&](std::int64_t tile) {
    const std::int64_t end = std::min((tile + 1) * at_once, rows * pieces);
    for (std::int64_t i = tile * at_once; i < end; ++i) {
      const std::int64_t row = i / pieces, start = i % pieces * piece;
      const std::int64_t size = std::min(piece, run.size - start);
      const T* const x = a + offset_at(outer, row, &Loop::a) + start * run.a;
      const T* const y = b + offset_at(outer, row, &Loop::b) + start * run.b;
      T* const z = c + offset_at(outer, row, &Loop::c) + start * run.c;
      if (contiguous) {
        frame.kernels.matmul.of<T>().products(x, run.a, y, run.b, z, size);
      } else {
        for (std::int64_t p = 0; p < size; ++p) z[p * run.c] = x[p * run.a] * y[p * run.b];
      }
    }
  });
}

}  // namespace

void run_dot(const plan::Contract& step, const Frame& frame) {
  with_float(step, [&]<class T>(T) { run_dot_of<T>(step, frame); });
}

void run_matvec(const plan::Contract& step, const Frame& frame) {
  with_float(step, [&]<class T>(T) { MatrixVector<T>(step, frame).run(); });
}

void run_outer(const plan::Contract& step, const Frame& frame) {
  // A real outer product has layouts worth packing for; the rest is elementwise.
  constexpr std::int64_t kMatrix = 16;
  if (extent(step.m) >= kMatrix && extent(step.n) >= kMatrix) return run_matmul(step, frame);
  with_float(step, [&]<class T>(T) { run_products<T>(step, frame); });
}

}  // namespace einkern::exec
