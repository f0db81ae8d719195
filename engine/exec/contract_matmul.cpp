// SPDX-License-Identifier: Apache-2.0
// Runs a contraction as packed matrix products: boxes of m, n and k packed without transposing, the
// product of every pair written where it belongs.
#include <algorithm>
#include <cstdint>
#include <optional>

#include "../base/error.h"
#include "../base/machine.h"
#include "blocking.h"
#include "boxes.h"
#include "contract.h"
#include "epilogue.h"
#include "matmul_side.h"
#include "on_demand.h"
#include "parallel.h"
#include "parts.h"
#include "scratch.h"

namespace einkern::exec {
namespace {

using kernel::Panels;
using plan::Loop;

// The parts of a sum that are taken side by side.
constexpr std::int64_t kMostParts = 16;
// Sums from here on hide the reading of c before it is written, while a tile that goes around the
// caches is stored twice: through the caches, 512 x 512 x 64 took 0.96 of the time and 3072 x 3072
// under sums of 128 took 0.95, on two AVX-512 cores that write 23 GB/s. Under sums of 16 and 32
// there was nothing between the two.
constexpr std::int64_t kLongSum = 64;

template <class T>
class PackedProduct {
 public:
  PackedProduct(const plan::Contract& step, const Frame& frame)
      : step_(step),
        frame_(frame),
        functions_(frame.kernels.matmul.of<T>()),
        blocking_(step, frame.kernels.target),
        a_{frame.address(step.a), step.a.dtype, &Loop::a, blocking_.m, blocking_.mr, false},
        b_{frame.address(step.b), step.b.dtype, &Loop::b, blocking_.n, blocking_.nr, true},
        c_(reinterpret_cast<T*>(frame.address(step.c))),
        work_(static_cast<double>(extent(step.m)) * static_cast<double>(extent(step.n)) *
              static_cast<double>(extent(step.k)) / 4) {
    const double bytes = static_cast<double>(extent(step.m)) * static_cast<double>(extent(step.n)) *
                         static_cast<double>(blocking_.batch) * sizeof(T);
    stream_ = blocking_.k.count() == 1 && bytes > 4.0 * static_cast<double>(machine().l2_bytes);
    if (step.epilogue && blocking_.cut != Cut::sums) epilogue_.emplace(step, frame);
  }

  void run() {
    if (blocking_.cut == Cut::batch) {
      run_batch();
    } else {
      for (std::int64_t entry = 0; entry < blocking_.batch; ++entry) {
        if (blocking_.cut == Cut::sums) {
          run_sums(entry);
        } else {
          run_shared(entry);
        }
      }
    }
    if (epilogue_) {
      epilogue_->finish();
    } else {
      run_epilogue(step_, frame_);
    }
  }

 private:
  /// What one task works with: arrays cut out of its scratch block, and its part of the epilogue.
  struct Scratch {
    std::int64_t *rows, *columns, *lanes, *steps;
    T *a, *b;
    // Sums that are complete at once, where an epilogue takes them on their way around the caches.
    std::int64_t *staged_rows = nullptr, *staged_columns = nullptr;
    T* staged = nullptr;
    std::optional<Epilogue::Task> epilogue;
    std::size_t bytes;

    Scratch(const PackedProduct& product, std::int64_t a_size, std::int64_t b_size,
            std::byte* block) {
      const Blocking<T>& blocking = product.blocking_;
      Carver carver(block);
      rows = carver.take<std::int64_t>(blocking.m.largest());
      columns = carver.take<std::int64_t>(blocking.n.largest());
      lanes = carver.take<std::int64_t>(std::max(blocking.m.largest(), blocking.n.largest()));
      steps = carver.take<std::int64_t>(blocking.k.largest());
      a = carver.take<T>(a_size);
      b = carver.take<T>(b_size);
      if (product.epilogue_) add(product, carver, block != nullptr);
      bytes = carver.bytes();
    }

   private:
    void add(const PackedProduct& product, Carver& carver, bool real) {
      const auto program =
          carver.take<std::byte>(static_cast<std::int64_t>(product.epilogue_->scratch_bytes()));
      if (real) epilogue.emplace(*product.epilogue_, program);
      if (!product.stream_) return;
      const std::int64_t m = product.blocking_.m.largest(), n = product.blocking_.n.largest();
      staged_rows = carver.take<std::int64_t>(m);
      staged_columns = carver.take<std::int64_t>(n);
      staged = carver.take<T>(m * n);
      for (std::int64_t i = 0; real && i < m; ++i) staged_rows[i] = i * n;
      for (std::int64_t j = 0; real && j < n; ++j) staged_columns[j] = j;
    }
  };

