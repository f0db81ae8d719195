// SPDX-License-Identifier: Apache-2.0
// Runs many small matrix products in registers.
#include <algorithm>
#include <cstdint>
#include <optional>

#include "../base/small_vector.h"
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

// Elements of the three tensors that a task touches: some microseconds of work.
constexpr std::int64_t kSmallTaskElements = 32768;
// Matrices of a task are a multiple of this, so that tasks meet at the ends of lines.
constexpr std::int64_t kMatrices = 16;
// Copies that a product needs, and results on their way around the caches, are kept in L1. Matrices
// of 1 KiB and more leave it: a dozen of them make long rows where the batch is the middle label,
// and while they are multiplied as many are asked for. 5461 products of 32 x 32 in f32, apart by
// rows: 6.4 ms with 4 at a time, 2.8 with 16 and what follows asked for (two cores of an EPYC).
constexpr std::int64_t kSmallStageBytes = 16 << 10, kLargeStageBytes = 64 << 10;
constexpr std::int64_t kLargeMatrix = 1 << 10;
// Results up to this size go around the caches from registers: 20000 products of 8 x 8 in f32 that
// lie in L3 take 0.27 ms, not 0.35. Those of 32 x 32 want what follows asked for in order, from the
// stage: 3.2 ms, not 2.7 (two cores of an EPYC).
constexpr std::int64_t kLargestStreamed = 2 << 10;

/// Are the positions of `loops` neighbours in this tensor?
bool is_dense(const Loops& loops, StrideOf stride) {
  return loops.empty() || (loops.size() == 1 && loops[0].*stride == 1);
}

/// The loop with the most positions goes inside: that many matrices are a single call.
Loops longest_last(Loops loops) {
  const auto longest = std::max_element(
      loops.begin(), loops.end(), [](const Loop& x, const Loop& y) { return x.size < y.size; });
  if (longest != loops.end()) std::rotate(longest, longest + 1, loops.end());
  return loops;
}

template <class T>
class SmallProducts {
 public:
  SmallProducts(const plan::Contract& step, const Frame& frame)
      : step_(step),
        functions_(frame.kernels.matmul.of<T>()),
        moves_(frame.kernels.copy),
        a_(reinterpret_cast<const T*>(frame.address(step.a))),
        b_(reinterpret_cast<const T*>(frame.address(step.b))),
        c_(reinterpret_cast<T*>(frame.address(step.c))),
        batch_(longest_last(step.batch)),
        inner_(batch_.empty() ? Loop{} : batch_.back()),
        rows_(extent(step.m)),
        columns_(extent(step.n)),
        steps_(extent(step.k)) {
    copy_a_ = !is_linear(step.m) || !is_linear(step.k);
    copy_b_ = !is_dense(step.n, &Loop::b) || !is_linear(step.k);
    if (!is_dense(step.n, &Loop::c) || !is_linear(step.m)) {
      out_ = Out::scattered;
    } else if (stores_for(static_cast<double>(extent(step.batch)) * static_cast<double>(rows_) *
                          static_cast<double>(columns_) * sizeof(T)) == kernel::Stores::streaming) {
      const std::int64_t row = step_of(step.m, &Loop::c);
      if (inner_.c == rows_ * columns_ && (rows_ == 1 || row == columns_)) {
        out_ = Out::matrices;
        streams_ = !step.epilogue && kernel_streams(frame.kernels.target.vector_bytes);
        if (streams_) out_ = Out::direct;
      } else if (inner_.c == columns_) {
        out_ = Out::rows;
      }
    }
    if (step.epilogue) {
      epilogue_.emplace(step, frame);
      if (out_ == Out::matrices || out_ == Out::rows) stores_ = kernel::Stores::streaming;
      if (out_ != Out::direct) out_ = Out::epilogue;
    }
    if (copy_a_ || epilogue_ || out_ == Out::scattered) {
      m_a_ = OffsetList(step.m, &Loop::a);
      m_c_ = OffsetList(step.m, &Loop::c);
    }
    if (copy_b_ || epilogue_ || out_ == Out::scattered) {
      n_b_ = OffsetList(step.n, &Loop::b);
      n_c_ = OffsetList(step.n, &Loop::c);
    }
    if (copy_a_ || copy_b_) {
      k_a_ = OffsetList(step.k, &Loop::a);
      k_b_ = OffsetList(step.k, &Loop::b);
    }
    a_size_ = copy_a_ ? rows_ * steps_ : 0;
    b_size_ = copy_b_ ? steps_ * columns_ : 0;
    c_size_ = out_ == Out::direct ? 0 : rows_ * columns_;
  }

