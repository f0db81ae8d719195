// SPDX-License-Identifier: Apache-2.0
// Keys and values as the fold reads them: where they lie, or copied once per batch position.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "../plan/attend_cut.h"
#include "../tensor/storage.h"
#include "attend_fold.h"
#include "frame.h"
#include "key_lists.h"

namespace einkern::exec {

/// What keys and values that were widened for one fold live in.
struct WidenedMemory {
  std::vector<std::shared_ptr<Storage>> copies;
  std::vector<std::vector<std::int64_t>> rows;
};

template <class T>
class AttendKeys {
 public:
  /// Copies, of type T, what the cut says. `inner` and `columns` in the order in which they count.
  AttendKeys(const plan::Attend& step, const plan::AttendCut& cut, const Frame& frame,
             const AttendAxes& batch, const AttendAxes& keys, const plan::Loops& inner,
             const plan::Loops& columns);

  /// Batch positions whose copies are held at the same time; all when nothing is copied.
  std::int64_t round() const noexcept { return round_; }
  /// Copies what has to be copied of the batch positions first .. first + round() - 1.
  void load(std::int64_t first);
  /// Is a batch position in the round loaded last?
  bool holds(std::int64_t batch) const noexcept {
    return batch >= first_ && batch < first_ + round_ && batch < batch_.count();
  }
  /// Keys and values of a batch position of the round loaded last.
  StoredKeys at(std::int64_t batch) const noexcept;
  /// The same as type T, in `memory` where they lie as another one.
  StoredKeys widened(std::int64_t batch, WidenedMemory& memory) const;

 private:
  /// One of the two tensors.
  struct Side {
    const std::byte* data = nullptr;
    DType dtype = dtype_of<T>;
    kernel::MapKernels::Function convert = nullptr;  // to T; null: it is T
    Dims strides;                                    // by axis of the scores
    KeyLists keys;                                   // as they lie
    std::vector<std::int64_t> elements{};
    bool dense = false, copied = false;
    std::vector<std::int64_t> copied_at{};
    std::shared_ptr<Storage> copies{};

    std::int64_t size() const noexcept { return std::ssize(elements); }
    std::size_t copied_bytes() const noexcept {
      return static_cast<std::size_t>(keys.count()) * elements.size() * sizeof(T);
    }
    /// Where rows of copies begin.
    std::vector<std::int64_t> dense_rows() const;
    T* copy_of(std::int64_t position) const noexcept;
  };
  Side make_side(const plan::Operand& operand, const std::optional<plan::TakenRows>& taken,
                 const Frame& frame, const plan::Loops& loops, const Dims& strides,
                 const AttendAxes& keys, bool copied) const;
  kernel::StoredRows rows(const Side& side, std::int64_t batch) const noexcept;
  /// Copies keys first .. last - 1 of a batch position.
  void copy_rows(const Side& side, std::int64_t batch, T* to, std::int64_t first,
                 std::int64_t last) const noexcept;

  const AttendAxes& batch_;
  Side k_, v_;
  std::int64_t keys_ = 0, round_ = 0, first_ = 0;
};

/// Strides of one tensor by axis of the scores.
Dims axis_strides(const plan::Attend& step, std::int64_t plan::ScoreAxis::*stride);

/// Offsets of the positions of a group of loops; none when a loop has size 0.
std::vector<std::int64_t> loop_offsets(const plan::Loops& loops, std::int64_t plan::Loop::*stride);

extern template class AttendKeys<float>;
extern template class AttendKeys<double>;

}  // namespace einkern::exec
