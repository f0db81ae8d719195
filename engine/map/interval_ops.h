// SPDX-License-Identifier: Apache-2.0
// Ranges of single operations: floats in their own rounding, integers exactly.
#pragma once

#include "interval.h"

namespace einkern::map {

/// Range of arithmetic or a function of floats; `b` is ignored by operations of one operand. Both
/// operands have ends that `dtype` (f32 or f64) holds, as has the result.
Range real_range(Op op, DType dtype, const Range& a, const Range& b);
/// The range with its ends rounded outward to what a float `dtype` holds.
Range fit_real(const Range& range, DType dtype);
/// Range of elements converted to a float `dtype`: rounded to nearest, as the elements are.
Range round_to_real(const Range& range, DType dtype);

/// Range of i64 arithmetic over the pairs of operands that do not fault.
Range integer_range(Op op, const Range& a, const Range& b);
/// Whether some pair of operands may fault.
bool integer_may_fault(Op op, const Range& a, const Range& b);
/// Whether the range may hold more than an integer `dtype` does: fractions aside, which are cut.
bool exceeds(const Range& range, DType dtype);
/// The integers of the range that an integer `dtype` or bool holds; all it holds when there are
/// none, since then every element faults.
Range fit_integer(const Range& range, DType dtype);
/// Integers from first to last, with ends rounded outward where a double cannot hold them.
Range integers(std::int64_t first, std::int64_t last);

}  // namespace einkern::map