  void run() const {
    const std::int64_t batch = extent(batch_);
    const std::int64_t elements = rows_ * steps_ + steps_ * columns_ + rows_ * columns_;
    const std::int64_t task = std::max<std::int64_t>(kSmallTaskElements / elements, 1);
    const std::int64_t bytes = (a_size_ + b_size_ + c_size_) * static_cast<std::int64_t>(sizeof(T));
    const std::int64_t most = most_at_once(bytes);
    const std::int64_t at_once = round_up(bytes == 0 ? task : std::max(task, most), kMatrices);
    const double products =
        static_cast<double>(rows_) * static_cast<double>(columns_) * static_cast<double>(steps_);
    const double work = static_cast<double>(batch) * (products / 4 + static_cast<double>(elements));
    parallel_for((batch + at_once - 1) / at_once, work, [&](std::int64_t tile) {
      const std::int64_t first = tile * at_once, end = std::min(first + at_once, batch);
      if (bytes <= kLargeStageBytes) {
        alignas(64) std::byte stage[kLargeStageBytes];
        run_range(first, end, reinterpret_cast<T*>(stage), bytes == 0 ? end - first : most);
      } else {
        SmallVector<T, 1> stage(static_cast<std::size_t>(a_size_ + b_size_ + c_size_));
        run_range(first, end, stage.data(), 1);
      }
      if (out_ == Out::matrices || out_ == Out::rows || streams_) moves_.fence();
    });
    if (epilogue_) epilogue_->finish();
  }

 private:
  /// What becomes of a product: written where it belongs; element by element; streamed, where the
  /// matrices or equal rows of them are neighbours; left to the epilogue.
  enum class Out : std::uint8_t { direct, scattered, matrices, rows, epilogue };

  /// May the kernel write rows around the caches? Half a line, or one or two vectors; products that
  /// fit a vector share it.
  bool kernel_streams(std::int64_t vector_bytes) const {
    const std::int64_t row_bytes = columns_ * static_cast<std::int64_t>(sizeof(T));
    bool aligned = reinterpret_cast<std::uintptr_t>(c_) % kLineBytes == 0;
    for (const Loop& loop : batch_) aligned = aligned && loop.c % columns_ == 0;
    return aligned && row_bytes >= kLineBytes / 2 && row_bytes <= 2 * vector_bytes &&
           (row_bytes & (row_bytes - 1)) == 0 && rows_ * row_bytes > vector_bytes &&
           rows_ * row_bytes <= kLargestStreamed;
  }

  /// How many matrices of so many staged bytes are done together, where they are staged.
  std::int64_t most_at_once(std::int64_t bytes) const {
    const bool large = !copy_a_ && !copy_b_ && !epilogue_ && bytes >= kLargeMatrix;
    const std::int64_t most =
        (large ? kLargeStageBytes : kSmallStageBytes) / std::max<std::int64_t>(bytes, 1);
    // Parts of a line would be read before they are written.
    return most > kMatrices ? most / kMatrices * kMatrices : std::max<std::int64_t>(most, 1);
  }

  /// At most `most` matrices at a time.
  void run_range(std::int64_t first, std::int64_t end, T* stage, std::int64_t most) const {
    std::optional<EpilogueTask> last;
    if (epilogue_) last.emplace(*epilogue_);
    for (std::int64_t at = first; at < end;) {
      const std::int64_t count = std::min({most, end - at, inner_.size - at % inner_.size});
      T* const c = c_ + offset_at(batch_, at, &Loop::c);
      run_some(a_ + offset_at(batch_, at, &Loop::a), b_ + offset_at(batch_, at, &Loop::b), c, count,
               inner_.size - at % inner_.size - count, stage);
      if (last) finish(*last, c, count, stage + count * (a_size_ + b_size_));
      at += count;
    }
  }

