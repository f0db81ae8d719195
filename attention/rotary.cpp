// SPDX-License-Identifier: Apache-2.0
// Rotary attention, as its formula.
#include "rotary.h"

#include "attend.h"
#include "visibility.h"

namespace einkern {

AttentionResult rotary_attention(const Expr& q, const Expr& k, const Expr& v,
                                 const RopeOptions& rope_q, const RopeOptions& rope_k,
                                 const AttentionOptions& options) {
  refuse_weights("rotary_attention", options);
  return attend("rotary_attention", rope(q, rope_q), rope(k, rope_k), v, options);
}

}  // namespace einkern