  /// A box of an operand as the kernel reads it.
  struct Box {
    const T* data = nullptr;
    std::int64_t stride = 0;  // 0: packed
  };

  /// A box where it lies.
  Box plain_a(std::int64_t m_box, std::int64_t k_box, std::int64_t offset) const {
    return {reinterpret_cast<const T*>(a_.data) + offset + blocking_.m.first(m_box, &Loop::a) +
                blocking_.k.first(k_box, &Loop::a),
            step_.m[0].a};
  }
  Box plain_b(std::int64_t n_box, std::int64_t k_box, std::int64_t offset) const {
    return {reinterpret_cast<const T*>(b_.data) + offset + blocking_.n.first(n_box, &Loop::b) +
                blocking_.k.first(k_box, &Loop::b),
            step_.k[0].b};
  }
  /// A box of a, packed into scratch memory where it must be.
  Box ready_a(std::int64_t m_box, std::int64_t k_box, std::int64_t offset,
              const Scratch& scratch) const {
    if (!blocking_.pack_a) return plain_a(m_box, k_box, offset);
    a_.pack(functions_, blocking_.k, m_box, k_box, offset, scratch.lanes, scratch.steps, scratch.a);
    return {scratch.a};
  }

  Box ready_b(std::int64_t n_box, std::int64_t k_box, std::int64_t offset,
              const Scratch& scratch) const {
    if (!blocking_.packs_b(n_box)) return plain_b(n_box, k_box, offset);
    b_.pack(functions_, blocking_.k, n_box, k_box, offset, scratch.lanes, scratch.steps, scratch.b);
    return {scratch.b};
  }

  /// c of one pair of boxes; with the last box of the sum, what becomes of it.
  void multiply(std::int64_t m_box, std::int64_t n_box, std::int64_t k_box, Box a, Box b, T* c,
                Scratch& scratch, const T* next_a = nullptr) const {
    const std::int64_t rows = blocking_.m.offsets(m_box, &Loop::c, scratch.rows);
    const std::int64_t columns = blocking_.n.offsets(n_box, &Loop::c, scratch.columns);
    const bool complete = epilogue_ && k_box + 1 == blocking_.k.count();
    const bool staged = complete && stream_;
    const bool around = stream_ && !staged && blocking_.k.size(k_box) < kLongSum;
    functions_.multiply({.a = a.data,
                         .b = b.data,
                         .a_stride = a.stride,
                         .b_stride = b.stride,
                         .next_a = next_a,
                         .c = staged ? scratch.staged : c,
                         .rows = staged ? scratch.staged_rows : scratch.rows,
                         .columns = staged ? scratch.staged_columns : scratch.columns,
                         .row_count = rows,
                         .column_count = columns,
                         .steps = blocking_.k.size(k_box),
                         .update = k_box > 0 ? kernel::Update::add
                                   : around  ? kernel::Update::stream
                                             : kernel::Update::store});
    if (!complete) return;
    scratch.epilogue->apply(
        {.first = c - c_,
         .rows = scratch.rows,
         .row_count = rows,
         .columns = scratch.columns,
         .column_count = columns,
         .staged = staged ? scratch.staged : nullptr,
         .stride = blocking_.n.largest(),
         .stores = staged ? kernel::Stores::streaming : kernel::Stores::cached});
  }

  // Every task takes whole matrices, a few when they are small.
  void run_batch() const {
    const Boxes& k = blocking_.k;
    const std::int64_t b_box = divide_up(b_.largest(k), 16) * 16;
    const auto scratch_of = [&](std::byte* block) {
      return Scratch(*this, a_.largest(k), blocking_.pack_b ? b_box * blocking_.n.count() : 0,
                     block);
    };
    ScratchPool pool(scratch_of(nullptr).bytes);
    const std::int64_t entries = std::clamp<std::int64_t>(
        static_cast<std::int64_t>(kTaskFlops / 8 / work_), 1, divide_up(blocking_.batch, kTasks));
    parallel_for(divide_up(blocking_.batch, entries), work_ * static_cast<double>(blocking_.batch),
                 [&](std::int64_t task) {
                   const ScratchPool::Lease lease(pool);
                   Scratch scratch = scratch_of(lease.data());
                   const std::int64_t end = std::min((task + 1) * entries, blocking_.batch);
                   for (std::int64_t entry = task * entries; entry < end; ++entry) {
                     for (std::int64_t k_box = 0; k_box < k.count(); ++k_box) {
                       multiply_entry(entry, k_box, b_box, scratch);
                     }
                   }
                 });
  }

