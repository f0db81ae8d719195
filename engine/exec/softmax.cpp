// SPDX-License-Identifier: Apache-2.0
// The step that normalises rows: dense ones where they lie, others gathered into scratch memory.
#include <algorithm>
#include <optional>
#include <utility>

#include "../base/error.h"
#include "frame.h"
#include "parallel.h"
#include "parts.h"
#include "scratch.h"
#include "space.h"

namespace einkern::exec {
namespace {

constexpr std::int64_t kSoftmaxTaskElements =
    16384;                                     // exponentials: a task of some ten microseconds
constexpr std::int64_t kLeastGroup = 16;       // rows gathered together: a line of f32
constexpr std::int64_t kMostGroup = 64;        // four lines, for the prefetcher
constexpr std::int64_t kGroupBytes = 1 << 20;  // half of an L2

/// Calls `f(position, offset)` for every element of one view of a space, in C order.
template <class F>
void for_each(const Space& space, std::size_t view, F&& f) {
  const std::size_t last = space.rank() - 1;
  const std::int64_t run = space.sizes[last], step = space.strides[view][last];
  const std::int64_t runs = space.size() / run;
  for (std::int64_t r = 0; r < runs; ++r) {
    const std::int64_t at = space.offset(view, r, last);
    for (std::int64_t i = 0; i < run; ++i) f(r * run + i, at + i * step);
  }
}

template <class T>
class Rows {
 public:
  Rows(const plan::Softmax& step, const Frame& frame,
       const kernel::SoftmaxKernels::Rows<T>& kernels)
      : kind_(step.kind),
        kernels_(kernels),
        moves_(frame.kernels.copy),
        in_(reinterpret_cast<const T*>(frame.address(step.in))),
        out_(reinterpret_cast<T*>(frame.address(step.out))) {
    const Layout& in = step.in.layout;
    const std::size_t kept = in.rank() - step.axes;
    const bool whole = kind_ != plan::SoftmaxKind::logsumexp;  // out has the row axes too
    const Dims in_kept(in.strides.begin(), in.strides.begin() + kept);
    const Dims in_row(in.strides.begin() + kept, in.strides.end());
    const Dims& out = step.out.layout.strides;
    const Dims out_kept(out.begin(), out.begin() + kept);
    const Dims out_row = whole ? Dims(out.begin() + kept, out.end()) : in_row;
    Dims sink(kept, 0);
    if (step.sink.value >= 0) {
      sink = step.sink.layout.strides;
      sink_ = reinterpret_cast<const T*>(frame.address(step.sink));
    }
    row_ = make_space(Dims(in.shape.begin() + kept, in.shape.end()), {&in_row, &out_row});
    kept_ =
        make_space(Dims(in.shape.begin(), in.shape.begin() + kept), {&in_kept, &out_kept, &sink});
    length_ = row_.size();
    in_dense_ = row_.rank() == 0 || (row_.rank() == 1 && row_.strides[0][0] == 1);
    out_dense_ = !whole || row_.rank() == 0 || (row_.rank() == 1 && row_.strides[1][0] == 1);
  }

  void run() const {
    const std::int64_t rows = kept_.size();
    if (rows == 0) return;
    const bool grouped = !in_dense_ && length_ > 0 && row_.rank() == 1 && kept_.rank() > 0 &&
                         kept_.strides[0].back() == 1 && kept_.sizes.back() >= kLeastGroup / 2;
    const double work = 8.0 * static_cast<double>(rows) * static_cast<double>(length_);
    const std::int64_t fitting = kSoftmaxTaskElements / std::max<std::int64_t>(1, length_);
    if (grouped) {
      const std::int64_t neighbours = kept_.sizes.back();
      const std::int64_t fitting_rows =
          kGroupBytes / (row_step() * static_cast<std::int64_t>(sizeof(T)));
      const std::int64_t group =
          std::clamp(fitting_rows / kLeastGroup * kLeastGroup, kLeastGroup, kMostGroup);
      const std::int64_t groups = divide_up(neighbours, group);
      ScratchPool pool(static_cast<std::size_t>(row_step() * group) * sizeof(T));
      parallel_for(rows / neighbours * groups, work, [&](std::int64_t task) {
        const ScratchPool::Lease lease(pool);
        const std::int64_t first = task % groups * group;
        run_group(task / groups, first, std::min(group, neighbours - first),
                  reinterpret_cast<T*>(lease.data()));
      });
    } else {
      const std::int64_t group = std::max<std::int64_t>(1, fitting);
      parallel_for(divide_up(rows, group), work, [&](std::int64_t task) {
        run_rows(task * group, std::min(rows, (task + 1) * group));
      });
    }
  }

