// SPDX-License-Identifier: Apache-2.0
// The axes of one role of an Attend step as one flat axis, and tiles of them.
#pragma once

#include <algorithm>
#include <cstdint>
#include <limits>
#include <vector>

#include "../base/layout.h"
#include "step.h"

namespace einkern::plan {

/// Axes of a role in a fixed order (longer ones inside, so that runs are long), flattened.
class AttendAxes {
 public:
  /// Axes of `long_enough` positions and more are equally long: their order is that of the step,
  /// whatever their sizes.
  AttendAxes(const Attend& step, ScoreAxis::Role role,
             std::int64_t long_enough = std::numeric_limits<std::int64_t>::max());

  /// Number of positions.
  std::int64_t count() const noexcept { return count_; }
  /// Positions that follow one another along the innermost axis.
  std::int64_t run() const noexcept { return axes_.empty() ? 1 : axes_.back().size; }
  /// Number of the innermost axis among the axes of the scores; -1 when there is none.
  std::int64_t innermost() const noexcept { return axes_.empty() ? -1 : axes_.back().axis; }

  /// Sum of position times stride over these axes; `strides` is by axis of the scores.
  std::int64_t offset(std::int64_t position, const Dims& strides) const noexcept;
  /// The offsets of all positions.
  std::vector<std::int64_t> offsets(const Dims& strides) const;
  void list_offsets(const Dims& strides, std::int64_t* to) const noexcept;
  /// Writes the position along each of these axes; `index` is by axis of the scores.
  void locate(std::int64_t position, Dims& index) const noexcept;
  /// Calls f(axis, size) for every axis, outermost first.
  template <class F>
  void each(F&& f) const {
    for (const Axis& axis : axes_) f(axis.axis, axis.size);
  }

 private:
  struct Axis {
    std::int64_t axis, size;
  };
  std::vector<Axis> axes_;
  std::int64_t count_ = 1;
};

/// Rows cut into tiles of at most `most`. Where the innermost axis fills a tile, it starts a new
/// one at every position of the outer axes (heads of a group, as a rule). Then a tile holds the
/// same rows however many follow, and chunks of whole tiles come out as all rows at once do.
/// Shorter axes share tiles.
class RowTiles {
 public:
  /// There is a row.
  RowTiles(const AttendAxes& rows, std::int64_t most)
      : most_(most),
        run_(rows.run() >= most ? rows.run() : rows.count()),
        of_run_((run_ + most - 1) / most),
        count_(rows.count() / run_ * of_run_) {}

  std::int64_t most() const noexcept { return most_; }
  std::int64_t count() const noexcept { return count_; }

  struct Tile {
    std::int64_t row, rows;
  };
  Tile at(std::int64_t tile) const noexcept {
    const std::int64_t in_run = tile % of_run_ * most_;
    return {tile / of_run_ * run_ + in_run, std::min(most_, run_ - in_run)};
  }

 private:
  std::int64_t most_, run_, of_run_, count_;
};

}  // namespace einkern::plan
