// SPDX-License-Identifier: Apache-2.0
// Keys and values that a table picks, read by the fused step where they lie.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "exponentials.h"

namespace einkern::graph {

/// What a take says of a position (`{}`) that is not on its axis.
std::string position_message(std::size_t axis, std::int64_t size);

/// An operand as elements of another tensor at the positions that a table holds.
struct TakenPlace {
  NodePtr from, table;  // the table checked
  Attend::Taken taken;
};

/// What stands behind the views of an operand of dtype `dtype` (or a half one, which is widened as
/// it is read), when that is elements taken by a table. The streamed axes may be cut for it (pages
/// and positions within them), without cutting them for the scores; for others `wanted` holds the
/// cut that would help.
std::optional<TakenPlace> behind_take(const Place& operand, DType dtype, const ScoreAxes& axes,
                                      const std::vector<bool>& streamed,
                                      std::optional<Cut>& wanted);

}  // namespace einkern::graph