  /// `count` matrices, which `next` more follow.
  void run_some(const T* a, const T* b, T* c, std::int64_t count, std::int64_t next,
                T* stage) const {
    kernel::SmallBlock<T> block{
        .a = a,
        .b = b,
        .c = c,
        .a_entry = inner_.a,
        .a_row = step_of(step_.m, &Loop::a),
        .a_step = step_of(step_.k, &Loop::a),
        .b_entry = inner_.b,
        .b_step = step_of(step_.k, &Loop::b),
        .c_entry = inner_.c,
        .c_row = step_of(step_.m, &Loop::c),
        .rows = rows_,
        .columns = columns_,
        .steps = steps_,
        .count = count,
        .ahead = copy_a_ || copy_b_ || out_ == Out::direct ? 0 : std::min(count, next),
        .stream = streams_,
    };
    if (copy_a_) {
      for (std::int64_t e = 0; e < count; ++e) gather_a(a + e * inner_.a, stage + e * a_size_);
      block.a = stage;
      block.a_entry = a_size_;
      block.a_row = steps_;
      block.a_step = 1;
      stage += count * a_size_;
    }
    if (copy_b_) {
      for (std::int64_t e = 0; e < count; ++e) gather_b(b + e * inner_.b, stage + e * b_size_);
      block.b = stage;
      block.b_entry = b_size_;
      block.b_step = columns_;
      stage += count * b_size_;
    }
    if (out_ != Out::direct) {
      block.c = stage;
      block.c_entry = out_ == Out::rows ? columns_ : c_size_;
      block.c_row = out_ == Out::rows ? count * columns_ : columns_;
    }
    functions_.multiply_small(block);
    switch (out_) {
      case Out::direct:
      case Out::epilogue:
        break;
      case Out::scattered:
        for (std::int64_t e = 0; e < count; ++e) scatter(stage + e * c_size_, c + e * inner_.c);
        break;
      case Out::matrices:
        stream(stage, c, count * c_size_);
        break;
      case Out::rows:
        for (std::int64_t i = 0; i < rows_; ++i) {
          stream(stage + i * count * columns_, c + i * step_of(step_.m, &Loop::c),
                 count * columns_);
        }
        break;
    }
  }

  /// What becomes of some matrices, which lie in the stage unless they are where they belong.
  void finish(EpilogueTask& last, T* c, std::int64_t count, T* staged) const {
    plan::Loops loops{{.size = count, .c = inner_.c}};
    loops.insert(loops.end(), step_.m.begin(), step_.m.end());
    const OffsetList rows(loops, &Loop::c);
    last.apply({.first = c - c_,
                .rows = rows.data(),
                .row_count = count * rows_,
                .columns = is_dense(step_.n, &Loop::c) ? nullptr : n_c_.data(),
                .column_count = columns_,
                .staged = out_ == Out::direct ? nullptr : staged,
                .stride = columns_,
                .stores = stores_});
  }

  void stream(const T* from, T* to, std::int64_t elements) const {
    moves_.stream(from, to, elements * static_cast<std::int64_t>(sizeof(T)));
  }

  void gather_a(const T* from, T* to) const {
    for (const std::int64_t row : m_a_) {
      for (const std::int64_t step : k_a_) *to++ = from[row + step];
    }
  }

  void gather_b(const T* from, T* to) const {
    const std::int64_t column = step_of(step_.n, &Loop::b);
    if (is_linear(step_.n) && is_dense(step_.k, &Loop::b) && column > 0) {
      const auto transpose = sizeof(T) == 4 ? moves_.transpose_4 : moves_.transpose_8;
      transpose(from, column, to, columns_, columns_, steps_, kernel::Stores::cached);
      return;
    }
    for (const std::int64_t step : k_b_) {
      for (const std::int64_t at : n_b_) *to++ = from[step + at];
    }
  }

  void scatter(const T* from, T* to) const {
    for (const std::int64_t row : m_c_) {
      for (const std::int64_t column : n_c_) to[row + column] = *from++;
    }
  }

  const plan::Contract& step_;
  const kernel::MatmulFunctions<T>& functions_;
  const kernel::CopyKernels& moves_;
  const T *const a_, *const b_;
  T* const c_;
  const Loops batch_;
  const Loop inner_;
  const std::int64_t rows_, columns_, steps_;
  Out out_ = Out::direct;
  std::optional<Epilogue> epilogue_;  // applied to some matrices at a time
  kernel::Stores stores_ = kernel::Stores::cached;
  bool copy_a_ = false, copy_b_ = false, streams_ = false;
  std::int64_t a_size_ = 0, b_size_ = 0, c_size_ = 0;  // elements of copies, per matrix
  OffsetList m_a_, m_c_, n_b_, n_c_, k_a_, k_b_;
};

}  // namespace

void run_small(const plan::Contract& step, const Frame& frame) {
  with_float(step, [&]<class T>(T) { SmallProducts<T>(step, frame).run(); });
}

}  // namespace einkern::exec
