// SPDX-License-Identifier: Apache-2.0
// Attention as a loop over (batch, head, query) in double, straight from the definitions.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <utility>

#include "../support/arrays.h"

namespace einkern::test {

/// Everything that can shape the scores. Arrays broadcast from the right to (b, h, q, k).
struct OracleOptions {
  std::optional<Array> mask = {};  // 0 hides
  std::optional<Array> bias = {};
  std::optional<Array> lengths = {};                     // (b)
  std::optional<std::pair<Array, Array>> segments = {};  // (b, q) and (b, k)
  std::optional<std::pair<std::int64_t, std::int64_t>> window = {};
  std::optional<double> scale = {};
  std::optional<double> softcap = {};
  std::optional<Array> sinks = {};          // (h)
  std::optional<std::int64_t> offset = {};  // k <= q + offset
  bool bottom_right = false;
};

struct OracleResult {
  Array output, weights, logsumexp;  // (b, h, q, e), (b, h, q, k), (b, h, q)
};

/// q (b, h, q, d), k (b, g, k, d), v (b, g, k, e), with g a divisor of h.
OracleResult attention_oracle(const Array& q, const Array& k, const Array& v,
                              const OracleOptions& options = {});

/// x (..., i) times w (i, o) plus bias (o).
Array linear_oracle(const Array& x, const Array& w, const std::optional<Array>& bias = {});
/// (b, n, h d) as (b, h, n, d), and back.
Array heads_apart(const Array& x, std::int64_t heads);
Array heads_together(const Array& x);

}  // namespace einkern::test
