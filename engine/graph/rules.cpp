// SPDX-License-Identifier: Apache-2.0
// The rules of the graph, each a line: its name and the function that knows it.
#include "attend_rule.h"
#include "hidden_keys.h"
#include "idle_einsum.h"
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
      // einsum("qk->kq", x), einsum("qk,q->qk", x, y)  ->  a view, a product
      {"idle einsum", idle_einsum},
      // softmax(f(einsum(q, k))) contracted with v  ->  one streamed pass
      {"attend", [](const Site& site) { return attend_rule(site); }},
      // einsum(exp(s - max(s)), v) / sum(exp(s - max(s)))  ->  the same
      {"attend, divided later", divided_rule},
      // einsum(weights, v, others...)  ->  einsum(streamed pass, others...)
      {"pair weights", pair_weights},
  };
  return rules;
}

const std::vector<Rule>& later_fusion_rules() {
  static const std::vector<Rule> rules = {
      // f(einsum(q, k)) contracted with v  ->  one streamed pass
      {"plain pair", plain_pair_rule},
  };
  return rules;
}

}  // namespace einkern::graph
