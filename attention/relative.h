// SPDX-License-Identifier: Apache-2.0
// Relative position bias: a learned number for each head and distance.
#pragma once

#include <cstdint>

#include "options.h"

namespace einkern {

/// How distances fall into buckets.
struct Buckets {
  std::int64_t count = 32;          // even when bidirectional
  std::int64_t max_distance = 128;  // from here on everything falls into the last bucket
  bool bidirectional = true;        // false: keys after the query fall into bucket 0
};

/// The bucket of every difference k - q from -(queries - 1) to keys - 1, as i64 (queries + keys -
/// 1): half of the buckets one distance each, the others growing as logarithms. Errors: ValueError
/// for fewer than two buckets (four when bidirectional), an odd number of them when bidirectional,
/// or a max_distance that is not beyond the small ones. Source: Raffel et al., "Exploring the
/// limits of transfer learning", 2019, section 2.1 and its published implementation.
Tensor relative_buckets(std::int64_t queries, std::int64_t keys, const Buckets& buckets = {});

/// A bias by distance, `differences` (h, queries + keys - 1) or (queries + keys - 1), as scores
/// (h, q, k) that are a view of it: for the option `bias`. Source: Shaw et al., "Self-attention
/// with relative position representations", 2018.
Expr relative_bias(const Expr& differences, std::int64_t queries);

/// The bias of a learned `table` (buckets, h): one row for each bucket. Memory: one number for each
/// head and difference. Errors: ShapeError unless the table has `count` rows.
Expr bucketed_bias(const Expr& table, std::int64_t queries, std::int64_t keys,
                   const Buckets& buckets = {});

}  // namespace einkern
