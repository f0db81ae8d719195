// SPDX-License-Identifier: Apache-2.0
// View nodes: how they change where the elements lie, and what their axes are made of.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "../base/layout.h"
#include "node.h"

namespace einkern::graph {

/// Does the node only rearrange, rename, cut or stretch axes? (A Toeplitz node does more: it has a
/// layout over that of its input, but no axes made of its input's.)
bool is_view(const Node& node);

/// For every axis of something: the axes of a finer space that it is made of, outermost first.
using AxisMap = std::vector<std::vector<std::int32_t>>;

/// What the axes of a view's input are made of, given what the view's own axes are made of. `sizes`
/// are those of the finer space, whose axes must be fine enough for every merge. No slices.
AxisMap through_view(const Node& view, const AxisMap& axes, const Dims& sizes);

/// The layout of view `node` over the layout of its input; nothing when the elements must be copied
/// first (a merge of axes that do not nest) or when the node is no view.
std::optional<Layout> view_layout(const Node& node, const Layout& input);

/// The other way: where the elements of the view's input must lie so that the view has `layout`;
/// nothing when there is no such place (a slice shows only part of its input) or when the node is
/// no view.
std::optional<Layout> layout_behind(const Node& view, const Layout& layout);

/// The layout of a broadcast of `layout` to `shape`, its axis d being axis `axes[d]` there.
Layout spread(const Layout& layout, const std::vector<std::int32_t>& axes, const Dims& shape);

}  // namespace einkern::graph
