// SPDX-License-Identifier: Apache-2.0
// Where the keys (or values) of each batch position begin: evenly spread, or through a table.
#pragma once

#include <cstdint>
#include <optional>

#include "../plan/attend_axes.h"
#include "frame.h"
#include "scratch.h"

namespace einkern::exec {

/// Offsets of keys in the order in which they are flattened; one list for all batch positions that
/// read the same part of a table, or for all when there is none. Lists lie in memory of the pool:
/// fresh memory, listed key by key, took 0.35 ms for two lists of 32768 keys.
class KeyLists {
 public:
  /// `strides` by axis of the scores.
  KeyLists(const plan::AttendAxes& keys, const Dims& strides);
  /// Through a table, whose entries have been checked.
  KeyLists(const plan::TakenRows& taken, const Frame& frame, const plan::AttendAxes& batch,
           const plan::AttendAxes& keys);

  /// Keys of a list.
  std::int64_t count() const noexcept { return count_; }
  /// The list of a batch position.
  const std::int64_t* of(std::int64_t position) const noexcept {
    const std::int64_t list = lists_ == 1 ? 0 : batch_->offset(position, list_strides_);
    return offsets_->as<std::int64_t>() + list * count_;
  }

 private:
  void allocate() {
    offsets_.emplace(static_cast<std::size_t>(lists_ * count_) * sizeof(std::int64_t));
  }

  std::int64_t count_, lists_ = 1;
  const plan::AttendAxes* batch_ = nullptr;
  Dims list_strides_;  // of the number of a list, by axis of the scores
  std::optional<ScratchBlock> offsets_;
};

}  // namespace einkern::exec
