// SPDX-License-Identifier: Apache-2.0
// Runs a contraction with a short sum: the rows packed once, boxes of columns packed one after
// another while the box before is multiplied, the result written around the caches.
#include <algorithm>
#include <cstdint>
#include <memory_resource>
#include <optional>

#include "../base/machine.h"
#include "boxes.h"
#include "contract.h"
#include "contract_stream_layout.h"
#include "epilogue.h"
#include "parallel.h"
#include "parts.h"
#include "scratch.h"

namespace einkern::exec {
namespace {

using kernel::StreamBlock;
using kernel::StreamPack;
using kernel::StreamWriter;
using plan::Loop;

template <class T>
class StreamedProduct {
 public:
  StreamedProduct(const plan::Contract& step, const Frame& frame, const StreamLayout& layout,
                  std::pmr::memory_resource* tables)
      : step_(step),
        frame_(frame),
        layout_(layout),
        functions_(frame.kernels.stream.of<T>()),
        lanes_(std::max<std::int64_t>(
            1, frame.kernels.target.vector_bytes / static_cast<int>(sizeof(T)))),
        a_(reinterpret_cast<const T*>(frame.address(step.a))),
        b_(reinterpret_cast<const T*>(frame.address(step.b))),
        c_(reinterpret_cast<T*>(frame.address(step.c))),
        row_count_(extent(step.m)),
        step_count_(extent(step.k)),
        steps_a_(layout.steps, &Loop::a),
        steps_b_(layout.steps, &Loop::b),
        rows_c_(static_cast<std::size_t>(row_count_ + kernel::kStreamSlack), tables) {
    list_offsets(layout.rows, &Loop::c, rows_c_.data());
    stream_ = streams();
    // Shorter runs are better met by a pass of their own.
    constexpr std::int64_t kLeastRun = 32;
    StreamBox box(tables);
    box.set(layout, 0, lanes_);
    if (step.epilogue && box.run >= kLeastRun) epilogue_.emplace(step, frame);
  }

  void run() const {
    if (layout_.far_rows) {
      run_far();
    } else {
      run_near();
    }
    if (epilogue_) {
      epilogue_->finish();
    } else {
      run_epilogue(step_, frame_);
    }
  }

 private:
  static constexpr std::int64_t kMostStaged = StreamWriter<T>::kMostElements;

  /// Boxes of columns, one after another, meet rows that were packed once.
  void run_near() const {
    const ScratchBlock rows = pack_rows();
    const std::int64_t boxes = layout_.boxes();
    const std::int64_t boxes_per_task = std::clamp<std::int64_t>(boxes / 16, 1, 16);
    ScratchPool pool(Scratch(*this, nullptr).bytes);
    parallel_for(divide_up(boxes, boxes_per_task), work(), [&](std::int64_t task) {
      const ScratchPool::Lease lease(pool);
      Scratch scratch(*this, lease.data());
      const std::int64_t first = task * boxes_per_task;
      run_boxes(first, std::min(first + boxes_per_task, boxes), rows.as<const T>(), scratch);
    });
  }

  std::int64_t box_elements() const {
    return (divide_up(layout_.largest_box(), lanes_) * lanes_) * step_count_ + kernel::kStreamSlack;
  }

  struct Scratch {
    T *x[2], *stage[2];
    T** targets;
    std::optional<Epilogue::Task> epilogue;
    std::size_t bytes;

    Scratch(const StreamedProduct& product, std::byte* block) {
      Carver carver(block);
      for (T*& packed : x) packed = carver.take<T>(product.box_elements());
      for (T*& staged : stage) staged = carver.take<T>(kMostStaged + kernel::kStreamSlack);
      targets = carver.take<T*>(kMostStaged / product.lanes_ + kernel::kStreamSlack);
      if (product.epilogue_) {
        auto* const program =
            carver.take<std::byte>(static_cast<std::int64_t>(product.epilogue_->scratch_bytes()));
        if (block != nullptr) epilogue.emplace(*product.epilogue_, program);
      }
      bytes = carver.bytes();
    }
  };

