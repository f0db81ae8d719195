// SPDX-License-Identifier: Apache-2.0
// The step that folds axes: along runs or down columns, in pieces and trees that shapes alone
// decide.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <bit>
#include <cstring>

#include "../base/error.h"
#include "frame.h"
#include "parallel.h"
#include "parts.h"
#include "scratch.h"
#include "space.h"

namespace einkern::exec {
namespace {

using kernel::Int128;

constexpr std::int64_t kColumns = 1024;  // columns folded at a time: their partials stay in L1
constexpr std::int64_t kPieceElements = 65536;   // elements of one piece of a long fold
constexpr std::int64_t kShortRun = 128;          // runs up to here are turned into columns
constexpr std::int64_t kTurnedBytes = 16 << 10;  // that many at a time as fit a part of L1
constexpr std::int64_t kTurnedUnit = 16;         // a multiple of this: lines of the columns
constexpr std::int64_t kManyUnits = 64;          // with so many results no fold is cut into pieces

/// Joins blocks of partials pairwise as they come, at most `blocks` of them: level i holds the fold
/// of 2^i blocks.
class Tree {
 public:
  Tree(const kernel::FoldKernels& fold, std::int64_t width, std::size_t partial,
       std::int64_t blocks)
      : fold_(fold),
        width_(width),
        bytes_(static_cast<std::size_t>(width) * partial),
        memory_((std::bit_width(static_cast<std::uint64_t>(blocks)) + 1) * whole_lines(bytes_)) {
    Carver carver(memory_.data());
    const auto size = static_cast<std::int64_t>(bytes_);
    for (std::size_t level = 0; blocks >> level != 0; ++level) {
      levels_[level] = carver.take<std::byte>(size);
    }
    spare_ = carver.take<std::byte>(size);
  }

  /// Where the next block is to be written, before `push`.
  std::byte* next() const { return spare_; }
  void push(std::int64_t width) {
    std::size_t level = 0;
    for (std::uint64_t rest = count_; (rest & 1) != 0; rest >>= 1, ++level) {
      fold_.join(levels_[level], spare_, width);
      std::swap(levels_[level], spare_);
    }
    std::swap(levels_[level], spare_);
    ++count_;
  }
  /// The fold of everything pushed, at least one block, to `out`; the tree is empty afterwards.
  void finish(std::int64_t width, std::byte* out) {
    const std::size_t bytes =
        bytes_ / static_cast<std::size_t>(width_) * static_cast<std::size_t>(width);
    std::byte* total = nullptr;
    std::size_t level = 0;
    for (std::uint64_t rest = count_; rest != 0; rest >>= 1, ++level) {
      if ((rest & 1) == 0) continue;
      if (total != nullptr) fold_.join(levels_[level], total, width);
      total = levels_[level];
    }
    std::memcpy(out, total, bytes);
    count_ = 0;
  }

 private:
  static std::size_t whole_lines(std::size_t bytes) { return (bytes + 63) / 64 * 64; }

