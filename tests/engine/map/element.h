// SPDX-License-Identifier: Apache-2.0
// A program's values at one element, by definition: the reference for ranges and kernels.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "../../../engine/map/interval.h"

namespace einkern::test {

/// The value of one register: `real` of a float (f32 in a double), else `integer`.
struct Value {
  double real = 0;
  std::int64_t integer = 0;
};

/// One element of the box.
struct Element {
  std::vector<std::int64_t> positions;
  std::vector<Value> inputs;
};

/// The float of this dtype nearest to x.
double rounded(double x, DType dtype);

/// Value of every register; none where the element has no value (a fault, or an operand without).
std::vector<std::optional<Value>> evaluate(const map::Program& program, const Element& element,
                                           std::span<const map::Scalar> scalars);

/// Whether the range says that a register of this dtype cannot hold the value.
bool contradicts(const map::Range& range, DType dtype, const Value& value);

/// Equal bits, but for what NaN carries.
bool same_bits(DType dtype, const Value& a, const Value& b);

}  // namespace einkern::test