  ScratchBlock pack_rows() const {
    const OffsetList rows(layout_.rows, &Loop::a);
    ScratchBlock memory(static_cast<std::size_t>(row_count_ * step_count_) * sizeof(T));
    T* const packed = memory.as<T>();
    const std::int64_t groups = static_cast<std::int64_t>(layout_.first_row.size()) - 1;
    const std::int64_t groups_per_task = divide_up(groups, 64);
    const double work = static_cast<double>(row_count_) * static_cast<double>(step_count_);
    parallel_for(divide_up(groups, groups_per_task), work, [&](std::int64_t task) {
      const std::int64_t end = std::min((task + 1) * groups_per_task, groups);
      for (std::int64_t g = task * groups_per_task; g < end; ++g) {
        const std::int64_t first = layout_.first_row[static_cast<std::size_t>(g)];
        const std::int64_t last = layout_.first_row[static_cast<std::size_t>(g) + 1];
        T* to = packed + first * step_count_;
        for (const std::int64_t s : steps_a_) {
          for (std::int64_t r = first; r < last; ++r) {
            *to++ = a_[rows[static_cast<std::size_t>(r)] + s];
          }
        }
      }
    });
    return memory;
  }

  StreamPack<T> pack_of(const StreamBox& box, T* packed) const {
    return {.read = layout_.read,
            .rows = box.rows.data(),
            .outer = box.outer.data(),
            .steps = steps_b_.data(),
            .row_count = box.row_count,
            .outer_count = static_cast<std::int64_t>(box.outer.size()),
            .run = box.read_run,
            .positions = box.positions,
            .step_count = step_count_,
            .source = b_ + box.source,
            .packed = packed};
  }

  /// May results go around the caches? They must be many, and come in whole lines.
  bool streams() const {
    const double bytes =
        static_cast<double>(row_count_) * static_cast<double>(extent(step_.n)) * sizeof(T);
    constexpr std::int64_t kLine = 64 / sizeof(T);
    bool whole = reinterpret_cast<std::uintptr_t>(c_) % 64 == 0 &&
                 bytes > static_cast<double>(machine().l2_bytes);
    const auto aligned = [&](const Loop& loop, std::int64_t cut) {
      return loop.c * cut % kLine == 0;
    };
    for (std::size_t l = 1; l < layout_.columns.size(); ++l)
      whole &= aligned(layout_.columns[l], 1);
    whole &=
        aligned(layout_.columns[0], layout_.cut[0]) || layout_.cut[0] == layout_.columns[0].size;
    if (layout_.joined) {
      for (const std::int64_t r : layout_.first_row)
        whole &= rows_c_[static_cast<std::size_t>(r)] % kLine == 0;
    } else {
      for (const Loop& loop : layout_.rows) whole &= aligned(loop, 1);
    }
    return whole;
  }

  double work() const {
    return static_cast<double>(row_count_) * static_cast<double>(extent(step_.n)) *
           static_cast<double>(step_count_) / 4;
  }

  StreamWriter<T> writer_of(const Scratch& scratch) const {
    StreamWriter<T> writer;
    writer.stage[0] = scratch.stage[0];
    writer.stage[1] = scratch.stage[1];
    writer.targets = scratch.targets;
    writer.stream = stream_;
    return writer;
  }

  /// The sums of a box, and what the epilogue makes of them.
  struct Last {
    const StreamedProduct& product;
    Epilogue::Task& epilogue;
    const StreamBox* box = nullptr;

    static void complete(void* self, const kernel::StreamGroup<T>& group) noexcept {
      static_cast<Last*>(self)->apply(group);
    }
    void apply(const kernel::StreamGroup<T>& group) const noexcept {
      for (std::int64_t first = 0; first < group.positions; first += group.run) {
        const std::int64_t at = group.first_position + first;
        const std::int64_t place = box->run_at[static_cast<std::size_t>(at / box->run)];
        epilogue.apply({.first = box->target + place + at % box->run,
                        .rows = product.rows_c_.data() + group.first_row,
                        .row_count = group.rows,
                        .column_count = std::min(group.run, group.positions - first),
                        .staged = group.stage + first / group.run * group.segment,
                        .stride = group.row_stride,
                        .stay = true});
      }
    }
  };
  std::optional<Last> last_of(Scratch& scratch) const {
    if (!epilogue_) return {};
    return Last{*this, *scratch.epilogue};
  }

