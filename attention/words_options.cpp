// SPDX-License-Identifier: Apache-2.0
// Options of attention as parameters of words.
#include "words_options.h"

#include <optional>
#include <string>
#include <utility>

#include "../engine/base/error.h"
#include "../ops/words.h"

namespace einkern {

using namespace parameters;
using A = Arguments;

std::vector<Parameter> with(std::vector<Parameter> first, std::vector<Parameter> more) {
  for (Parameter& parameter : more) first.push_back(std::move(parameter));
  return first;
}

Parameter placed() { return choice("causal", {"top_left", "bottom_right"}).optional(); }

std::vector<Parameter> options_of_scores(const std::string& prefix) {
  Parameter causal = placed().by_name();
  causal.name = prefix + causal.name;
  return {tensor(prefix + "mask").optional().by_name(),
          tensor(prefix + "bias").optional().by_name(),
          tensor(prefix + "lengths").optional().by_name(),
          any(prefix + "segments").optional().by_name(),
          integers(prefix + "window").optional().by_name(),
          number(prefix + "scale").optional().by_name(),
          number(prefix + "softcap").optional().by_name(),
          tensor(prefix + "sinks").optional().by_name(),
          std::move(causal)};
}

std::vector<Parameter> options_of_attention() {
  return with(
      {integer("heads").standard("0").by_name(), integer("kv_heads").standard("0").by_name(),
       integer("head_dim").standard("0").by_name()},
      options_of_scores());
}

namespace {

constexpr const char* kProjections[] = {"qkv", "q", "k", "v", "out"};

}  // namespace

std::vector<Parameter> weights_of_projections(const std::string& prefix) {
  std::vector<Parameter> list;
  for (const char* end : {"", "_bias"}) {
    for (const char* name : kProjections) {
      list.push_back(tensor(prefix + name + end).optional().by_name());
    }
  }
  return list;
}

void take_weights(const A& a, AttentionOptions& options, const std::string& prefix) {
  options.qkv = a.maybe_tensor(prefix + "qkv");
  options.q = a.maybe_tensor(prefix + "q");
  options.k = a.maybe_tensor(prefix + "k");
  options.v = a.maybe_tensor(prefix + "v");
  options.out = a.maybe_tensor(prefix + "out");
  options.qkv_bias = a.maybe_tensor(prefix + "qkv_bias");
  options.q_bias = a.maybe_tensor(prefix + "q_bias");
  options.k_bias = a.maybe_tensor(prefix + "k_bias");
  options.v_bias = a.maybe_tensor(prefix + "v_bias");
  options.out_bias = a.maybe_tensor(prefix + "out_bias");
}

NormOptions norm_of(const A& a, const std::string& weight, const std::string& bias) {
  return {.weight = a.maybe_tensor(weight), .bias = a.maybe_tensor(bias), .eps = a.number("eps")};
}

namespace {

std::optional<Segments> segments_of(const A& a, const char* function, const std::string& name) {
  if (!a.has(name)) return {};
  const Value& value = a.value(name);
  if (const auto* both = value.as<Expr>()) return Segments(*both);
  if (const auto* list = value.as<Value::List>(); list != nullptr && list->size() == 2) {
    const auto *q = (*list)[0].as<Expr>(), *k = (*list)[1].as<Expr>();
    if (q != nullptr && k != nullptr) return Segments(*q, *k);
  }
  fail<ValueError>(std::string(function) + ": " + name +
                   " are a tensor for both sides, or a list of two, [queries, keys]");
}

std::optional<Window> window_of(const A& a, const char* function, const std::string& name) {
  if (!a.has(name)) return {};
  const std::vector<std::int64_t> sides = a.integers(name);
  if (sides.size() != 2) {
    fail<ValueError>(std::string(function) + ": a " + name + " is a list of two, [left, right]");
  }
  return Window{sides[0], sides[1]};
}

}  // namespace

AttentionOptions scores_of(const A& a, const char* function, const std::string& prefix) {
  return {.mask = a.maybe_tensor(prefix + "mask"),
          .bias = a.maybe_tensor(prefix + "bias"),
          .lengths = a.maybe_tensor(prefix + "lengths"),
          .segments = segments_of(a, function, prefix + "segments"),
          .window = window_of(a, function, prefix + "window"),
          .scale = a.maybe_number(prefix + "scale"),
          .softcap = a.maybe_number(prefix + "softcap"),
          .sinks = a.maybe_tensor(prefix + "sinks"),
          .causal = placement(a, function, (prefix + "causal").c_str())};
}

AttentionOptions options_of(const A& a, const char* function) {
  AttentionOptions options = scores_of(a, function);
  options.heads = a.integer("heads");
  options.kv_heads = a.integer("kv_heads");
  options.head_dim = a.integer("head_dim");
  return options;
}

Value record(const AttentionResult& result) {
  return Value::Record{{"output", "weights", "logsumexp"},
                       {result.output, result.weights, result.logsumexp}};
}

std::size_t chosen(const A& a, const char* function, const char* name,
                   const std::vector<const char*>& names) {
  const auto* text = a.value(name).as<std::string>();
  std::string listed;
  for (std::size_t i = 0; i < names.size(); ++i) {
    if (text != nullptr && *text == names[i]) return i;
    listed += std::string(i == 0 ? "" : ", ") + names[i];
  }
  fail<ValueError>(std::string(function) + ": " + name + " is " + kind_text(a.value(name)) +
                   "; choices: " + listed);
}

}  // namespace einkern