  /// What is read of a after a box of an entry, where that is rows without gaps. No prefetcher sees
  /// rows of 2 KiB coming: fetched a box ahead, 512 x 64 x 512 took 0.90 of the time (AVX-512).
  const T* next_a(std::int64_t m_box, std::int64_t k_box, std::int64_t entry) const {
    if (blocking_.pack_a || step_.m[0].a != blocking_.k.size(k_box)) return nullptr;
    if (++m_box == blocking_.m.count()) {
      m_box = 0;
      if (++entry == blocking_.batch) return nullptr;
    }
    return plain_a(m_box, k_box, offset_at(step_.batch, entry, &Loop::a)).data;
  }

  // A box of a is used for all columns as soon as it is packed, while it is near.
  void multiply_entry(std::int64_t entry, std::int64_t k_box, std::int64_t b_box,
                      Scratch& scratch) const {
    const Boxes &m = blocking_.m, &n = blocking_.n, &k = blocking_.k;
    const std::int64_t a_offset = offset_at(step_.batch, entry, &Loop::a);
    const std::int64_t b_offset = offset_at(step_.batch, entry, &Loop::b);
    T* const c = c_ + offset_at(step_.batch, entry, &Loop::c);
    for (std::int64_t j = 0; blocking_.pack_b && j < n.count(); ++j) {
      b_.pack(functions_, k, j, k_box, b_offset, scratch.lanes, scratch.steps,
              scratch.b + j * b_box);
    }
    for (std::int64_t i = 0; i < m.count(); ++i) {
      const Box a = ready_a(i, k_box, a_offset, scratch);
      for (std::int64_t j = 0; j < n.count(); ++j) {
        const Box b = blocking_.pack_b ? Box{scratch.b + j * b_box} : plain_b(j, k_box, b_offset);
        const bool last = j + 1 == n.count();
        multiply(i, j, k_box, a, b, c, scratch, last ? next_a(i, k_box, entry) : nullptr);
      }
    }
  }

  // One matrix: the operand of the shorter side is packed once for all tasks, in rounds that bound
  // its memory.
  void run_shared(std::int64_t entry) const {
    const bool by_columns = blocking_.cut == Cut::columns;
    const Side<T>& shared = by_columns ? a_ : b_;
    const Side<T>& own = by_columns ? b_ : a_;
    const Boxes& k = blocking_.k;
    const std::int64_t shared_offset = offset_at(step_.batch, entry, shared.stride);
    const std::int64_t own_offset = offset_at(step_.batch, entry, own.stride);
    T* const c = c_ + offset_at(step_.batch, entry, &Loop::c);

    const std::int64_t box_size = divide_up(shared.largest(k), 16) * 16;
    const std::int64_t boxes_at_once =
        std::max<std::int64_t>(1, kSharedBytes / (box_size * static_cast<std::int64_t>(sizeof(T))));
    const std::int64_t boxes = std::min(shared.boxes.count(), boxes_at_once);
    const std::int64_t k_boxes = std::clamp<std::int64_t>(boxes_at_once / boxes, 1, k.count());
    const bool pack_shared = by_columns ? blocking_.pack_a : blocking_.pack_b;
    // What fits in a core's L2 each thread packs for itself: a line that another core has just
    // written takes as long to come as 200 elements to be packed.
    const std::int64_t copy_size = boxes * k_boxes * box_size;
    const bool own_copies =
        copy_size * static_cast<std::int64_t>(sizeof(T)) <= machine().l2_bytes / 4;
    const std::int64_t copies = own_copies ? concurrency() : 1;
    std::optional<ScratchBlock> memory;
    if (pack_shared) memory.emplace(static_cast<std::size_t>(copies * copy_size) * sizeof(T));
    T* const packed = memory ? memory->as<T>() : nullptr;
    const auto scratch_of = [&](std::byte* block) {
      const std::int64_t own_size = own.largest(k);
      return Scratch(*this, by_columns ? 0 : own_size, by_columns ? own_size : 0, block);
    };
    ScratchPool pool(scratch_of(nullptr).bytes);
    OnDemand packing(copies * boxes * k_boxes);

    for (std::int64_t first = 0; first < shared.boxes.count(); first += boxes) {
      const std::int64_t round = std::min(boxes, shared.boxes.count() - first);
      for (std::int64_t k_first = 0; k_first < k.count(); k_first += k_boxes) {
        const std::int64_t k_round = std::min(k_boxes, k.count() - k_first);
        packing.clear();
        parallel_for(own.boxes.count(), work_, [&](std::int64_t box) {
          const ScratchPool::Lease lease(pool);
          Scratch scratch = scratch_of(lease.data());
          // A loop that runs on the caller's thread alone keeps the number it has there.
          const std::int64_t first_slot = thread_number() % copies * boxes * k_boxes;
          // Tasks that start together begin with different boxes, so that each packs some.
          const std::int64_t start = box * round / own.boxes.count();
          for (std::int64_t k_at = k_first; k_at < k_first + k_round; ++k_at) {
            const Box own_box = by_columns ? ready_b(box, k_at, own_offset, scratch)
                                           : ready_a(box, k_at, own_offset, scratch);
            for (std::int64_t i = 0; i < round; ++i) {
              const std::int64_t at = (start + i) % round, other = first + at;
              Box shared_box;
              if (pack_shared) {
                const std::int64_t slot = first_slot + at * k_boxes + k_at - k_first;
                T* const theirs = packed + slot * box_size;
                packing.once(slot, [&] {
                  shared.pack(functions_, k, other, k_at, shared_offset, scratch.lanes,
                              scratch.steps, theirs);
                });
                shared_box = {theirs};
              } else {
                shared_box = by_columns ? plain_a(other, k_at, shared_offset)
                                        : plain_b(other, k_at, shared_offset);
              }
              if (by_columns) {
                multiply(other, box, k_at, shared_box, own_box, c, scratch);
              } else {
                multiply(box, other, k_at, own_box, shared_box, c, scratch);
              }
            }
          }
        });
      }
    }
  }

