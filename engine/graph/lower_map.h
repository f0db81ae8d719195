// SPDX-License-Identifier: Apache-2.0
// Turns a tree of elementwise nodes into one map program.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <tuple>
#include <unordered_map>
#include <utility>
#include <vector>

#include "../plan/step.h"
#include "lower.h"
#include "node.h"

namespace einkern::graph {

/// Emits the instructions of elementwise nodes over one iteration space.
class MapEmitter {
 public:
  /// Iteration-space axis of each axis of a node, then of each of its open axes. kStretched: an
  /// axis of size 1 that was stretched, on which `index` is 0.
  using Environment = std::vector<std::int32_t>;
  static constexpr std::int32_t kStretched = -1;

  /// `places` knows where nodes that have memory lie; those are loaded instead of computed again.
  MapEmitter(const Dims& space, const std::unordered_map<const Node*, plan::Operand>& places,
             const std::unordered_map<const Node*, std::int32_t>& scalar_of)
      : space_(space), places_(places), scalar_of_(scalar_of) {}

  /// Emits `node` and returns the register that holds it, converted to `want`.
  std::int32_t emit(const Node* node, const Environment& environment, DType want);
  /// Emits an instruction of the caller's own.
  std::int32_t emit(const map::Instruction& instruction) { return program_.emit(instruction); }
  /// The step that writes register `result` to `out`.
  plan::Map finish(std::int32_t result, const plan::Operand& out);

 private:
  using Key = std::tuple<const Node*, DType, Environment>;
  struct Task {
    const Node* node;
    Environment environment;
    DType want;
    std::vector<std::int32_t> inputs;
    DType compute;  // what the node itself runs in
  };

  std::int32_t load(const Node& node, const Environment& environment, DType want);
  std::int32_t source(const Node& node, const Environment& environment, DType want);
  std::int32_t convert(std::int32_t reg, DType want);
  Environment input_environment(const Node& node, const Alignment& alignment,
                                const Environment& environment) const;

  const Dims& space_;
  const std::unordered_map<const Node*, plan::Operand>& places_;
  const std::unordered_map<const Node*, std::int32_t>& scalar_of_;
  map::Program program_;
  std::vector<plan::Operand> inputs_;
  std::map<Key, std::int32_t> done_;
  std::map<std::pair<const Node*, Environment>, std::int32_t> loaded_;
};

}  // namespace einkern::graph
