// SPDX-License-Identifier: Apache-2.0
// Views of values as layouts: how a view node changes where the elements lie.
#pragma once

#include <optional>

#include "../base/layout.h"
#include "node.h"

namespace einkern::graph {

/// The layout of view `node` over the layout of its input; nothing when the elements must be copied
/// first (a merge of axes that do not nest) or when the node is no view.
std::optional<Layout> view_layout(const Node& node, const Layout& input);

/// The layout of a broadcast of `layout` to `shape`, its axis d being axis `axes[d]` there.
Layout spread(const Layout& layout, const std::vector<std::int32_t>& axes, const Dims& shape);

}  // namespace einkern::graph