 private:
  /// One dense row; for logsumexp `out` is one element.
  void run_row(const T* in, const T* sink, T* out) const {
    switch (kind_) {
      case plan::SoftmaxKind::softmax:
        return kernels_.softmax(in, sink, length_, out);
      case plan::SoftmaxKind::log_softmax:
        return kernels_.log_softmax(in, sink, length_, out);
      case plan::SoftmaxKind::logsumexp:
        return kernels_.logsumexp(in, sink, length_, out);
    }
  }
  const T* sink_at(std::int64_t offset) const {
    return sink_ == nullptr ? nullptr : sink_ + offset;
  }

  void run_rows(std::int64_t first, std::int64_t last) const {
    std::optional<ScratchBlock> memory;
    if (!in_dense_ || !out_dense_) memory.emplace(static_cast<std::size_t>(length_) * sizeof(T));
    for (std::int64_t row = first; row < last; ++row) {
      const T* in = in_ + kept_.offset(0, row);
      T* const out = out_ + kept_.offset(1, row);
      if (!in_dense_ && length_ > 0) {
        T* const gathered = memory->as<T>();
        for_each(row_, 0, [&](std::int64_t i, std::int64_t at) { gathered[i] = in[at]; });
        in = gathered;
      }
      T* const dense = out_dense_ ? out : memory->as<T>();
      run_row(in, sink_at(kept_.offset(2, row)), dense);
      if (!out_dense_ && length_ > 0) {
        for_each(row_, 1, [&](std::int64_t i, std::int64_t at) { out[at] = dense[i]; });
      }
    }
  }

  /// Distance of gathered rows: no power of two, so that a column does not fall into one cache set.
  std::int64_t row_step() const { return divide_up(length_, 16) * 16 + 16; }

  /// Rows side by side in memory: transposed into scratch memory and back.
  void run_group(std::int64_t outer, std::int64_t first, std::int64_t count, T* rows) const {
    const std::size_t last = kept_.rank() - 1;
    const auto at = [&](std::size_t view, std::int64_t i) {
      return kept_.offset(view, outer, last) + (first + i) * kept_.strides[view][last];
    };
    const auto transpose = sizeof(T) == 4 ? moves_.transpose_4 : moves_.transpose_8;
    transpose(in_ + at(0, 0), row_.strides[0][0], rows, row_step(), length_, count,
              kernel::Stores::cached);
    const bool whole = kind_ != plan::SoftmaxKind::logsumexp;
    for (std::int64_t i = 0; i < count; ++i) {
      T* const row = rows + i * row_step();
      run_row(row, sink_at(at(2, i)), whole ? row : out_ + at(1, i));
    }
    if (!whole) return;
    if (kept_.strides[1][last] == 1) {
      transpose(rows, row_step(), out_ + at(1, 0), row_.strides[1][0], count, length_,
                kernel::Stores::cached);
      return;
    }
    for (std::int64_t i = 0; i < count; ++i) {
      T* const out = out_ + at(1, i);
      for_each(row_, 1,
               [&](std::int64_t k, std::int64_t to) { out[to] = rows[i * row_step() + k]; });
    }
  }

  plan::SoftmaxKind kind_;
  const kernel::SoftmaxKernels::Rows<T>& kernels_;
  const kernel::CopyKernels& moves_;
  const T* in_;
  T* out_;
  const T* sink_ = nullptr;
  Space row_;   // views: in, out
  Space kept_;  // views: in, out, sink
  std::int64_t length_;
  bool in_dense_, out_dense_;
};

}  // namespace

void run(const plan::Softmax& step, const Frame& frame) {
  EINKERN_CHECK(is_float(step.in.dtype) && step.in.dtype == step.out.dtype);
  if (step.in.dtype == DType::f32) {
    Rows<float>(step, frame, frame.kernels.softmax.f32).run();
  } else {
    Rows<double>(step, frame, frame.kernels.softmax.f64).run();
  }
}

}  // namespace einkern::exec
