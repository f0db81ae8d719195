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

std::vector<Parameter> options_of_attention() {
  return {integer("heads").standard("0").by_name(),    integer("kv_heads").standard("0").by_name(),
          integer("head_dim").standard("0").by_name(), tensor("mask").optional().by_name(),
          tensor("bias").optional().by_name(),         tensor("lengths").optional().by_name(),
          any("segments").optional().by_name(),        integers("window").optional().by_name(),
          number("scale").optional().by_name(),        number("softcap").optional().by_name(),
          tensor("sinks").optional().by_name(),        placed().by_name()};
}

namespace {

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

}  // namespace

AttentionOptions options_of(const A& a, const char* function) {
  return {.heads = a.integer("heads"),
          .kv_heads = a.integer("kv_heads"),
          .head_dim = a.integer("head_dim"),
          .mask = a.maybe_tensor("mask"),
          .bias = a.maybe_tensor("bias"),
          .lengths = a.maybe_tensor("lengths"),
          .segments = segments_of(a, function),
          .window = window_of(a, function),
          .scale = a.maybe_number("scale"),
          .softcap = a.maybe_number("softcap"),
          .sinks = a.maybe_tensor("sinks"),
          .causal = placement(a, function, "causal")};
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