  const kernel::FoldKernels& fold_;
  std::int64_t width_;
  std::size_t bytes_;
  ScratchBlock memory_;
  std::byte* spare_;
  std::array<std::byte*, 64> levels_{};
  std::uint64_t count_ = 0;
};

/// Turns loops that run backwards round, moving the first element, then orders and fuses them.
Space loops_of(const plan::Loops& loops, std::int64_t& in_first, std::int64_t& out_first) {
  Dims sizes, in, out;
  for (plan::Loop loop : loops) {
    if (loop.a < 0) {
      in_first += (loop.size - 1) * loop.a;
      out_first += (loop.size - 1) * loop.c;
      loop.a = -loop.a;
      loop.c = -loop.c;
    }
    sizes.push_back(loop.size);
    in.push_back(loop.a);
    out.push_back(loop.c);
  }
  return make_space(sizes, {&in, &out});
}

/// Which way kernels walk: along runs of one result each, down columns of neighbouring results, or
/// down the columns that short runs become when they are transposed. Where runs are short and there
/// are other axes to fold, those come first: down columns that are the elements of the runs.
enum class Way : std::uint8_t { along, down, turned };

/// One fold of a tensor. A unit is what one call of a kernel folds: a single result, or
/// neighbouring ones; a unit's reduced positions may be cut into pieces.
class Folding {
 public:
  Folding(const plan::Reduce& step, const Frame& frame)
      : fold_(frame.kernels.reduce.of(static_cast<kernel::Fold>(step.op), step.out.dtype)),
        moves_(frame.kernels.copy),
        dtype_(step.out.dtype),
        element_(static_cast<std::int64_t>(size_of(dtype_))),
        partial_(kernel::partial_size(dtype_)) {
    std::int64_t in_first = 0, out_first = 0;
    kept_ = loops_of(step.kept, in_first, out_first);
    reduced_ = loops_of(step.reduced, in_first, out_first);
    in_ = frame.address(step.in) + in_first * element_;
    out_ = frame.address(step.out) + out_first * element_;

    const std::size_t kept_rank = kept_.rank();
    const bool run_dense = reduced_.rank() > 0 && reduced_.strides[0].back() == 1;
    if (kept_rank > 0 && kept_.strides[0].back() == 1 && !run_dense) {
      way_ = Way::down;
    } else if (kept_rank > 0 && run_dense && reduced_.rank() == 1 &&
               reduced_.sizes.back() <= kShortRun) {
      way_ = Way::turned;
    }
    if (way_ == Way::along && run_dense && reduced_.rank() > 1 &&
        reduced_.sizes.back() <= kColumns) {
      way_ = Way::down;
      lanes_ = reduced_.sizes.back();
      reduced_.drop_last();
    }
    const bool single = way_ == Way::along || kept_rank == 0;
    outer_ = single ? kept_rank : kept_rank - 1;
    columns_ = single ? 1 : kept_.sizes.back();
    column_step_ = single ? 0 : kept_.strides[1].back();
    in_step_ = single ? 0 : kept_.strides[0].back();
    const std::int64_t inner = reduced_.rank() == 0 ? 1 : reduced_.sizes.back();
    const std::int64_t turned = kTurnedBytes / (inner * element_) / kTurnedUnit * kTurnedUnit;
    width_ = std::min(columns_, way_ == Way::turned ? std::max(turned, kTurnedUnit)
                                                    : std::max(kColumns / lanes_, std::int64_t{1}));
    column_tiles_ = divide_up(columns_, width_);
    inner_ = inner;
    inner_step_ = reduced_.rank() == 0 ? 0 : reduced_.strides[0].back();
    count_ = reduced_.size();
    units_ = kept_.size() / columns_ * column_tiles_;
    piece_ = count_;
    if (units_ < kManyUnits) {
      piece_ = std::min(count_, std::max(kernel::kColumnRows, kPieceElements / (width_ * lanes_)));
    }
  }

  /// False when some integer result does not fit.
  bool run() {
    const std::int64_t pieces = divide_up(count_, piece_);
    const double work = static_cast<double>(count_) * static_cast<double>(lanes_) *
                        static_cast<double>(kept_.size());
    std::atomic<bool> fits = true;
    if (pieces == 1) {
      const std::int64_t group =
          std::max<std::int64_t>(1, kPieceElements / (count_ * width_ * lanes_));
      parallel_for(divide_up(units_, group), work, [&](std::int64_t task) {
        Tree tree(fold_, width_ * lanes_, partial_, piece_);
        const ScratchBlock total(bytes_of(1));
        for (std::int64_t u = task * group; u < std::min(units_, (task + 1) * group); ++u) {
          fold_piece(u, 0, count_, tree, total.data());
          if (!store(u, total.data())) fits = false;
        }
      });
      return fits;
    }
    const ScratchBlock partials(bytes_of(units_ * pieces));
    parallel_for(units_ * pieces, work, [&](std::int64_t task) {
      Tree tree(fold_, width_ * lanes_, partial_, piece_);
      const std::int64_t first = task % pieces * piece_;
      fold_piece(task / pieces, first, std::min(count_, first + piece_), tree,
                 partials.data() + bytes_of(task));
    });
    parallel_for(units_, static_cast<double>(units_ * pieces * width_ * lanes_),
                 [&](std::int64_t unit) {
                   const auto at = [&](std::int64_t piece) {
                     return partials.data() + bytes_of(unit * pieces + piece);
                   };
                   for (std::int64_t step = 1; step < pieces; step *= 2) {
                     for (std::int64_t piece = 0; piece + step < pieces; piece += 2 * step) {
                       fold_.join(at(piece), at(piece + step), width_at(unit) * lanes_);
                     }
                   }
                   if (!store(unit, at(0))) fits = false;
                 });
    return fits;
  }

