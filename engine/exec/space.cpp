// SPDX-License-Identifier: Apache-2.0
// Orders and fuses the axes of views that share a shape.
#include "space.h"

#include <algorithm>
#include <cstdlib>

namespace einkern::exec {
namespace {

/// Does axis `a` belong outside axis `b`? Larger strides of the first view that tells them apart.
bool outside(std::span<const Dims* const> views, std::size_t a, std::size_t b) {
  for (const Dims* strides : views) {
    const std::int64_t x = std::abs((*strides)[a]), y = std::abs((*strides)[b]);
    if (x != y) return x > y;
  }
  return false;
}

}  // namespace

std::int64_t Space::size() const noexcept {
  std::int64_t count = 1;
  for (const std::int64_t size : sizes) count *= size;
  return count;
}

std::int64_t Space::offset(std::size_t view, std::int64_t index, std::size_t last) const noexcept {
  if (last == 0) return 0;
  std::int64_t at = 0;
  for (std::size_t axis = last - 1; axis > 0 && index != 0; --axis) {
    at += index % sizes[axis] * strides[view][axis];
    index /= sizes[axis];
  }
  at += index * strides[view][0];  // what is left is the position along the outermost axis
  return at;
}

void Space::drop_last() {
  sizes.pop_back();
  origins.pop_back();
  for (std::size_t v = 0; v < strides.size(); ++v) strides[v].pop_back();
}

void Space::move_axis(std::size_t from, std::size_t to) {
  const auto move = [&](Dims& dims) {
    const std::int64_t value = dims[from];
    dims.erase(from);
    dims.insert(to, value);
  };
  move(sizes);
  move(origins);
  for (std::size_t v = 0; v < strides.size(); ++v) move(strides[v]);
}

Space make_space(const Dims& shape, std::span<const Dims* const> views,
                 std::span<const bool> pinned) {
  SmallVector<std::size_t, 6> order;
  for (std::size_t axis = 0; axis < shape.size(); ++axis) {
    if (shape[axis] != 1) order.push_back(axis);
  }
  // By insertion: axes are few, and std::stable_sort allocates.
  for (auto axis = order.begin(); axis != order.end(); ++axis) {
    const auto at = std::upper_bound(order.begin(), axis, *axis, [&](std::size_t a, std::size_t b) {
      return outside(views, a, b);
    });
    std::rotate(at, axis, axis + 1);
  }

  Space space;
  space.strides.resize(views.size());
  for (const std::size_t axis : order) {
    const bool pin = axis < pinned.size() && pinned[axis];
    bool fuses = !pin && space.rank() > 0 && space.origins.back() < 0;
    for (std::size_t v = 0; fuses && v < views.size(); ++v) {
      fuses = space.strides[v].back() == (*views[v])[axis] * shape[axis];
    }
    if (fuses) {
      space.sizes.back() *= shape[axis];
      for (std::size_t v = 0; v < views.size(); ++v) space.strides[v].back() = (*views[v])[axis];
    } else {
      space.sizes.push_back(shape[axis]);
      space.origins.push_back(pin ? static_cast<std::int64_t>(axis) : -1);
      for (std::size_t v = 0; v < views.size(); ++v) space.strides[v].push_back((*views[v])[axis]);
    }
  }
  return space;
}

}  // namespace einkern::exec
