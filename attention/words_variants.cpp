// SPDX-License-Identifier: Apache-2.0
// Variants of attention as rows for programs.
#include <string>
#include <string_view>
#include <utility>

#include "../engine/base/error.h"
#include "../ops/words.h"
#include "attention.h"
#include "words_options.h"

namespace einkern {
namespace {

using namespace parameters;
using A = Arguments;

std::vector<Parameter> q_k_v() { return {tensor("q"), tensor("k"), tensor("v")}; }

/// `parameters` but for the one of a name, which the word itself has.
std::vector<Parameter> without(std::vector<Parameter> parameters, std::string_view name) {
  std::erase_if(parameters, [&](const Parameter& p) { return p.name == name; });
  return parameters;
}

// Queries and keys are turned alike, but for their positions.
std::vector<Parameter> rotation() {
  return {
      number("base").standard("10000").by_name(),      integer("dims").standard("0").by_name(),
      flag("interleaved").standard("false").by_name(), tensor("positions_q").optional().by_name(),
      tensor("positions_k").optional().by_name(),      number("rope_scale").standard("1").by_name(),
      tensor("frequencies").optional().by_name()};
}
RopeOptions rotation_of(const A& a, const char* positions) {
  return {.base = a.number("base"),
          .dims = a.integer("dims"),
          .interleaved = a.flag("interleaved"),
          .positions = a.maybe_tensor(positions),
          .scale = a.number("rope_scale"),
          .frequencies = a.maybe_tensor("frequencies")};
}

Packed offsets_of(const A& a) {
  const Value& value = a.value("offsets");
  if (const auto* both = value.as<Expr>()) return Packed(*both);
  if (const auto* list = value.as<Value::List>(); list != nullptr && list->size() == 2) {
    const auto *q = (*list)[0].as<Expr>(), *k = (*list)[1].as<Expr>();
    if (q != nullptr && k != nullptr) return Packed(*q, *k);
  }
  fail<ValueError>(
      "varlen_attention: offsets are a tensor for both sides, or a list of two, [queries, keys]");
}

/// Output and logsumexp out of the result of attention, or a list of the two.
PartialAttention part_of(const A& a, const char* name) {
  const Expr *output = nullptr, *logsumexp = nullptr;
  if (const auto* record = a.value(name).as<Value::Record>()) {
    for (std::size_t i = 0; i < record->names.size(); ++i) {
      if (record->names[i] == "output") output = record->values[i].as<Expr>();
      if (record->names[i] == "logsumexp") logsumexp = record->values[i].as<Expr>();
    }
  }
  if (const auto* list = a.value(name).as<Value::List>(); list != nullptr && list->size() == 2) {
    output = (*list)[0].as<Expr>();
    logsumexp = (*list)[1].as<Expr>();
  }
  if (output == nullptr || logsumexp == nullptr) {
    fail<ValueError>(std::string("merge_attention: ") + name + " is " + kind_text(a.value(name)) +
                     "; it is a result of attention, or a list of two, [output, logsumexp]");
  }
  return {*output, *logsumexp};
}

Value latent_word(const A& a) {
  static constexpr LatentOrder kOrders[] = {LatentOrder::decompressed, LatentOrder::absorbed};
  const std::size_t order = chosen(a, "latent_attention", "order", {"decompressed", "absorbed"});
  return record(latent_attention({.q_nope = a.tensor("q_nope"),
                                  .q_rope = a.tensor("q_rope"),
                                  .c = a.tensor("c"),
                                  .k_rope = a.tensor("k_rope"),
                                  .w_uk = a.tensor("w_uk"),
                                  .w_uv = a.tensor("w_uv")},
                                 kOrders[order], options_of(a, "latent_attention")));
}

Value linear_word(const A& a) {
  static constexpr FeatureMap kMaps[] = {FeatureMap::identity, FeatureMap::elu, FeatureMap::relu};
  const std::size_t map = chosen(a, "linear_attention", "features", {"identity", "elu", "relu"});
  return linear_attention(a.tensor("q"), a.tensor("k"), a.tensor("v"),
                          {.features = kMaps[map],
                           .causal = a.flag("causal"),
                           .normalise = a.flag("normalise"),
                           .chunk = a.integer("chunk")});
}

Value paged_word(const A& a) {
  AttentionOptions options = options_of(a, "paged_attention");
  options.lengths.reset();  // those of the pages
  return record(paged_attention(a.tensor("q"),
                                {.keys = a.tensor("keys"),
                                 .values = a.tensor("values"),
                                 .table = a.tensor("table"),
                                 .lengths = a.tensor("lengths")},
                                options));
}

}  // namespace

WordTable variant_words() {
  return {
      // Scores and masks of their own around a softmax.
      {"alibi_attention", "dot_product_attention with the bias slope[h] (k - q)",
       with(with(q_k_v(), {tensor("slopes")}), options_of_attention()),
       [](const A& a) -> Value {
         return record(alibi_attention(a.tensor("q"), a.tensor("k"), a.tensor("v"),
                                       a.tensor("slopes"), options_of(a, "alibi_attention")));
       }},
      {"rotary_attention", "dot_product_attention(rope(q), rope(k), v)",
       with(with(q_k_v(), rotation()), options_of_attention()),
       [](const A& a) -> Value {
         return record(rotary_attention(
             a.tensor("q"), a.tensor("k"), a.tensor("v"), rotation_of(a, "positions_q"),
             rotation_of(a, "positions_k"), options_of(a, "rotary_attention")));
       }},
      {"qk_norm_attention", "dot_product_attention(rms_norm(q), rms_norm(k), v)",
       with(with(q_k_v(),
                 {tensor("weight_q").optional().by_name(), tensor("bias_q").optional().by_name(),
                  tensor("weight_k").optional().by_name(), tensor("bias_k").optional().by_name(),
                  number("eps").standard("1e-5").by_name()}),
            options_of_attention()),
       [](const A& a) -> Value {
         return record(qk_norm_attention(
             a.tensor("q"), a.tensor("k"), a.tensor("v"), norm_of(a, "weight_q", "bias_q"),
             norm_of(a, "weight_k", "bias_k"), options_of(a, "qk_norm_attention")));
       }},
      {"cosine_attention", "attention by cosines of q and k times a scale that is given",
       with(q_k_v(), options_of_attention()),
       [](const A& a) -> Value {
         return record(cosine_attention(a.tensor("q"), a.tensor("k"), a.tensor("v"),
                                        options_of(a, "cosine_attention")));
       }},
      {"varlen_attention", "attention within sequences packed one after another",
       with(with(q_k_v(), {any("offsets")}), options_of_attention()),
       [](const A& a) -> Value {
         const Packed offsets = offsets_of(a);
         return record(varlen_attention(a.tensor("q"), a.tensor("k"), a.tensor("v"), offsets,
                                        options_of(a, "varlen_attention")));
       }},
      {"paged_attention", "attention to keys and values in pages, found through a table",
       with({tensor("q"), tensor("keys"), tensor("values"), tensor("table"), tensor("lengths")},
            without(options_of_attention(), "lengths")),
       paged_word},
      {"latent_attention", "attention to keys and values of all heads from one latent vector",
       with(
           {tensor("q_nope"), tensor("q_rope"), tensor("c"), tensor("k_rope"), tensor("w_uk"),
            tensor("w_uv"), choice("order", {"decompressed", "absorbed"}).standard("decompressed")},
           options_of_attention()),
       latent_word},
      {"differential_attention", "(softmax(q1 k1^T scale) - lambda softmax(q2 k2^T scale)) v",
       with({tensor("q1"), tensor("k1"), tensor("q2"), tensor("k2"), tensor("v"), tensor("lambda")},
            options_of_attention()),
       [](const A& a) -> Value {
         const DifferentialResult r = differential_attention(
             a.tensor("q1"), a.tensor("k1"), a.tensor("q2"), a.tensor("k2"), a.tensor("v"),
             a.tensor("lambda"), options_of(a, "differential_attention"));
         return Value::Record{{"output", "weights"}, {r.output, r.weights}};
       }},
      {"differential_lambda",
       "exp(q1 . k1) - exp(q2 . k2) + initial",
       {tensor("q1"), tensor("k1"), tensor("q2"), tensor("k2"), number("initial")},
       [](const A& a) -> Value {
         return differential_lambda(a.tensor("q1"), a.tensor("k1"), a.tensor("q2"), a.tensor("k2"),
                                    a.number("initial"));
       }},
      {"talking_heads_attention", "attention whose heads exchange scores and weights",
       with(with(q_k_v(), {tensor("w_scores"), tensor("w_weights")}), options_of_attention()),
       [](const A& a) -> Value {
         return record(talking_heads_attention(a.tensor("q"), a.tensor("k"), a.tensor("v"),
                                               a.tensor("w_scores"), a.tensor("w_weights"),
                                               options_of(a, "talking_heads_attention")));
       }},
      {"merge_attention",
       "what attention over the keys of both parts gives",
       {any("first"), any("second")},
       [](const A& a) -> Value {
         const PartialAttention first = part_of(a, "first"), second = part_of(a, "second");
         const PartialAttention r = merge_attention(first, second);
         return Value::Record{{"output", "logsumexp"}, {r.output, r.logsumexp}};
       }},
      // Without a softmax.
      {"sigmoid_attention", "sigmoid(s - shift) v; the shift is log(keys) unless given",
       with(with(q_k_v(), {number("shift").optional().by_name()}), options_of_attention()),
       [](const A& a) -> Value {
         const SigmoidResult r =
             sigmoid_attention(a.tensor("q"), a.tensor("k"), a.tensor("v"),
                               options_of(a, "sigmoid_attention"), a.maybe_number("shift"));
         return Value::Record{{"output", "weights"}, {r.output, r.weights}};
       }},
      {"linear_attention", "f(q) sum f(k)^T v, divided by the sum of the weights",
       with(q_k_v(), {choice("features", {"identity", "elu", "relu"}).standard("elu").by_name(),
                      flag("causal").standard("false").by_name(),
                      flag("normalise").standard("true").by_name(),
                      integer("chunk").standard("64").by_name()}),
       linear_word},
      {"retention", "sum over k <= q of decay^(q - k) (q . k scale) v",
       with(q_k_v(), {tensor("decay"), number("scale").optional().by_name(),
                      integer("chunk").standard("64").by_name()}),
       [](const A& a) -> Value {
         return retention(a.tensor("q"), a.tensor("k"), a.tensor("v"), a.tensor("decay"),
                          a.maybe_number("scale"), a.integer("chunk"));
       }},
      {"gated_linear_attention", "S = gate S + k^T v, o = q S scale",
       with(q_k_v(), {tensor("gate"), number("scale").optional().by_name()}),
       [](const A& a) -> Value {
         return gated_linear_attention(a.tensor("q"), a.tensor("k"), a.tensor("v"),
                                       a.tensor("gate"), a.maybe_number("scale"));
       }},
  };
}

}  // namespace einkern
