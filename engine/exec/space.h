// SPDX-License-Identifier: Apache-2.0
// Views of one shape into the fewest axes that still address all of them.
#pragma once

#include <array>
#include <cstdint>
#include <initializer_list>
#include <span>
#include <vector>

#include "../base/layout.h"

namespace einkern::exec {

/// Strides by view; those of the usual number of views live in the object itself.
class ViewStrides {
 public:
  void resize(std::size_t views) {
    size_ = views;
    if (views > first_.size()) more_.resize(views - first_.size());
  }
  std::size_t size() const noexcept { return size_; }
  Dims& operator[](std::size_t view) noexcept {
    return view < first_.size() ? first_[view] : more_[view - first_.size()];
  }
  const Dims& operator[](std::size_t view) const noexcept {
    return view < first_.size() ? first_[view] : more_[view - first_.size()];
  }

 private:
  std::size_t size_ = 0;
  std::array<Dims, 4> first_;
  std::vector<Dims> more_;
};

/// An index space that several views share, outermost axis first. Axes of size 1 are dropped, the
/// others stand in the order of the first view's strides (largest outside), and neighbours whose
/// strides nest in all views are one axis: contiguous views are a single run.
struct Space {
  Dims sizes;
  ViewStrides strides;  // [view][axis]
  Dims origins;         // for pinned axes the axis of the shape, else -1

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
                 std::span<const bool> pinned = {});
inline Space make_space(const Dims& shape, std::initializer_list<const Dims*> views) {
  return make_space(shape, std::span(views.begin(), views.size()));
}

}  // namespace einkern::exec
