// SPDX-License-Identifier: Apache-2.0
// Runs contractions of a few rows (or columns) with a large operand that is read once, where it
// lies, in order of address. Packing it would take longer than the products: in a layer of 4096 x
// 4096 over 8 rows, packed matrices reach 0.50 of the roofline.
#include <algorithm>
#include <cstdint>

#include "../plan/skinny.h"
#include "boxes.h"
#include "contract.h"
#include "epilogue.h"
#include "on_demand.h"
#include "parallel.h"
#include "parts.h"
#include "scratch.h"

namespace einkern::exec {
namespace {

using kernel::Panels;
using plan::Loop;
using plan::Loops;

// Bytes of a row that dots take at once. Memory likes long runs, the caches short ones: 12 rows
// over 4096 x 4096 took 2.7 ms, 3.2 in runs of 4 KiB; for 32 and more it made no difference.
constexpr std::int64_t kRunBytes = 16384;
// Tasks: enough for threads to end together.
constexpr std::int64_t kSkinnyTasks = 16;
// Rows of the large operand in a task of dots, and columns in one of sums.
constexpr std::int64_t kLeastRows = 16, kLeastColumns = 128, kMostColumns = 1024;

template <class T>
class SkinnyProduct {
 public:
  SkinnyProduct(const plan::Contract& step, const Frame& frame)
      : step_(step),
        frame_(frame),
        functions_(frame.kernels.skinny.of<T>()),
        pack_(frame.kernels.matmul.of<T>().pack),
        few_rows_(plan::few_rows(step)),
        few_(few_rows_ ? step.m : step.n),
        many_(few_rows_ ? step.n : step.m),
        few_operand_(few_rows_ ? step.a : step.b),
        many_operand_(few_rows_ ? step.b : step.a),
        of_few_(few_rows_ ? &Loop::a : &Loop::b),
        of_many_(few_rows_ ? &Loop::b : &Loop::a),
        few_data_(frame.address(few_operand_)),
        many_data_(frame.address(many_operand_)),
        c_(reinterpret_cast<T*>(frame.address(step.c))),
        batch_(extent(step.batch)),
        few_count_(extent(few_)),
        steps_(extent(step.k)) {}

  bool run() {
    const plan::SkinnyForm form = plan::skinny_form(step_);
    if (form == plan::SkinnyForm::none) return false;
    by_dots_ = form == plan::SkinnyForm::dots;
    const OffsetList few_a(few_, of_few_), few_c(few_, &Loop::c), steps_a(step_.k, of_few_);
    const OffsetList steps_b(by_dots_ ? Loops{} : step_.k, of_many_);
    few_at_ = few_a.data();
    few_c_ = few_c.data();
    few_steps_at_ = steps_a.data();
    many_steps_at_ = steps_b.data();
    copy_size_ = few_count_ * round_up(steps_, functions_.lanes);
    const std::int64_t bytes = batch_ * copy_size_ * static_cast<std::int64_t>(sizeof(T));
    // As in packed products: what fits, each thread packs for itself.
    const std::int64_t copies = bytes <= machine().l2_bytes / 4 ? concurrency() : 1;
    const ScratchBlock memory(static_cast<std::size_t>(copies * bytes));
    OnDemand packing(copies * batch_);
    const Boxes boxes = boxes_of_many();
    const double work = static_cast<double>(batch_ * few_count_) *
                        static_cast<double>(extent(many_)) * static_cast<double>(steps_) / 4;
    parallel_for(batch_ * boxes.count(), work, [&](std::int64_t task) {
      const std::int64_t entry = task / boxes.count();
      const std::int64_t slot = thread_number() % copies * batch_ + entry;
      T* const few = memory.as<T>() + slot * copy_size_;
      packing.once(slot, [&] { pack(entry, few); });
      const ScratchBlock lists(static_cast<std::size_t>(2 * boxes.largest()) *
                               sizeof(std::int64_t));
      run_box(boxes, task % boxes.count(), entry, few, lists.as<std::int64_t>());
    });
    run_epilogue(step_, frame_);
    return true;
  }

 private:
  Boxes boxes_of_many() const {
    const std::int64_t tasks = divide_up(kSkinnyTasks, batch_), count = extent(many_);
    const std::int64_t share = divide_up(count, tasks);
    const std::int64_t target =
        by_dots_ ? std::max(kLeastRows, share) : std::clamp(share, kLeastColumns, kMostColumns);
    constexpr std::int64_t kLine = 64 / sizeof(T);
    return {many_, {}, {.line = kLine, .target = target, .multiple = by_dots_ ? 4 : 2 * kLine}};
  }

