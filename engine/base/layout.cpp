// SPDX-License-Identifier: Apache-2.0
// Shape and stride algebra.
#include "layout.h"

#include <algorithm>
#include <cstdlib>

#include "error.h"

namespace einkern {

std::int64_t element_count(const Dims& shape, const char* function) {
  // 2^60 elements of 8 bytes are the last that i64 byte offsets reach. Sizes of 0 do not excuse an
  // overflow of the rest: strides are products of the other sizes.
  constexpr std::int64_t kMost = std::int64_t{1} << 60;
  std::int64_t count = 1;
  bool zero = false;
  for (const std::int64_t size : shape) {
    if (size < 0) {
      fail<ShapeError>(std::string(function) + ": negative size in shape " + to_string(shape));
    }
    if (size == 0) {
      zero = true;
    } else if (count > kMost / size) {
      fail<ShapeError>(std::string(function) + ": shape " + to_string(shape) +
                       " has more elements than 64-bit offsets can reach");
    } else {
      count *= size;
    }
  }
  return zero ? 0 : count;
}

Dims contiguous_strides(const Dims& shape) {
  Dims strides(shape.size(), 1);
  std::int64_t stride = 1;
  for (std::size_t i = shape.size(); i-- > 0;) {
    strides[i] = stride;
    stride *= std::max<std::int64_t>(shape[i], 1);
  }
  return strides;
}

Layout contiguous(const Dims& shape) { return {shape, contiguous_strides(shape), 0}; }

bool is_contiguous(const Layout& layout) noexcept {
  std::int64_t expected = 1;
  for (const std::int64_t size : layout.shape) {
    if (size == 0) return true;
  }
  for (std::size_t i = layout.rank(); i-- > 0;) {
    if (layout.shape[i] == 1) continue;
    if (layout.strides[i] != expected) return false;
    expected *= layout.shape[i];
  }
  return true;
}

Range touched(const Layout& layout) noexcept {
  Range range{layout.offset, layout.offset};
  for (std::size_t i = 0; i < layout.rank(); ++i) {
    if (layout.shape[i] == 0) return {};
    const std::int64_t reach = (layout.shape[i] - 1) * layout.strides[i];
    (reach < 0 ? range.first : range.last) += reach;
  }
  return range;
}

bool may_self_overlap(const Layout& layout) {
  struct Axis {
    std::int64_t stride, size;
    bool operator<(const Axis& other) const noexcept { return stride < other.stride; }
  };
  SmallVector<Axis, 6> axes;
  for (std::size_t i = 0; i < layout.rank(); ++i) {
    if (layout.shape[i] == 0) return false;
    if (layout.shape[i] > 1) axes.push_back({std::abs(layout.strides[i]), layout.shape[i]});
  }
  std::sort(axes.begin(), axes.end());
  std::int64_t reach = 0;  // farthest offset of the finer axes
  for (const auto& [stride, size] : axes) {
    if (stride <= reach) return true;
    reach += stride * (size - 1);
  }
  return false;
}

SliceRange slice_range(std::int64_t size, std::optional<std::int64_t> start,
                       std::optional<std::int64_t> stop, std::int64_t step) noexcept {
  // Going down, the bounds lie in [-1, size-1]: -1 is "before the first element".
  const std::int64_t lowest = step > 0 ? 0 : -1;
  const std::int64_t highest = step > 0 ? size : size - 1;
  const auto clip = [&](std::int64_t bound) {
    return std::clamp(bound < 0 ? bound + size : bound, lowest, highest);
  };
  const std::int64_t first = start ? clip(*start) : (step > 0 ? lowest : highest);
  const std::int64_t last = stop ? clip(*stop) : (step > 0 ? highest : lowest);
  const std::int64_t reach = step > 0 ? last - first : first - last;
  // |step| through unsigned: the most negative step has no positive twin.
  const std::uint64_t stride = step > 0 ? static_cast<std::uint64_t>(step)
                                        : std::uint64_t{0} - static_cast<std::uint64_t>(step);
  if (reach <= 0) return {first, 0};
  return {first, static_cast<std::int64_t>((static_cast<std::uint64_t>(reach) - 1) / stride + 1)};
}

Layout permuted(const Layout& layout, const SmallVector<std::int64_t, 6>& order) {
  Layout result{Dims(order.size()), Dims(order.size()), layout.offset};
  for (std::size_t i = 0; i < order.size(); ++i) {
    result.shape[i] = layout.shape[static_cast<std::size_t>(order[i])];
    result.strides[i] = layout.strides[static_cast<std::size_t>(order[i])];
  }
  return result;
}

std::string to_string(const Dims& shape) {
  std::string text = "(";
  for (std::size_t i = 0; i < shape.size(); ++i) {
    if (i > 0) text += ", ";
    text += std::to_string(shape[i]);
  }
  return text + (shape.size() == 1 ? ",)" : ")");
}

}  // namespace einkern
