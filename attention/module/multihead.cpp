// SPDX-License-Identifier: Apache-2.0
// Multi-head attention as a module: joins the weights it holds with the options of a call.
#include "multihead.h"

#include <fmt/format.h>

#include "../../engine/base/error.h"
#include "../multihead.h"
#include "../visibility.h"

namespace einkern {

MultiheadAttention::MultiheadAttention(const AttentionOptions& weights) : weights_(weights) {
  refuse_scoring("MultiheadAttention", weights);
}

AttentionResult MultiheadAttention::operator()(const Expr& query, const Expr& key,
                                               const Expr& value,
                                               const AttentionOptions& options) const {
  refuse_weights("MultiheadAttention", options);
  if (options.heads != 0 || options.kv_heads != 0 || options.head_dim != 0) {
    fail<ValueError>("MultiheadAttention: heads, kv_heads and head_dim belong to the module");
  }
  AttentionOptions joined = weights_;
  joined.mask = options.mask;
  joined.bias = options.bias;
  joined.lengths = options.lengths;
  joined.segments = options.segments;
  joined.window = options.window;
  joined.scale = options.scale;
  joined.softcap = options.softcap;
  joined.sinks = options.sinks;
  joined.causal = options.causal;
  return multihead_attention(query, key, value, joined);
}

}  // namespace einkern