  // One small matrix under a long sum: parts of the sum side by side, joined in order.
  void run_sums(std::int64_t entry) const {
    const Boxes& k = blocking_.k;
    EINKERN_CHECK(blocking_.m.count() == 1 && blocking_.n.count() == 1);
    const std::int64_t rows = blocking_.m.largest(), columns = blocking_.n.largest();
    const std::int64_t at_once = divide_up(k.count(), kMostParts);
    const std::int64_t parts = divide_up(k.count(), at_once);
    const ScratchBlock memory(static_cast<std::size_t>(parts * rows * columns) * sizeof(T));
    T* const sums = memory.as<T>();
    const auto scratch_of = [&](std::byte* block) {
      return Scratch(*this, a_.largest(k), b_.largest(k), block);
    };
    ScratchPool pool(scratch_of(nullptr).bytes);
    parallel_for(parts, work_, [&](std::int64_t part) {
      const ScratchPool::Lease lease(pool);
      Scratch scratch = scratch_of(lease.data());
      for (std::int64_t i = 0; i < rows; ++i) scratch.rows[i] = i * columns;
      for (std::int64_t j = 0; j < columns; ++j) scratch.columns[j] = j;
      const std::int64_t first = part * at_once, end = std::min(first + at_once, k.count());
      for (std::int64_t k_box = first; k_box < end; ++k_box) {
        a_.pack(functions_, k, 0, k_box, offset_at(step_.batch, entry, &Loop::a), scratch.lanes,
                scratch.steps, scratch.a);
        b_.pack(functions_, k, 0, k_box, offset_at(step_.batch, entry, &Loop::b), scratch.lanes,
                scratch.steps, scratch.b);
        functions_.multiply(
            {.a = scratch.a,
             .b = scratch.b,
             .c = sums + part * rows * columns,
             .rows = scratch.rows,
             .columns = scratch.columns,
             .row_count = rows,
             .column_count = columns,
             .steps = k.size(k_box),
             .update = k_box == first ? kernel::Update::store : kernel::Update::add});
      }
    });
    T* const c = c_ + offset_at(step_.batch, entry, &Loop::c);
    for (std::int64_t i = 0; i < rows; ++i) {
      T* const row = sums + i * columns;
      for (std::int64_t part = 1; part < parts; ++part) {
        const T* const more = row + part * rows * columns;
        for (std::int64_t j = 0; j < columns; ++j) row[j] += more[j];
      }
      T* const to = c + offset_at(step_.m, i, &Loop::c);
      for (std::int64_t j = 0; j < columns; ++j) to[offset_at(step_.n, j, &Loop::c)] = row[j];
    }
  }

  const plan::Contract& step_;
  const Frame& frame_;
  const kernel::MatmulFunctions<T>& functions_;
  const Blocking<T> blocking_;
  const Side<T> a_, b_;
  T* const c_;
  const double work_;
  bool stream_ = false;
  std::optional<Epilogue> epilogue_;  // applied box by box
};

}  // namespace

void run_matmul(const plan::Contract& step, const Frame& frame) {
  if (step.c.dtype == DType::f32) {
    PackedProduct<float>(step, frame).run();
  } else {
    PackedProduct<double>(step, frame).run();
  }
}

}  // namespace einkern::exec
