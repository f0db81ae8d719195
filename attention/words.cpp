// SPDX-License-Identifier: Apache-2.0
// The functions of attention as rows: the table that programs look them up in. One row each.
#include "words.h"

#include <utility>

#include "../engine/base/error.h"
#include "../ops/words.h"
#include "attention.h"

namespace einkern {
namespace {

using namespace parameters;
using A = Arguments;

std::vector<Parameter> with(std::vector<Parameter> first, std::vector<Parameter> more) {
  for (Parameter& parameter : more) first.push_back(std::move(parameter));
  return first;
}

Parameter placed() { return choice("causal", {"top_left", "bottom_right"}).optional(); }

/// Members of AttentionOptions that say what is visible and how scores are made.
std::vector<Parameter> scoring() {
  return {tensor("mask").optional().by_name(),
          tensor("bias").optional().by_name(),
          tensor("lengths").optional().by_name(),
          any("segments").optional().by_name(),
          integers("window").optional().by_name(),
          number("scale").optional().by_name(),
          number("softcap").optional().by_name(),
          tensor("sinks").optional().by_name(),
          placed().by_name()};
}

/// Weights and numbers of heads.
std::vector<Parameter> weights() {
  std::vector<Parameter> list;
  for (const char* name :
       {"qkv", "q", "k", "v", "out", "qkv_bias", "q_bias", "k_bias", "v_bias", "out_bias"}) {
    list.push_back(tensor(name).optional().by_name());
  }
  return list;
}
std::vector<Parameter> heads() {
  return {integer("heads").standard("0").by_name(), integer("kv_heads").standard("0").by_name(),
          integer("head_dim").standard("0").by_name()};
}

std::optional<Segments> segments_of(const A& a, const char* function) {
  if (!a.has("segments")) return {};
  const Value& value = a.value("segments");
  if (const auto* both = value.as<Expr>()) return Segments(*both);
  if (const auto* list = value.as<Value::List>(); list != nullptr && list->size() == 2) {
    const auto *q = (*list)[0].as<Expr>(), *k = (*list)[1].as<Expr>();
    if (q != nullptr && k != nullptr) return Segments(*q, *k);
  }
  fail<ValueError>(std::string(function) +
                   ": segments are a tensor for both sides, or a list of two, [queries, keys]");
}

std::optional<Window> window_of(const A& a, const char* function) {
  if (!a.has("window")) return {};
  const std::vector<std::int64_t> sides = a.integers("window");
  if (sides.size() != 2) {
    fail<ValueError>(std::string(function) + ": a window is a list of two, [left, right]");
  }
  return Window{sides[0], sides[1]};
}

AttentionOptions scoring_of(const A& a, const char* function) {
  return {.mask = a.maybe_tensor("mask"),
          .bias = a.maybe_tensor("bias"),
          .lengths = a.maybe_tensor("lengths"),
          .segments = segments_of(a, function),
          .window = window_of(a, function),
          .scale = a.maybe_number("scale"),
          .softcap = a.maybe_number("softcap"),
          .sinks = a.maybe_tensor("sinks"),
          .causal = placement(a, function, "causal")};
}

AttentionOptions all_options(const A& a, const char* function) {
  AttentionOptions options = scoring_of(a, function);
  options.qkv = a.maybe_tensor("qkv");
  options.q = a.maybe_tensor("q");
  options.k = a.maybe_tensor("k");
  options.v = a.maybe_tensor("v");
  options.out = a.maybe_tensor("out");
  options.qkv_bias = a.maybe_tensor("qkv_bias");
  options.q_bias = a.maybe_tensor("q_bias");
  options.k_bias = a.maybe_tensor("k_bias");
  options.v_bias = a.maybe_tensor("v_bias");
  options.out_bias = a.maybe_tensor("out_bias");
  options.heads = a.integer("heads");
  options.kv_heads = a.integer("kv_heads");
  options.head_dim = a.integer("head_dim");
  return options;
}

Value record(const AttentionResult& result) {
  return Value::Record{{"output", "weights", "logsumexp"},
                       {result.output, result.weights, result.logsumexp}};
}

Value multihead_word(const A& a) {
  const AttentionOptions options = all_options(a, "multihead_attention");
  if (a.has("key") != a.has("value")) {
    fail<ValueError>("multihead_attention: takes one sequence, or three: query, key, value");
  }
  if (!a.has("key")) return multihead_attention(a.tensor("x"), options);
  return record(multihead_attention(a.tensor("x"), a.tensor("key"), a.tensor("value"), options));
}

WordTable table() {
  return {
      {"dot_product_attention", "softmax(q k^T scale) v on heads that are apart",
       with(with({tensor("q"), tensor("k"), tensor("v")}, heads()), scoring()),
       [](const A& a) -> Value {
         AttentionOptions options = scoring_of(a, "dot_product_attention");
         options.heads = a.integer("heads");
         options.kv_heads = a.integer("kv_heads");
         options.head_dim = a.integer("head_dim");
         return record(dot_product_attention(a.tensor("q"), a.tensor("k"), a.tensor("v"), options));
       }},
      {"multihead_attention", "projections, heads, attention and output",
       with(with(with({tensor("x"), tensor("key").optional(), tensor("value").optional()},
                      weights()),
                 heads()),
            scoring()),
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
  static const WordTable kTable = table();
  return kTable;
}

}  // namespace einkern
