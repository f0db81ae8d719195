// SPDX-License-Identifier: Apache-2.0
// Sigmoid attention, as its formula.
#include "sigmoid.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "../engine/base/error.h"
#include "../ops/ops.h"
#include "attend.h"
#include "project.h"
#include "visibility.h"

namespace einkern {

SigmoidResult sigmoid_attention(const Expr& q, const Expr& k, const Expr& v,
                                const AttentionOptions& options,
                                const std::optional<double>& shift) {
  constexpr const char* kName = "sigmoid_attention";
  refuse_weights(kName, options);
  if (options.sinks) fail<ValueError>(fmt::format("{}: option sinks needs a softmax", kName));
  const Expr s = masked_scores(kName, q, k, v, options);
  const std::int64_t keys = s.shape().back();
  if (!shift && keys < 0) {
    fail<ValueError>(fmt::format("{}: without a known number of keys, shift must be given", kName));
  }
  const double by = shift.value_or(std::log(static_cast<double>(std::max<std::int64_t>(1, keys))));
  const Expr p = sigmoid(s - by);
  return {labelled_as(weighted_sum(p, v), q, v.labels()[v.rank() - 1]), p};
}

}  // namespace einkern
