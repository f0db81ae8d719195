// SPDX-License-Identifier: Apache-2.0
// Follows views in both directions over finer and finer axes.
#include "score_axes.h"

namespace einkern::graph {
namespace {

std::vector<std::int32_t> joined(const AxisMap& axes, std::size_t first, std::size_t count) {
  std::vector<std::int32_t> list;
  for (std::size_t i = first; i < first + count; ++i) {
    list.insert(list.end(), axes[i].begin(), axes[i].end());
  }
  return list;
}

/// `count` entries from `first` on replaced by `with`.
AxisMap replaced(const AxisMap& axes, std::size_t first, std::size_t count, const AxisMap& with) {
  AxisMap result(axes.begin(), axes.begin() + static_cast<std::ptrdiff_t>(first));
  result.insert(result.end(), with.begin(), with.end());
  result.insert(result.end(), axes.begin() + static_cast<std::ptrdiff_t>(first + count),
                axes.end());
  return result;
}

}  // namespace

ScoreAxes::ScoreAxes(const Dims& scores) : sizes_(scores) {
  for (std::size_t d = 0; d < scores.size(); ++d) {
    scores_.push_back({static_cast<std::int32_t>(d)});
  }
}

void ScoreAxes::cut(const Cut& cut) {
  const auto at = static_cast<std::size_t>(cut.axis);
  const std::int64_t inner = sizes_[at] / cut.outer;
  sizes_[at] = cut.outer;
  sizes_.insert(at + 1, inner);
  for (std::vector<std::int32_t>& list : scores_) {
    for (std::size_t i = 0; i < list.size(); ++i) {
      if (list[i] > cut.axis) ++list[i];
      if (list[i] == cut.axis) {
        list.insert(list.begin() + static_cast<std::ptrdiff_t>(i) + 1, cut.axis + 1);
        ++i;
      }
    }
  }
}

std::optional<AxisMap> ScoreAxes::parted(const std::vector<std::int32_t>& list,
                                         const std::vector<std::int64_t>& parts,
                                         std::optional<Cut>& wanted) const {
  AxisMap result(parts.size());
  std::size_t next = 0;
  for (std::size_t i = 0; i < parts.size(); ++i) {
    std::int64_t missing = parts[i];
    while (missing > 1) {
      if (next == list.size() || list[next] < 0) return std::nullopt;
      const std::int64_t size = sizes_[static_cast<std::size_t>(list[next])];
      if (size > missing) {
        if (size % missing == 0) wanted = Cut{list[next], missing};
        return std::nullopt;
      }
      if (size == 0 || missing % size != 0) return std::nullopt;
      result[i].push_back(list[next++]);
      missing /= size;
    }
    if (missing == 0) return std::nullopt;
  }
  // What is left has size 1 and belongs to the last part.
  for (; next < list.size(); ++next) result.back().push_back(list[next]);
  return result;
}

std::optional<AxisMap> ScoreAxes::inwards(const Node& view, const AxisMap& axes,
                                          std::optional<Cut>& wanted) const {
  if (const auto* merge = std::get_if<Merge>(&view.op)) {
    const Dims& shape = view.inputs[0]->type.shape;
    const auto parts =
        parted(axes[merge->first],
               {shape.begin() + merge->first, shape.begin() + merge->first + merge->count}, wanted);
    if (!parts) return std::nullopt;
    return replaced(axes, merge->first, 1, *parts);
  }
  if (const auto* split = std::get_if<Split>(&view.op)) {
    const std::size_t count = split->sizes.size();
    return replaced(axes, split->axis, count, {joined(axes, split->axis, count)});
  }
  if (const auto* permute = std::get_if<Permute>(&view.op)) {
    AxisMap result(axes.size());
    for (std::size_t i = 0; i < axes.size(); ++i) result[permute->order[i]] = axes[i];
    return result;
  }
  if (const auto* expand = std::get_if<Expand>(&view.op)) return replaced(axes, expand->at, 1, {});
  if (std::holds_alternative<Relabel>(view.op)) return axes;
  return std::nullopt;  // Slice
}

std::optional<AxisMap> ScoreAxes::outwards(const Node& view, const AxisMap& axes,
                                           std::optional<Cut>& wanted) const {
  if (const auto* split = std::get_if<Split>(&view.op)) {
    const Dims& shape = view.type.shape;
    const auto parts = parted(
        axes[split->axis],
        {shape.begin() + split->axis, shape.begin() + split->axis + split->sizes.size()}, wanted);
    if (!parts) return std::nullopt;
    return replaced(axes, split->axis, 1, *parts);
  }
  if (const auto* merge = std::get_if<Merge>(&view.op)) {
    return replaced(axes, merge->first, merge->count, {joined(axes, merge->first, merge->count)});
  }
  if (const auto* permute = std::get_if<Permute>(&view.op)) {
    AxisMap result;
    for (const std::size_t axis : permute->order) result.push_back(axes[axis]);
    return result;
  }
  if (std::holds_alternative<Relabel>(view.op)) return axes;
  return std::nullopt;
}

}  // namespace einkern::graph
