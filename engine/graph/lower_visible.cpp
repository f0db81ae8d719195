// SPDX-License-Identifier: Apache-2.0
// Conditions under which scores are not hidden, as one program.
#include "lower_visible.h"

namespace einkern::graph {

std::int32_t emit_visible(MapEmitter& emitter, const Node& node,
                          const MapEmitter::Environment& axes) {
  const auto& op = std::get<Visible>(node.op);
  std::int32_t all = -1;
  for (std::size_t i = 0; i < node.inputs.size(); ++i) {
    MapEmitter::Environment environment;
    const Dims& shape = node.inputs[i]->type.shape;
    for (std::size_t d = 0; d < op.alignment[i].axes.size(); ++d) {
      const auto axis = static_cast<std::size_t>(op.alignment[i].axes[d]);
      environment.push_back(shape[d] == 1 ? std::vector<std::int32_t>{} : axes[axis]);
    }
    for (const std::int32_t axis : op.alignment[i].open) {
      environment.push_back(axes[static_cast<std::size_t>(axis)]);
    }
    std::int32_t one = emitter.emit(node.inputs[i].get(), environment, DType::boolean);
    if (op.negated[i]) one = emitter.emit({map::Op::logical_not, DType::boolean, one});
    all = all < 0 ? one : emitter.emit({map::Op::logical_and, DType::boolean, all, one});
  }
  return all;
}

}  // namespace einkern::graph
