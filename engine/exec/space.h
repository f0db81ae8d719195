// SPDX-License-Identifier: Apache-2.0
// Views of one shape into the fewest axes that still address all of them.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <span>
#include <vector>

#include "../base/layout.h"

namespace einkern::exec {

/// An index space that several views share, outermost axis first. Axes of size 1 are dropped, the
/// others stand in the order of the first view's strides (largest outside), and neighbours whose
/// strides nest in all views are one axis: contiguous views are a single run.
struct Space {
  Dims sizes;
  std::vector<Dims> strides;  // [view][axis]
  Dims origins;               // for pinned axes the axis of the shape, else -1

  std::size_t rank() const noexcept { return sizes.size(); }
  std::int64_t size() const noexcept;
  /// Offset in a view of the position `index` along the axes before `last`, counted in C order.
  std::int64_t offset(std::size_t view, std::int64_t index, std::size_t last) const noexcept;
  std::int64_t offset(std::size_t view, std::int64_t index) const noexcept {
    return offset(view, index, rank());
  }
  /// Removes the innermost axis.
  void drop_last();
  /// Moves one axis to another place, keeping the order of the rest.
  void move_axis(std::size_t from, std::size_t to);
};

/// `pinned` (empty: none) marks axes that are not fused with others, so that positions along them
/// can be told.
Space make_space(const Dims& shape, std::span<const Dims* const> views,
                 const std::vector<bool>& pinned = {});
inline Space make_space(const Dims& shape, std::initializer_list<const Dims*> views) {
  return make_space(shape, std::span(views.begin(), views.size()));
}

}  // namespace einkern::exec
