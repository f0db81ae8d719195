// SPDX-License-Identifier: Apache-2.0
// Relative position biases: buckets of distances, rows of a table, and a Toeplitz view.
#include "relative.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>

#include "../engine/base/error.h"
#include "../engine/tensor/create.h"
#include "../ops/ops.h"

namespace einkern {
namespace {

std::int64_t bucket_of(std::int64_t difference, const Buckets& buckets) {
  const std::int64_t half = buckets.bidirectional ? buckets.count / 2 : buckets.count;
  const std::int64_t base = buckets.bidirectional && difference > 0 ? half : 0;
  const std::int64_t distance =
      buckets.bidirectional ? std::abs(difference) : std::max<std::int64_t>(0, -difference);
  const std::int64_t small = half / 2;
  if (distance < small) return base + distance;
  const double growth =
      std::log(static_cast<double>(distance) / static_cast<double>(small)) /
      std::log(static_cast<double>(buckets.max_distance) / static_cast<double>(small));
  // Distances that are exact powers fall onto the edge of a bucket and belong to the next one.
  constexpr double kEdge = 1e-9;
  const auto step = static_cast<std::int64_t>(growth * static_cast<double>(half - small) + kEdge);
  return base + std::min(half - 1, small + step);
}

}  // namespace

Tensor relative_buckets(std::int64_t queries, std::int64_t keys, const Buckets& buckets) {
  const std::int64_t half = buckets.bidirectional ? buckets.count / 2 : buckets.count;
  if (half < 2 || (buckets.bidirectional && buckets.count % 2 != 0) ||
      buckets.max_distance <= half / 2) {
    fail<ValueError>(fmt::format("relative_buckets: {} buckets up to a distance of {}",
                                 buckets.count, buckets.max_distance));
  }
  if (queries < 1 || keys < 0 || keys > INT64_MAX - queries) {
    fail<ShapeError>(fmt::format("relative_buckets: {} queries and {} keys", queries, keys));
  }
  Tensor numbers = empty({queries + keys - 1}, i64);
  auto* number = numbers.data<std::int64_t>();
  for (std::int64_t difference = 1 - queries; difference < keys; ++difference) {
    *number++ = bucket_of(difference, buckets);
  }
  return numbers;
}

Expr relative_bias(const Expr& differences, std::int64_t queries) {
  if (differences.rank() != 1 && differences.rank() != 2) {
    fail<ShapeError>(fmt::format("relative_bias: differences {} need one axis, or heads before it",
                                 to_string(differences.shape())));
  }
  return named(toeplitz(unnamed(differences), -1, queries), differences.rank() == 1 ? "qk" : "hqk");
}

Expr bucketed_bias(const Expr& table, std::int64_t queries, std::int64_t keys,
                   const Buckets& buckets) {
  if (table.rank() != 2 || table.shape()[0] != buckets.count) {
    fail<ShapeError>(fmt::format("bucketed_bias: table {} for {} buckets; it is (buckets, h)",
                                 to_string(table.shape()), buckets.count));
  }
  const Tensor rows = relative_buckets(queries, keys, buckets);
  return relative_bias(permute(take(unnamed(table), rows, 0), {1, 0}), queries);
}

}  // namespace einkern