  void pack(std::int64_t entry, T* few) const {
    const kernel::Offsets rows{few_at_, few_count_, unit_of(few_, few_count_)};
    const kernel::Offsets steps{few_steps_at_, steps_, unit_of(step_.k, steps_)};
    const std::int64_t offset = offset_at(step_.batch, entry, of_few_);
    // Dots want steps in the lanes: they are what lies side by side in a panel then.
    pack_({.source = few_data_ + offset * static_cast<std::int64_t>(size_of(few_operand_.dtype)),
           .lanes = by_dots_ ? steps : rows,
           .steps = by_dots_ ? rows : steps,
           .panels = by_dots_ ? Panels{steps_, functions_.lanes, true}
                              : Panels{few_count_, functions_.sum_rows},
           .packed = few,
           .dtype = few_operand_.dtype});
  }

  /// Where the unit stride lies among `count` positions of one loop; nowhere among several.
  kernel::UnitRun unit_of(const Loops& loops, std::int64_t count) const {
    if (loops.size() != 1 || loops[0].*of_few_ != 1) return {};
    return {.size = count, .inner = 1};
  }

  void run_box(const Boxes& boxes, std::int64_t box, std::int64_t entry, const T* few,
               std::int64_t* lists) const {
    T* const c = c_ + offset_at(step_.batch, entry, &Loop::c);
    const std::byte* const many =
        many_data_ + offset_at(step_.batch, entry, of_many_) *
                         static_cast<std::int64_t>(size_of(many_operand_.dtype));
    std::int64_t* const many_c = lists + boxes.largest();
    const std::int64_t count = boxes.offsets(box, of_many_, lists);
    boxes.offsets(box, &Loop::c, many_c);
    if (by_dots_) {
      const std::int64_t run =
          round_up(kRunBytes / static_cast<std::int64_t>(sizeof(T)), functions_.lanes);
      for (std::int64_t first = 0; first < steps_; first += run) {
        functions_.dots({.few = few,
                         .few_count = few_count_,
                         .many = {many, many_operand_.dtype, lists},
                         .many_count = count,
                         .first = first,
                         .steps = std::min(run, steps_ - first),
                         .c = c,
                         .few_at = few_c_,
                         .many_at = many_c,
                         .add = first > 0});
      }
      return;
    }
    const std::byte* const columns =
        many + lists[0] * static_cast<std::int64_t>(size_of(many_operand_.dtype));
    for (std::int64_t first = 0; first < steps_; first += kernel::kSkinnySteps) {
      const std::int64_t steps = std::min(kernel::kSkinnySteps, steps_ - first);
      functions_.sums({.few = few,
                       .few_count = few_count_,
                       .few_steps = steps_,
                       .many = {columns, many_operand_.dtype, many_steps_at_ + first},
                       .columns = count,
                       .first = first,
                       .steps = steps,
                       .c = c + many_c[0],
                       .few_at = few_c_,
                       .add = first > 0,
                       .ahead = std::min(kernel::kSkinnySteps, steps_ - first - steps)});
    }
  }

  const plan::Contract& step_;
  const Frame& frame_;
  const kernel::SkinnyFunctions<T>& functions_;
  void (*const pack_)(const kernel::PackBlock<T>&) noexcept;
  const bool few_rows_;  // few is a, many b; otherwise the other way round
  const Loops &few_, &many_;
  const plan::Operand &few_operand_, &many_operand_;
  const StrideOf of_few_, of_many_;
  const std::byte *const few_data_, *const many_data_;
  T* const c_;
  const std::int64_t batch_, few_count_, steps_;
  bool by_dots_ = false;  // rows of many run along the sums; otherwise along c
  std::int64_t copy_size_ = 0;
  const std::int64_t *few_at_ = nullptr, *few_c_ = nullptr, *few_steps_at_ = nullptr;
  const std::int64_t* many_steps_at_ = nullptr;
};

}  // namespace

bool run_skinny(const plan::Contract& step, const Frame& frame) {
  bool done = false;
  with_float(step, [&]<class T>(T) { done = SkinnyProduct<T>(step, frame).run(); });
  return done;
}

}  // namespace einkern::exec
