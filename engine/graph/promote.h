// SPDX-License-Identifier: Apache-2.0
// The dtype of an elementwise result, and the dtype its operands are computed in.
#pragma once

#include <string>
#include <vector>

#include "../map/program.h"
#include "node.h"

namespace einkern::graph {

/// A dtype and whether it is weak (takes the dtype of what it meets).
struct ElementType {
  DType dtype;
  bool weak;
};

/// Common type of two operands: a weak one never widens a float; a weak float with an integer or
/// bool gives f64; two weak ones stay weak.
ElementType combine(const ElementType& a, const ElementType& b);

/// Type of `op` over operands of these types. TypeError naming `function`: logic on numbers, an
/// ordered comparison of bool, a condition that is not bool.
ElementType result_type(const char* function, map::Op op, const std::vector<ElementType>& operands);

/// The dtype that operand `i` is converted to before `op` runs.
DType operand_dtype(map::Op op, DType result, const std::vector<ElementType>& operands,
                    std::size_t i);

/// TypeError unless floats: what softmax and friends compute in (integers in f64).
DType float_dtype(DType dtype);

}  // namespace einkern::graph
