// SPDX-License-Identifier: Apache-2.0
// The functions of attention as rows: the table that programs look them up in, one row each. Here
// those of dot products and projections; variants and patterns have files of their own.
#include "words.h"

#include <utility>

#include "../engine/base/error.h"
#include "../ops/words.h"
#include "attention.h"
#include "words_options.h"

namespace einkern {
namespace {

using namespace parameters;
using A = Arguments;

Value multihead_word(const A& a) {
  AttentionOptions options = options_of(a, "multihead_attention");
  take_weights(a, options);
  if (a.has("key") != a.has("value")) {
    fail<ValueError>("multihead_attention: takes one sequence, or three: query, key, value");
  }
  if (!a.has("key")) return multihead_attention(a.tensor("x"), options);
  return record(multihead_attention(a.tensor("x"), a.tensor("key"), a.tensor("value"), options));
}

WordTable table() {
  return {
      {"dot_product_attention", "softmax(q k^T scale) v on heads that are apart",
       with({tensor("q"), tensor("k"), tensor("v")}, options_of_attention()),
       [](const A& a) -> Value {
         return record(dot_product_attention(a.tensor("q"), a.tensor("k"), a.tensor("v"),
                                             options_of(a, "dot_product_attention")));
       }},
      {"multihead_attention", "projections, heads, attention and output",
       with(with({tensor("x"), tensor("key").optional(), tensor("value").optional()},
                 weights_of_projections()),
            options_of_attention()),
       multihead_word},
      {"self_attention",
       "softmax(x Wq (x Wk)^T / sqrt(d_k)) x Wv",
       {tensor("x"), tensor("wq"), tensor("wk"), tensor("wv"), placed()},
       [](const A& a) -> Value {
         return self_attention(a.tensor("x"), a.tensor("wq"), a.tensor("wk"), a.tensor("wv"),
                               placement(a, "self_attention", "causal"));
       }},
      {"multihead_attention_list",
       "multi-head self-attention from one weight per head",
       {tensor("x"), tensors("wqs"), tensors("wks"), tensors("wvs"), tensor("wp"), placed()},
       [](const A& a) -> Value {
         return multihead_attention_list(a.tensor("x"), a.tensors("wqs"), a.tensors("wks"),
                                         a.tensors("wvs"), a.tensor("wp"),
                                         placement(a, "multihead_attention_list", "causal"));
       }},
      {"multihead_cross_attention_list",
       "the same with queries of another sequence",
       {tensor("xq"), tensor("xv"), tensors("wqs"), tensors("wks"), tensors("wvs"), tensor("wp")},
       [](const A& a) -> Value {
         return multihead_cross_attention_list(a.tensor("xq"), a.tensor("xv"), a.tensors("wqs"),
                                               a.tensors("wks"), a.tensors("wvs"), a.tensor("wp"));
       }},
      {"multihead_attention_vec",
       "multi-head self-attention from one fused weight",
       {tensor("x"), tensor("wqkv"), tensor("wp"), integer("heads"), placed()},
       [](const A& a) -> Value {
         return multihead_attention_vec(a.tensor("x"), a.tensor("wqkv"), a.tensor("wp"),
                                        a.integer("heads"),
                                        placement(a, "multihead_attention_vec", "causal"));
       }},
  };
}

}  // namespace

const WordTable& attention_words() {
  static const WordTable kTable = [] {
    WordTable rows = table();
    for (Word& row : pattern_words()) rows.push_back(std::move(row));
    for (Word& row : variant_words()) rows.push_back(std::move(row));
    for (Word& row : module_words()) rows.push_back(std::move(row));
    return rows;
  }();
  return kTable;
}

}  // namespace einkern