  /// A box of products without its rows.
  StreamBlock<T> block_of(const StreamBox& box, const T* packed, StreamWriter<T>& writer,
                          std::optional<Last>& last) const {
    if (last) last->box = &box;
    return {.x = packed,
            .c = c_ + box.target,
            .place = {.run_at = box.run_at.data(),
                      .vector_at = box.vector_at.data(),
                      .run = box.run,
                      .joined = layout_.joined,
                      .group_panels = box.group_panels,
                      .row_at = rows_c_.data()},
            .positions = box.positions,
            .step_count = step_count_,
            .first_row = layout_.first_row.data(),
            .groups = static_cast<std::int64_t>(layout_.first_row.size()) - 1,
            .writer = &writer,
            .complete = last ? Last::complete : nullptr,
            .caller = last ? &*last : nullptr};
  }

  /// One box of columns, packed once; tasks take groups of rows.
  void run_far() const {
    const OffsetList rows(layout_.rows, &Loop::a);
    const ScratchBlock memory(static_cast<std::size_t>(box_elements()) * sizeof(T));
    T* const packed = memory.as<T>();
    std::fill(packed, packed + box_elements(), T{0});
    std::pmr::monotonic_buffer_resource tables(kPooled, pool_resource());
    StreamBox box(&tables);
    box.set(layout_, 0, lanes_);
    functions_.pack(pack_of(box, packed));
    const std::int64_t groups = static_cast<std::int64_t>(layout_.first_row.size()) - 1;
    const std::int64_t groups_per_task = divide_up(groups, 64);
    ScratchPool pool(Scratch(*this, nullptr).bytes);
    parallel_for(divide_up(groups, groups_per_task), work(), [&](std::int64_t task) {
      const ScratchPool::Lease lease(pool);
      Scratch scratch(*this, lease.data());
      StreamWriter<T> writer = writer_of(scratch);
      std::optional<Last> last = last_of(scratch);
      StreamBlock<T> block = block_of(box, packed, writer, last);
      block.y = a_;
      block.y_at = rows.data();
      block.y_stride = layout_.rows[0].a;
      block.first_row += task * groups_per_task;
      block.groups = std::min(groups_per_task, groups - task * groups_per_task);
      functions_.multiply(block);
      functions_.finish(writer);
    });
  }

  void run_boxes(std::int64_t first, std::int64_t end, const T* rows, Scratch& scratch) const {
    StreamWriter<T> writer = writer_of(scratch);
    std::optional<Last> last = last_of(scratch);
    // Lanes behind the last position are multiplied, but never written.
    for (T* const packed : scratch.x) {
      if (layout_.largest_box() % lanes_ != 0) std::fill(packed, packed + box_elements(), T{0});
    }
    std::pmr::monotonic_buffer_resource tables(kPooled, pool_resource());
    StreamBox boxes[2]{StreamBox(&tables), StreamBox(&tables)};
    StreamPack<T> packs[2];
    boxes[0].set(layout_, first, lanes_);
    packs[0] = pack_of(boxes[0], scratch.x[0]);
    functions_.pack(packs[0]);
    for (std::int64_t index = first; index < end; ++index) {
      const int now = static_cast<int>((index - first) % 2), then = 1 - now;
      const bool more = index + 1 < end;
      if (more) {
        boxes[then].set(layout_, index + 1, lanes_);
        packs[then] = pack_of(boxes[then], scratch.x[then]);
      }
      StreamBlock<T> block = block_of(boxes[now], packs[now].packed, writer, last);
      block.y = rows;
      block.next = more ? &packs[then] : nullptr;
      functions_.multiply(block);
    }
    functions_.finish(writer);
  }

  const plan::Contract& step_;
  const Frame& frame_;
  const StreamLayout& layout_;
  const kernel::StreamFunctions<T>& functions_;
  const std::int64_t lanes_;
  const T *const a_, *const b_;
  T* const c_;
  const std::int64_t row_count_, step_count_;
  const OffsetList steps_a_, steps_b_;
  bool stream_ = false;
  OffsetTable rows_c_;                // and kStreamSlack more
  std::optional<Epilogue> epilogue_;  // applied group by group
};

}  // namespace

bool run_stream(const plan::Contract& step, const Frame& frame) {
  std::pmr::monotonic_buffer_resource tables(kPooled, pool_resource());
  const auto layout = stream_layout(step, frame.kernels, &tables);
  if (!layout) return false;
  with_float(step, [&]<class T>(T) { StreamedProduct<T>(step, frame, *layout, &tables).run(); });
  return true;
}

}  // namespace einkern::exec
