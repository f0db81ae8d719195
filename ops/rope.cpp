// SPDX-License-Identifier: Apache-2.0
// Rotary position embedding: a table of angles, and one pass over x and x with its pairs exchanged.
#include "rope.h"

#include <fmt/format.h>

#include <cmath>

#include "../engine/base/error.h"
#include "../engine/graph/build.h"
#include "elementwise.h"
#include "index.h"
#include "shape.h"

namespace einkern {
namespace {

constexpr const char* kName = "rope";

/// 0, 1, ... along a new axis.
Expr counted(std::int64_t size) { return expand(Expr(0), "", size) + index(-1); }

/// The rows of x counted, as (..., n): a size that is not known yet is taken from x itself.
Expr counted_rows(const Expr& x) {
  const Shape& shape = x.shape();
  if (shape[x.rank() - 2] >= 0) return counted(shape[x.rank() - 2]);
  Expr one = slice(x, -1, 0, 1);
  for (std::size_t d = 0; d + 2 < x.rank(); ++d) {
    if (shape[d] > 1) one = slice(one, static_cast<std::int64_t>(d), 0, 1);
  }
  return merge(where(one == one, index(-2), index(-2)), {-2, -1});
}

/// Positions as f64 that meet all axes of x but the last from the right.
Expr rows_of(const Expr& x, const RopeOptions& options) {
  if (!options.positions) return graph::cast(counted_rows(x), f64);
  Expr rows = unnamed(*options.positions);
  if (rows.rank() == 0) return graph::cast(counted_rows(x) + rows, f64);
  const std::size_t behind = rows.rank() - 1;  // of the leading axes
  bool fits = behind + 2 <= x.rank() && rows.shape().back() == x.shape()[x.rank() - 2];
  for (std::size_t d = 0; fits && d < behind; ++d) {
    fits = rows.shape()[d] == 1 || rows.shape()[d] == x.shape()[d];
  }
  if (!fits) {
    fail<ShapeError>(fmt::format("{}: positions {} do not fit the rows of x {}", kName,
                                 to_string(rows.shape()), to_string(x.shape())));
  }
  while (rows.rank() + 1 < x.rank()) rows = graph::expand(kName, rows, behind, "", 1);
  return graph::cast(rows, f64);
}

Expr frequencies_of(const RopeOptions& options, std::int64_t pairs) {
  if (options.frequencies) {
    const Expr& given = *options.frequencies;
    if (given.rank() != 1 || given.shape()[0] != pairs) {
      fail<ShapeError>(fmt::format("{}: frequencies {} for {} pairs of features", kName,
                                   to_string(given.shape()), pairs));
    }
    return graph::cast(unnamed(given), f64);
  }
  return exp(graph::cast(counted(pairs), f64) *
             (-std::log(options.base) / static_cast<double>(pairs)));
}

void check(const Expr& x, const RopeOptions& options, std::int64_t dims) {
  if (x.rank() < 2) {
    fail<ShapeError>(fmt::format("{}: x {} has no axis of rows and one of features", kName,
                                 to_string(x.shape())));
  }
  if (dims < 0 || dims % 2 != 0 || dims > x.shape().back()) {
    fail<ValueError>(fmt::format("{}: dims is {}; {} features have an even number of them to turn",
                                 kName, dims, x.shape().back()));
  }
  if (!(options.base > 0) || !(options.scale > 0)) {
    fail<ValueError>(fmt::format("{}: base is {} and scale {}; both must be positive", kName,
                                 options.base, options.scale));
  }
}

}  // namespace

Expr rope(const Expr& x, const RopeOptions& options) {
  if (x.rank() > 0 && x.shape().back() < 0) {
    fail<ShapeError>(fmt::format("{}: the number of features must be known", kName));
  }
  const std::int64_t features = x.rank() == 0 ? 0 : x.shape().back();
  const std::int64_t dims = options.dims == 0 ? features : options.dims;
  check(x, options, dims);
  if (dims == 0) return x;
  const Expr plain = unnamed(x);

  // Pairs (p, j) or (j, p); exchanged, they run backwards along p.
  const std::int64_t at = options.interleaved ? -1 : -2;
  const Expr turned = dims == features ? plain : slice(plain, -1, 0, dims);
  const Expr pairs = options.interleaved ? split(turned, -1, {"", ""}, {dims / 2, 2})
                                         : split(turned, -1, {"", ""}, {2, dims / 2});
  const Expr exchanged = slice(pairs, at, {}, {}, -1);

  const Expr rows = rows_of(plain, options) / options.scale;
  const Expr angle =
      graph::expand(kName, rows, rows.rank(), "", 1) * frequencies_of(options, dims / 2);
  const auto table = [&](const Expr& values) {
    const DType dtype = is_float(x.dtype()) ? compute_dtype(x.dtype()) : f64;
    const std::size_t before = angle.rank() - (options.interleaved ? 0 : 1);
    return graph::expand(kName, graph::cast(values, dtype), before, "", 1);
  };
  const Expr sign = 2 * index(at) - 1;  // of x itself: in a table the axis has size 1
  const Expr rotated =
      merge(pairs * table(cos(angle)) + exchanged * sign * table(sin(angle)), {-2, -1});
  const Expr y = dims == features ? rotated : concat({rotated, slice(plain, -1, dims)}, -1);
  return graph::relabel(kName, y, x.labels().to_vector(x.rank()), false);
}

double rope_ntk_base(double base, double factor, std::int64_t dims) {
  if (dims <= 2 || !(base > 0) || !(factor > 0)) {
    fail<ValueError>(
        fmt::format("rope_ntk_base: base is {}, factor {}, dims {}; the first two "
                    "must be positive, dims more than 2",
                    base, factor, dims));
  }
  const auto d = static_cast<double>(dims);
  return base * std::pow(factor, d / (d - 2));
}

}  // namespace einkern