 private:
  std::size_t bytes_of(std::int64_t blocks) const {
    return static_cast<std::size_t>(blocks * width_ * lanes_) * partial_;
  }
  std::int64_t first_column(std::int64_t unit) const { return unit % column_tiles_ * width_; }
  std::int64_t width_at(std::int64_t unit) const {
    return std::min(width_, columns_ - first_column(unit));
  }

  /// Partials of the reduced positions first..last-1 of a unit, to `out`.
  void fold_piece(std::int64_t unit, std::int64_t first, std::int64_t last, Tree& tree,
                  std::byte* out) const {
    const std::int64_t width = width_at(unit);
    const std::byte* const base =
        in_ +
        (kept_.offset(0, unit / column_tiles_, outer_) + first_column(unit) * in_step_) * element_;
    if (way_ == Way::turned) {
      const bool more = unit % column_tiles_ + 1 < column_tiles_;
      return fold_turned(base, width, more ? width_at(unit + 1) : 0, out);
    }
    if (way_ == Way::along && reduced_.rank() <= 1) {
      fold_.row(base + first * inner_step_ * element_, last - first, inner_step_, out);
      return;
    }
    const std::size_t outer_axes = reduced_.rank() == 0 ? 0 : reduced_.rank() - 1;
    for (std::int64_t at = first; at < last;) {
      const std::int64_t position = at % inner_;
      std::int64_t count = std::min(inner_ - position, last - at);
      if (way_ == Way::down) count = std::min(count, kernel::kColumnRows);
      const std::byte* const from =
          base + (reduced_.offset(0, at / inner_, outer_axes) + position * inner_step_) * element_;
      const bool only = at == first && at + count == last;
      std::byte* const to = only ? out : tree.next();
      if (way_ == Way::down) {
        fold_down(from, count, width, to);
      } else {
        fold_.row(from, count, inner_step_, to);
      }
      if (only) return;
      tree.push(width * lanes_);
      at += count;
    }
    tree.finish(width * lanes_, out);
  }

  /// Partials of `rows` rows of `width` columns of `lanes_` elements each.
  void fold_down(const std::byte* from, std::int64_t rows, std::int64_t width,
                 std::byte* out) const {
    if (in_step_ == lanes_ || width == 1) {
      fold_.columns(from, rows, inner_step_, width * lanes_, out);
      return;
    }
    for (std::int64_t j = 0; j < width; ++j) {
      fold_.columns(from + j * in_step_ * element_, rows, inner_step_, lanes_,
                    out + static_cast<std::size_t>(j * lanes_) * partial_);
    }
  }

  /// Folds the lanes of every column in place, halves onto halves, and makes columns neighbours.
  void fold_lanes(std::byte* partials, std::int64_t width) const {
    for (std::int64_t j = 0; j < width; ++j) {
      std::byte* const lanes = partials + static_cast<std::size_t>(j * lanes_) * partial_;
      for (std::int64_t left = lanes_; left > 1;) {
        const std::int64_t half = left / 2;
        fold_.join(lanes, lanes + static_cast<std::size_t>(left - half) * partial_, half);
        left -= half;
      }
      std::memmove(partials + static_cast<std::size_t>(j) * partial_, lanes, partial_);
    }
  }

