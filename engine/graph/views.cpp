// SPDX-License-Identifier: Apache-2.0
// Layouts of view nodes.
#include "views.h"

#include "../base/error.h"

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

bool is_view(const Node& node) {
  return std::holds_alternative<Permute>(node.op) || std::holds_alternative<Slice>(node.op) ||
         std::holds_alternative<Split>(node.op) || std::holds_alternative<Merge>(node.op) ||
         std::holds_alternative<Expand>(node.op) || std::holds_alternative<Relabel>(node.op);
}

AxisMap through_view(const Node& view, const AxisMap& axes, const Dims& sizes) {
  const Dims& input = view.inputs[0]->type.shape;
  AxisMap result = axes;
  if (const auto* op = std::get_if<Permute>(&view.op)) {
    for (std::size_t i = 0; i < op->order.size(); ++i) result[op->order[i]] = axes[i];
  } else if (const auto* op = std::get_if<Split>(&view.op)) {
    const std::size_t parts = op->sizes.size();
    for (std::size_t i = 1; i < parts; ++i) {
      const auto& part = axes[op->axis + i];
      result[op->axis].insert(result[op->axis].end(), part.begin(), part.end());
    }
    const auto first = result.begin() + static_cast<std::ptrdiff_t>(op->axis) + 1;
    result.erase(first, first + static_cast<std::ptrdiff_t>(parts) - 1);
  } else if (const auto* op = std::get_if<Merge>(&view.op)) {
    const std::vector<std::int32_t>& merged = axes[op->first];
    result[op->first].clear();
    result.insert(result.begin() + static_cast<std::ptrdiff_t>(op->first), op->count - 1, {});
    std::size_t next = 0;
    for (std::size_t d = op->first; d < op->first + op->count; ++d) {
      for (std::int64_t size = 1; size < input[d]; ++next) {
        EINKERN_CHECK(next < merged.size());
        result[d].push_back(merged[next]);
        size *= sizes[static_cast<std::size_t>(merged[next])];
      }
    }
  } else if (const auto* op = std::get_if<Expand>(&view.op)) {
    result.erase(result.begin() + static_cast<std::ptrdiff_t>(op->at));
  } else {
    EINKERN_CHECK(std::holds_alternative<Relabel>(view.op));
  }
  return result;
}

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
  if (const auto* op = std::get_if<Toeplitz>(&node.op)) {
    const std::int64_t stride = input.strides[op->axis];
    result.offset += (op->queries - 1) * stride;
    result.shape[op->axis] = op->queries;
    result.strides[op->axis] = -stride;
    result.shape.insert(op->axis + 1, node.type.shape[op->axis + 1]);
    result.strides.insert(op->axis + 1, stride);
    return result;
  }
  if (std::holds_alternative<Relabel>(node.op)) return result;
  return std::nullopt;
}

std::optional<Layout> layout_behind(const Node& view, const Layout& layout) {
  if (const auto* op = std::get_if<Permute>(&view.op)) {
    Layout result = layout;
    for (std::size_t i = 0; i < op->order.size(); ++i) {
      result.shape[op->order[i]] = layout.shape[i];
      result.strides[op->order[i]] = layout.strides[i];
    }
    return result;
  }
  if (const auto* op = std::get_if<Split>(&view.op)) {
    return merged({op->axis, op->sizes.size(), {}}, layout);
  }
  if (const auto* op = std::get_if<Merge>(&view.op)) {
    Layout result{view.inputs[0]->type.shape, {}, layout.offset};
    result.strides = layout.strides;
    result.strides.erase(op->first);
    std::int64_t stride = layout.strides[op->first];
    for (std::size_t d = op->first + op->count; d-- > op->first;) {
      result.strides.insert(op->first, stride);
      stride *= result.shape[d];
    }
    return result;
  }
  if (std::holds_alternative<Relabel>(view.op)) return layout;
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
