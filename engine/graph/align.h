// SPDX-License-Identifier: Apache-2.0
// Which axis of one operand meets which axis of the other in an elementwise operation.
#pragma once

#include <string>

#include "node.h"

namespace einkern::graph {

/// The axes of an elementwise result and where the two operands' axes went.
struct Aligned {
  Type type;  // shape, labels, open and named; dtype is the caller's
  Alignment first, second;
};

/// Two ordinary operands align by position from the right; a named term (labels given on purpose,
/// or open axes) aligns by name with the axes of an ordinary operand; named terms among themselves
/// make the union of their labels. A 0-d operand meets anything. ShapeError naming `function`:
/// sizes that differ, axes at one position with two labels, a label that the other operand lacks.
Aligned align(const char* function, const Type& first, const Type& second);

/// The alignment that leads through `inner` and then `outer`.
Alignment compose(const Alignment& inner, const Alignment& outer);

/// "(b, h, q, 64)": labels where there are any, sizes elsewhere.
std::string axes_text(const Type& type);

}  // namespace einkern::graph
