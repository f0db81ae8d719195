// SPDX-License-Identifier: Apache-2.0
// The rules of the graph, each a line: its name and the function that knows it.
#include "attend_rule.h"
#include "hidden_keys.h"
#include "pair_weights.h"
#include "rewrite.h"

namespace einkern::graph {

const std::vector<Rule>& semantic_rules() {
  static const std::vector<Rule> rules = {
      // sum_k softmax(where(c, s, -inf))[k] v[k]  ->  the same over keys with c only
      {"hidden keys", hidden_keys},
  };
  return rules;
}

const std::vector<Rule>& fusion_rules() {
  static const std::vector<Rule> rules = {
      // softmax(f(einsum(q, k))) contracted with v  ->  one streamed pass
      {"attend", attend_rule},
      // einsum(weights, v, others...)  ->  einsum(streamed pass, others...)
      {"pair weights", pair_weights},
  };
  return rules;
}

}  // namespace einkern::graph
