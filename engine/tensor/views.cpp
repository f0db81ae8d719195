// SPDX-License-Identifier: Apache-2.0
// Views: axes rearranged over the same memory.
#include <fmt/format.h>

#include <algorithm>

#include "../base/error.h"
#include "tensor.h"

namespace einkern {
namespace {

// One axis of a view, while views are put together.
struct AxisOf {
  std::int64_t size = 0;
  std::int64_t stride = 0;
  std::string label = {};
};

std::vector<AxisOf> axes_of(const Tensor& tensor) {
  std::vector<AxisOf> axes(tensor.rank());
  for (std::size_t i = 0; i < axes.size(); ++i) {
    axes[i] = {tensor.shape()[i], tensor.strides()[i], tensor.labels()[i]};
  }
  return axes;
}

Tensor view(const Tensor& of, const std::vector<AxisOf>& axes, std::int64_t offset,
            bool read_only) {
  Layout layout{Dims(axes.size()), Dims(axes.size()), offset};
  std::vector<std::string> labels(axes.size());
  for (std::size_t i = 0; i < axes.size(); ++i) {
    layout.shape[i] = axes[i].size;
    layout.strides[i] = axes[i].stride;
    labels[i] = axes[i].label;
  }
  return {of.storage(),  const_cast<void*>(of.bytes()), of.dtype(), layout, read_only,
          Labels(labels)};
}

Tensor view(const Tensor& of, const std::vector<AxisOf>& axes, std::int64_t offset = 0) {
  return view(of, axes, offset, of.read_only());
}

template <class T>
auto at_axis(std::vector<T>& axes, std::size_t axis) {
  return axes.begin() + static_cast<std::ptrdiff_t>(axis);
}

}  // namespace

Tensor Tensor::at(std::initializer_list<std::int64_t> indices) const {
  if (indices.size() > rank()) {
    fail<ShapeError>(fmt::format("at: {} indices for a tensor of rank {}", indices.size(), rank()));
  }
  std::int64_t offset = 0;
  std::size_t axis = 0;
  for (const std::int64_t index : indices) {
    const std::int64_t size = shape()[axis];
    if (index < -size || index >= size) {
      fail<ShapeError>(
          fmt::format("at: index {} is out of range for axis {} of size {}", index, axis, size));
    }
    offset += (index < 0 ? index + size : index) * strides()[axis];
    ++axis;
  }
  std::vector<AxisOf> axes = axes_of(*this);
  axes.erase(axes.begin(), at_axis(axes, axis));
  return view(*this, axes, offset);
}

Tensor Tensor::permute(std::initializer_list<Axis> order) const {
  if (order.size() != rank()) {
    fail<ShapeError>(fmt::format("permute: {} axes given for rank {}", order.size(), rank()));
  }
  const std::vector<AxisOf> axes = axes_of(*this);
  std::vector<AxisOf> permuted;
  std::vector<bool> seen(rank());
  for (const Axis& asked : order) {
    const std::size_t axis = asked.resolve("permute", rank(), labels_);
    if (seen[axis]) fail<ShapeError>(fmt::format("permute: axis {} is given twice", axis));
    seen[axis] = true;
    permuted.push_back(axes[axis]);
  }
  return view(*this, permuted);
}

Tensor Tensor::slice(const Axis& asked, std::optional<std::int64_t> start,
                     std::optional<std::int64_t> stop, std::int64_t step) const {
  const std::size_t axis = asked.resolve("slice", rank(), labels_);
  if (step == 0) fail<ValueError>("slice: step is 0");
  std::vector<AxisOf> axes = axes_of(*this);
  AxisOf& sliced = axes[axis];
  const SliceRange range = slice_range(sliced.size, start, stop, step);
  const std::int64_t offset = range.size > 0 ? range.start * sliced.stride : 0;
  sliced.size = range.size;
  // A step that takes one element may be any number; its product with the stride need not fit.
  if (range.size > 1) sliced.stride *= step;
  return view(*this, axes, offset);
}

Tensor Tensor::diagonal(const Axis& first, const Axis& second) const {
  const std::size_t a = first.resolve("diagonal", rank(), labels_);
  const std::size_t b = second.resolve("diagonal", rank(), labels_);
  if (a == b) fail<ShapeError>(fmt::format("diagonal: axis {} is given twice", a));
  std::vector<AxisOf> axes = axes_of(*this);
  if (axes[a].size != axes[b].size) {
    fail<ShapeError>(fmt::format("diagonal: axis {} has size {} but axis {} has size {}", a,
                                 axes[a].size, b, axes[b].size));
  }
  AxisOf both{axes[a].size, axes[a].stride + axes[b].stride, axes[a].label};
  if (both.label.empty()) both.label = axes[b].label;
  // Two different labels: the diagonal is neither.
  if (!axes[b].label.empty() && axes[b].label != both.label) both.label.clear();
  axes.erase(at_axis(axes, std::max(a, b)));
  axes.erase(at_axis(axes, std::min(a, b)));
  axes.push_back(both);
  return view(*this, axes);
}

Tensor Tensor::broadcast(const Shape& target) const {
  element_count(target, "broadcast");
  const std::string both = fmt::format("{} to {}", to_string(shape()), to_string(target));
  if (target.size() < rank()) {
    fail<ShapeError>(fmt::format("broadcast: {} would drop axes", both));
  }
  std::vector<AxisOf> axes = axes_of(*this);
  axes.insert(axes.begin(), target.size() - rank(), AxisOf{1, 0});
  for (std::size_t i = 0; i < axes.size(); ++i) {
    if (axes[i].size == target[i]) continue;
    if (axes[i].size != 1) {
      fail<ShapeError>(fmt::format("broadcast: {}: axis {} of size {} cannot become {}", both,
                                   i + rank() - target.size(), axes[i].size, target[i]));
    }
    axes[i].size = target[i];
    axes[i].stride = 0;
  }
  return view(*this, axes, 0, true);
}

Tensor Tensor::split(const Axis& asked, const std::vector<std::string>& labels,
                     const Shape& sizes) const {
  const std::size_t axis = asked.resolve("split", rank(), labels_);
  if (!labels.empty() && labels.size() != sizes.size()) {
    fail<ShapeError>(fmt::format("split: {} labels for {} sizes", labels.size(), sizes.size()));
  }
  std::vector<AxisOf> axes = axes_of(*this);
  const AxisOf whole = axes[axis];
  Shape known;
  std::size_t open = sizes.size();
  for (std::size_t i = 0; i < sizes.size(); ++i) {
    if (sizes[i] != -1) {
      known.push_back(sizes[i]);
    } else if (open == sizes.size()) {
      open = i;
    } else {
      fail<ShapeError>(fmt::format("split: sizes {} leave more than one open", to_string(sizes)));
    }
  }
  const std::int64_t product = element_count(known, "split");
  const bool divides =
      open == sizes.size() ? product == whole.size : product > 0 && whole.size % product == 0;
  if (!divides) {
    fail<ShapeError>(fmt::format("split: sizes {} do not make up axis {} of size {}",
                                 to_string(sizes), axis, whole.size));
  }
  std::vector<AxisOf> parts(sizes.size());
  std::int64_t stride = whole.stride;
  for (std::size_t i = sizes.size(); i-- > 0;) {
    const std::int64_t size = i == open ? whole.size / product : sizes[i];
    parts[i] = {size, stride, labels.empty() ? "" : labels[i]};
    stride *= std::max<std::int64_t>(size, 1);
  }
  axes.insert(axes.erase(at_axis(axes, axis)), parts.begin(), parts.end());
  return view(*this, axes);
}

Tensor Tensor::with_labels(Labels labels) const& {
  return Tensor(*this).with_labels(std::move(labels));
}

Tensor Tensor::with_labels(Labels labels) && {
  labels_ = std::move(labels);
  return std::move(*this);
}

}  // namespace einkern
