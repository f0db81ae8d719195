// SPDX-License-Identifier: Apache-2.0
// The step of an Attend node.
#pragma once

#include <unordered_map>

#include "../plan/builder.h"
#include "node.h"

namespace einkern::graph {

/// Where the inputs and results of an Attend node lie; `logsumexp.value` is -1 when nobody asks for
/// it, those of tables where nothing is taken.
struct AttendPlaces {
  plan::Operand q, k, v, k_table, v_table, sink, out, logsumexp;
};

/// The step that computes `node`; its scores become a map program over the finest axes.
plan::Attend lower_attend(plan::Builder& builder, const Node& node, const AttendPlaces& at,
                          const std::unordered_map<const Node*, plan::Operand>& places,
                          const std::unordered_map<const Node*, std::int32_t>& scalar_of);

}  // namespace einkern::graph
