// SPDX-License-Identifier: Apache-2.0
// The abstract evaluation of a program: from a box of elements to what every register may hold.
#pragma once

#include <cstdint>
#include <limits>
#include <span>
#include <vector>

#include "program.h"

namespace einkern::map {

/// What a register may hold over a box: a number in [low, high] (infinities are numbers, a boolean
/// is 0 or 1, the sign of zero is not told) or, if `maybe_nan`, NaN. `low > high` says surely NaN.
struct Range {
  double low = 0, high = 0;
  bool maybe_nan = false;
  friend bool operator==(const Range&, const Range&) = default;
};

/// The range of an input of which nothing is known.
inline constexpr Range kAnything{-std::numeric_limits<double>::infinity(),
                                 std::numeric_limits<double>::infinity(), true};

/// Positions of one axis in a box, both ends included; never empty.
struct IndexRange {
  std::int64_t first = 0, last = 0;
};

/// Ranges of all registers over a box, by position: `axes` by `arg` of index, `inputs` by `arg` of
/// load (what an integer input's dtype cannot hold is left out, and ends of i64 inputs may have
/// been rounded to the nearest double), `scalars` by `arg` of scalar.
///
/// No element of the box contradicts them, whichever target's kernels compute it and whether or
/// not they flush denormals (floordiv of floats excepted); elements at which an integer operation
/// faults have no value. Operands are taken as independent. Ends are computed with the operations
/// and in the dtype of the kernels: arithmetic of floats has exact ends, exp and its relatives are
/// widened by the kernels' error, and i64 is exact up to 2^53 and rounded outward beyond.
std::vector<Range> evaluate_ranges(const Program& program, std::span<const IndexRange> axes,
                                   std::span<const Range> inputs, std::span<const Scalar> scalars);
/// The same into a vector whose memory is used again.
void evaluate_ranges(const Program& program, std::span<const IndexRange> axes,
                     std::span<const Range> inputs, std::span<const Scalar> scalars,
                     std::vector<Range>& ranges);

/// The program for the elements of a box with these ranges of its registers: selections (and
/// `logical_and`, `logical_or`) with a decided condition become the operand taken, and what nothing
/// reads any more is removed. Same bits on every element of the box; same inputs, axes and scalars.
/// What is removed no longer faults.
Program specialise(const Program& program, const std::vector<Range>& ranges);

/// Whether an integer operation or a cast may fault somewhere on the box (overflow, a divisor of 0,
/// a negative power, out of range): then `specialise`, or leaving the box out, may hide an error.
bool may_fault(const Program& program, const std::vector<Range>& ranges);

/// Whether every element is exactly -inf: as a score, a hidden key.
bool is_minus_infinity(const Range& range) noexcept;
/// Whether a boolean is true, or false, on every element.
bool is_surely_true(const Range& range) noexcept;
bool is_surely_false(const Range& range) noexcept;

}  // namespace einkern::map
