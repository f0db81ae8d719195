// SPDX-License-Identifier: Apache-2.0
// Evaluates the score program over a grid of boxes.
#include "attend_visible.h"

#include <algorithm>
#include <cstdint>
#include <vector>

#include "../map/interval.h"
#include "attend_axes.h"

namespace einkern::plan {

bool has_mask(const Attend& step) {
  return std::any_of(step.scores.code.begin(), step.scores.code.end(),
                     [](const auto& code) { return code.dtype == DType::boolean; });
}

VisibleShare visible_share(const Attend& step, std::span<const map::Scalar> scalars) {
  constexpr std::int64_t kMostBoxes = 64;
  std::vector<map::IndexRange> box;
  for (const ScoreAxis& axis : step.axes) {
    if (axis.size == 0) return {};
    box.push_back({0, axis.size - 1});
  }
  const std::vector<map::Range> inputs(step.inputs.size() + 1, map::kAnything);
  std::vector<map::Range> ranges;
  /// Along the innermost axis of a role; one box where it has none.
  struct Side {
    std::int64_t axis, size, boxes;
    std::int64_t begin(std::int64_t at) const { return at * size / boxes; }
  };
  const auto side_of = [&](ScoreAxis::Role role) {
    const std::int64_t axis = AttendAxes(step, role).innermost();
    const std::int64_t size = axis < 0 ? 1 : step.axes[static_cast<std::size_t>(axis)].size;
    return Side{axis, size, std::min(size, kMostBoxes)};
  };
  const Side rows = side_of(ScoreAxis::Role::row), keys = side_of(ScoreAxis::Role::streamed);
  const auto move_to = [&](const Side& side, std::int64_t at) {
    if (side.axis < 0) return;
    box[static_cast<std::size_t>(side.axis)] = {side.begin(at), side.begin(at + 1) - 1};
  };
  VisibleShare share{0, 0};
  for (std::int64_t k = 0; k < keys.boxes; ++k) {
    move_to(keys, k);
    const double key_share =
        static_cast<double>(keys.begin(k + 1) - keys.begin(k)) / static_cast<double>(keys.size);
    bool seen = false;
    for (std::int64_t r = 0; r < rows.boxes; ++r) {
      move_to(rows, r);
      map::evaluate_ranges(step.scores, box, inputs, scalars, ranges);
      if (map::is_minus_infinity(ranges.back())) continue;
      seen = true;
      share.scores += key_share * static_cast<double>(rows.begin(r + 1) - rows.begin(r)) /
                      static_cast<double>(rows.size);
    }
    if (seen) share.keys += key_share;
  }
  return share;
}

}  // namespace einkern::plan
