// SPDX-License-Identifier: Apache-2.0
// Orders and flattens the axes of a role.
#include "attend_axes.h"

#include <algorithm>

namespace einkern::plan {

AttendAxes::AttendAxes(const Attend& step, ScoreAxis::Role role, std::int64_t long_enough) {
  for (std::size_t a = 0; a < step.axes.size(); ++a) {
    const ScoreAxis& axis = step.axes[a];
    if (axis.role != role) continue;
    count_ *= axis.size;
    if (axis.size != 1) axes_.push_back({static_cast<std::int64_t>(a), axis.size});
  }
  if (role == ScoreAxis::Role::batch) return;
  std::stable_sort(axes_.begin(), axes_.end(), [&](const Axis& a, const Axis& b) {
    return std::min(a.size, long_enough) < std::min(b.size, long_enough);
  });
}

std::int64_t AttendAxes::offset(std::int64_t position, const Dims& strides) const noexcept {
  std::int64_t sum = 0;
  for (auto axis = axes_.rbegin(); axis != axes_.rend(); ++axis) {
    sum += position % axis->size * strides[static_cast<std::size_t>(axis->axis)];
    position /= axis->size;
  }
  return sum;
}

std::vector<std::int64_t> AttendAxes::offsets(const Dims& strides) const {
  std::vector<std::int64_t> all(static_cast<std::size_t>(count_));
  list_offsets(strides, all.data());
  return all;
}

void AttendAxes::list_offsets(const Dims& strides, std::int64_t* to) const noexcept {
  if (count_ == 0) return;
  // Decoding waits for these: the innermost axis is one loop that the compiler vectorises.
  std::int64_t filled = 0;
  for (auto axis = axes_.rbegin(); axis != axes_.rend(); ++axis) {
    const std::int64_t stride = strides[static_cast<std::size_t>(axis->axis)];
    if (filled == 0) {
      for (; filled < axis->size; ++filled) to[filled] = filled * stride;
      continue;
    }
    for (std::int64_t i = 1; i < axis->size; ++i) {
      for (std::int64_t j = 0; j < filled; ++j) to[i * filled + j] = to[j] + i * stride;
    }
    filled *= axis->size;
  }
  if (filled == 0) to[0] = 0;
}

void AttendAxes::locate(std::int64_t position, Dims& index) const noexcept {
  for (auto axis = axes_.rbegin(); axis != axes_.rend(); ++axis) {
    index[static_cast<std::size_t>(axis->axis)] = position % axis->size;
    position /= axis->size;
  }
}

}  // namespace einkern::plan
