// SPDX-License-Identifier: Apache-2.0
// Dropout as a selection by random bits, which are arithmetic on positions.
#include "dropout.h"

#include <fmt/format.h>

#include <cmath>

#include "../engine/base/error.h"
#include "../engine/graph/build.h"
#include "elementwise.h"
#include "index.h"

namespace einkern {
namespace {

/// Random bits of every element of a tensor of this rank: two axes make a counter, and those in
/// front of them the key. No size takes part, so that unknown ones do not matter.
Expr random_bits(std::size_t rank, const Expr& seed) {
  Expr bits = seed;
  // From the outermost pair inwards; an odd rank has one axis in its outermost pair.
  for (auto left = static_cast<std::int64_t>(rank); left > 0; left -= left % 2 == 0 ? 2 : 1) {
    const Expr counter =
        left % 2 == 0 ? index(1 - left) + index(-left) * (std::int64_t{1} << 32) : index(-left);
    bits = graph::elementwise("dropout", map::Op::random, {counter, bits});
  }
  return rank == 0 ? graph::elementwise("dropout", map::Op::random, {0, seed}) : bits;
}

}  // namespace

Expr dropout(const Expr& x, double p, const Expr& seed) {
  if (!(p >= 0 && p <= 1)) {
    fail<ValueError>(fmt::format("dropout: p is {}; it must be between 0 and 1", p));
  }
  if (!is_integer(seed.dtype())) {
    fail<TypeError>(fmt::format("dropout: seed is {}, not an integer", name_of(seed.dtype())));
  }
  if (seed.rank() != 0) {
    fail<ShapeError>(fmt::format("dropout: seed has shape {}, not ()", to_string(seed.shape())));
  }
  const auto kept = static_cast<std::int64_t>(std::ldexp(1 - p, 62));  // of 2^62
  const Expr scaled = x * (p < 1 ? 1 / (1 - p) : 0.0);
  return where(random_bits(x.rank(), seed) < kept, scaled, 0);
}

}  // namespace einkern