  /// Partials of `width` short runs, while the `next_width` runs behind them are asked for in order
  /// of address, which tiles of columns are not read in: ab->a of 262144 x 64 takes 3.9 ms on two
  /// cores of an EPYC 9004, 5.7 ms without.
  void fold_turned(const std::byte* from, std::int64_t width, std::int64_t next_width,
                   std::byte* out) const {
    const auto transpose = element_ == 4 ? moves_.transpose_4 : moves_.transpose_8;
    alignas(64) std::byte columns[kTurnedBytes];
    const std::int64_t step = in_step_ * element_;
    for (std::int64_t run = 0; run < width; run += kTurnedUnit) {
      for (std::int64_t r = run; r < std::min(run + kTurnedUnit, next_width); ++r) {
        fetch_run(from + (width + r) * step);
      }
      transpose(from + run * step, in_step_, columns + run * element_, width,
                std::min(kTurnedUnit, width - run), count_, kernel::Stores::cached);
    }
    fold_.columns(columns, count_, width, width, out);
  }
  void fetch_run(const std::byte* run) const {
    constexpr int kRead = 0, kSecondLevel = 2;
    for (std::int64_t at = 0; at < count_ * element_; at += kLineBytes) {
      __builtin_prefetch(run + at, kRead, kSecondLevel);
    }
  }

  /// Partials of a unit to where its results belong.
  bool store(std::int64_t unit, std::byte* partials) const {
    if (lanes_ > 1) fold_lanes(partials, width_at(unit));
    std::byte* const to =
        out_ + (kept_.offset(1, unit / column_tiles_, outer_) + first_column(unit) * column_step_) *
                   element_;
    const std::int64_t width = width_at(unit);
    if (dtype_ == DType::f32) return store_as<float, float>(partials, to, width);
    if (dtype_ == DType::f64) return store_as<double, double>(partials, to, width);
    return store_as<Int128, std::int64_t>(partials, to, width);
  }
  template <class Partial, class T>
  bool store_as(const std::byte* partials, std::byte* out, std::int64_t width) const {
    const auto* from = reinterpret_cast<const Partial*>(partials);
    auto* to = reinterpret_cast<T*>(out);
    bool fits = true;
    for (std::int64_t j = 0; j < width; ++j) {
      const T value = static_cast<T>(from[j]);
      if constexpr (sizeof(Partial) > sizeof(T)) fits &= value == from[j];
      to[j * column_step_] = value;
    }
    return fits;
  }

  const kernel::FoldKernels& fold_;
  const kernel::CopyKernels& moves_;
  DType dtype_;
  std::int64_t element_;
  std::size_t partial_;
  Space kept_, reduced_;  // view 0: in, view 1: out
  const std::byte* in_;
  std::byte* out_;
  Way way_ = Way::along;
  std::size_t outer_;                   // kept axes outside a unit
  std::int64_t lanes_ = 1;              // elements of a run that are columns of their own
  std::int64_t in_step_ = 0;            // from a column to the next
  std::int64_t columns_, column_step_;  // of the kept axis inside a unit
  std::int64_t width_, column_tiles_;   // its tiles
  std::int64_t inner_, inner_step_;     // innermost reduced axis
  std::int64_t count_, piece_;          // reduced positions of a unit, and of a piece
  std::int64_t units_;
};

bool is_empty(const plan::Loops& loops) {
  return std::any_of(loops.begin(), loops.end(), [](const plan::Loop& l) { return l.size == 0; });
}

}  // namespace

void run(const plan::Reduce& step, const Frame& frame) {
  EINKERN_CHECK(step.in.dtype == step.out.dtype);
  EINKERN_CHECK(compute_dtype(step.out.dtype) == step.out.dtype);
  if (is_empty(step.kept)) return;
  if (is_empty(step.reduced)) {
    if (step.op == plan::ReduceOp::max || step.op == plan::ReduceOp::min) {
      fail<ValueError>(fmt::format("{}: no elements to reduce", plan::name_of(step.op)));
    }
    run(plan::Fill{.out = step.out, .value = step.op == plan::ReduceOp::prod ? 1.0 : 0.0}, frame);
    return;
  }
  if (!Folding(step, frame).run()) {
    fail<ValueError>(fmt::format("{}: integer overflow", plan::name_of(step.op)));
  }
}

}  // namespace einkern::exec
