// SPDX-License-Identifier: Apache-2.0
// Turns a tree of elementwise nodes into one map program.
#pragma once

#include <cstdint>
#include <map>
#include <tuple>
#include <unordered_map>
#include <utility>
#include <vector>

#include "../plan/builder.h"
#include "../plan/step.h"
#include "lower.h"
#include "node.h"

namespace einkern::graph {

/// Emits the instructions of elementwise nodes over one iteration space.
class MapEmitter {
 public:
  /// For each axis of a node, then for each of its open axes: the axes of the iteration space that
  /// it is made of, outermost first (several where axes were merged). Empty: an axis of size 1 that
  /// was stretched, on which `index` is 0.
  using Environment = std::vector<std::vector<std::int32_t>>;

  /// `places` knows where nodes that have memory lie; those are loaded instead of computed again.
  /// The first `reserved` loads are the caller's (`Dot` is load 0).
  MapEmitter(plan::Builder& builder, const Dims& space,
             const std::unordered_map<const Node*, plan::Operand>& places,
             const std::unordered_map<const Node*, std::int32_t>& scalar_of,
             std::int32_t reserved = 0)
      : builder_(builder),
        space_(space),
        places_(places),
        scalar_of_(scalar_of),
        reserved_(reserved) {}

  /// Every axis of a node as one axis of the iteration space.
  static Environment own_axes(const Node& node);

  /// Emits `node` and returns the register that holds it, converted to `want`.
  std::int32_t emit(const Node* node, const Environment& environment, DType want);
  /// Emits an instruction of the caller's own.
  std::int32_t emit(const map::Instruction& instruction) { return program_.emit(instruction); }
  /// The program whose result is register `result`; the emitter is left without one.
  map::Program take_program(std::int32_t result);
  /// The operands that the program loads, from load `reserved` on.
  const std::vector<plan::Operand>& inputs() const noexcept { return inputs_; }

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
  std::int32_t integer(std::int64_t value);
  Environment input_environment(const Node& node, const Alignment& alignment,
                                const Environment& environment) const;

  plan::Builder& builder_;
  const Dims& space_;
  const std::unordered_map<const Node*, plan::Operand>& places_;
  const std::unordered_map<const Node*, std::int32_t>& scalar_of_;
  std::int32_t reserved_;
  map::Program program_;
  std::vector<plan::Operand> inputs_;
  std::map<Key, std::int32_t> done_;
  std::map<std::pair<const Node*, Environment>, std::int32_t> loaded_;
};

}  // namespace einkern::graph
