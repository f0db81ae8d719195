// SPDX-License-Identifier: Apache-2.0
// Operators and functions over numbers that a program knows when it is built.
#pragma once

#include <vector>

#include "../engine/program/words.h"

namespace einkern::fold {

using Numbers = std::vector<Value>;

// Integers stay integers where the operation has integer results; ValueError for an overflow and a
// zero divisor of `//` and `%`.
Value add(const Numbers& x);
Value subtract(const Numbers& x);
Value multiply(const Numbers& x);
Value divide(const Numbers& x);
Value floordiv(const Numbers& x);
Value mod(const Numbers& x);
Value power(const Numbers& x);
Value negative(const Numbers& x);
Value minimum(const Numbers& x);
Value maximum(const Numbers& x);
Value abs(const Numbers& x);

Value less(const Numbers& x);
Value less_equal(const Numbers& x);
Value greater(const Numbers& x);
Value greater_equal(const Numbers& x);
Value equal(const Numbers& x);
Value not_equal(const Numbers& x);

/// A function of one real number.
template <double (*F)(double)>
Value real(const Numbers& x) {
  return F(x[0].number());
}

}  // namespace einkern::fold
