// SPDX-License-Identifier: Apache-2.0
// The program of a visibility tensor.
#pragma once

#include "lower_map.h"

namespace einkern::graph {

/// Emits the conjunction of the conditions of a Visible node, whose own axes are made of `axes`;
/// returns its register.
std::int32_t emit_visible(MapEmitter& emitter, const Node& node,
                          const MapEmitter::Environment& axes);

}  // namespace einkern::graph
