// SPDX-License-Identifier: Apache-2.0
// The axes of a score tensor, cut as fine as the views around it need.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "node.h"
#include "views.h"

namespace einkern::graph {

/// A cut that a view asks for: the axis, and the size of its outer part.
struct Cut {
  std::int32_t axis;
  std::int64_t outer;
};

/// The axes of scores, each as one or more finer axes. Following a view may ask for a cut: then
/// make it and follow everything again, since cutting renumbers the finer axes.
class ScoreAxes {
 public:
  explicit ScoreAxes(const Dims& scores);

  /// Sizes of the finer axes.
  const Dims& sizes() const noexcept { return sizes_; }
  /// The axes of the scores as finer axes.
  const AxisMap& scores() const noexcept { return scores_; }
  void cut(const Cut& cut);

  /// Axes of a view's input, given its own. Nothing: `wanted` holds the cut that would help, or no
  /// value when nothing would.
  std::optional<AxisMap> inwards(const Node& view, const AxisMap& axes,
                                 std::optional<Cut>& wanted) const;
  /// Axes of a view, given its input's.
  std::optional<AxisMap> outwards(const Node& view, const AxisMap& axes,
                                  std::optional<Cut>& wanted) const;

 private:
  std::optional<AxisMap> parted(const std::vector<std::int32_t>& list,
                                const std::vector<std::int64_t>& parts,
                                std::optional<Cut>& wanted) const;

  Dims sizes_;
  AxisMap scores_;
};

}  // namespace einkern::graph
