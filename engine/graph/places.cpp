// SPDX-License-Identifier: Apache-2.0
// Layouts of view nodes.
#include "places.h"

namespace einkern::graph {
namespace {

std::optional<Layout> merged(const Merge& op, const Layout& input) {
  Layout result{{}, {}, input.offset};
  for (std::size_t d = 0; d < input.rank(); ++d) {
    if (d <= op.first || d >= op.first + op.count) {
      result.shape.push_back(input.shape[d]);
      result.strides.push_back(input.strides[d]);
      continue;
    }
    std::int64_t& size = result.shape.back();
    std::int64_t& stride = result.strides.back();
    if (input.shape[d] == 1) continue;
    const bool nests = size == 1 || stride == input.strides[d] * input.shape[d] ||
                       input.shape[d] == 0 || size == 0;
    if (!nests) return std::nullopt;
    size *= input.shape[d];
    stride = input.strides[d];
  }
  return result;
}

}  // namespace

std::optional<Layout> view_layout(const Node& node, const Layout& input) {
  Layout result = input;
  if (const auto* op = std::get_if<Permute>(&node.op)) {
    for (std::size_t i = 0; i < op->order.size(); ++i) {
      result.shape[i] = input.shape[op->order[i]];
      result.strides[i] = input.strides[op->order[i]];
    }
    return result;
  }
  if (const auto* op = std::get_if<Slice>(&node.op)) {
    const SliceRange range = slice_range(input.shape[op->axis], op->start, op->stop, op->step);
    if (range.size > 0) result.offset += range.start * input.strides[op->axis];
    result.shape[op->axis] = range.size;
    // A step beyond the axis leaves one element, whose stride may overflow and is never used.
    result.strides[op->axis] = range.size > 1 ? op->step * input.strides[op->axis] : 0;
    return result;
  }
  if (const auto* op = std::get_if<Split>(&node.op)) {
    const std::size_t parts = op->sizes.size();
    Layout split{{}, {}, input.offset};
    for (std::size_t d = 0; d < input.rank(); ++d) {
      if (d != op->axis) {
        split.shape.push_back(input.shape[d]);
        split.strides.push_back(input.strides[d]);
        continue;
      }
      for (std::size_t i = 0; i < parts; ++i) {
        split.shape.push_back(node.type.shape[d + i]);
        split.strides.push_back(0);
      }
      std::int64_t stride = input.strides[d];
      for (std::size_t i = parts; i-- > 0;) {
        split.strides[d + i] = stride;
        stride *= split.shape[d + i];
      }
    }
    return split;
  }
  if (const auto* op = std::get_if<Merge>(&node.op)) return merged(*op, input);
  if (const auto* op = std::get_if<Expand>(&node.op)) {
    result.shape.insert(op->at, op->size);
    result.strides.insert(op->at, 0);
    return result;
  }
  if (std::holds_alternative<Relabel>(node.op)) return result;
  return std::nullopt;
}

Layout spread(const Layout& layout, const std::vector<std::int32_t>& axes, const Dims& shape) {
  Layout result{shape, Dims(shape.size(), 0), layout.offset};
  for (std::size_t d = 0; d < layout.rank(); ++d) {
    if (layout.shape[d] == 1) continue;
    result.strides[static_cast<std::size_t>(axes[d])] += layout.strides[d];
  }
  return result;
}

}  // namespace einkern::graph
