// SPDX-License-Identifier: Apache-2.0
// Normalised queries and keys, as their formulas.
#include "qk_norm.h"

#include <fmt/format.h>

#include "../engine/base/error.h"
#include "../ops/ops.h"
#include "attend.h"
#include "visibility.h"

namespace einkern {
namespace {

/// x / max(|x|, tiny) over the features: a vector of zeros stays.
Expr unit(const Expr& x) {
  constexpr double kTiny = 1e-12;
  return x / maximum(sqrt(sum(x * x, -1, {.keep = true})), kTiny);
}

}  // namespace

AttentionResult qk_norm_attention(const Expr& q, const Expr& k, const Expr& v,
                                  const NormOptions& norm_q, const NormOptions& norm_k,
                                  const AttentionOptions& options) {
  refuse_weights("qk_norm_attention", options);
  return attend("qk_norm_attention", rms_norm(q, -1, norm_q), rms_norm(k, -1, norm_k), v, options);
}

AttentionResult cosine_attention(const Expr& q, const Expr& k, const Expr& v,
                                 const AttentionOptions& options) {
  constexpr const char* kName = "cosine_attention";
  refuse_weights(kName, options);
  if (!options.scale) fail<ValueError>(fmt::format("{}: scale is missing; it is learned", kName));
  return attend(kName, unit(q), unit(k), v, options);
}

}  // namespace einkern
