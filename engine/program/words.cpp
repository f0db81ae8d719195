// SPDX-License-Identifier: Apache-2.0
// Tables of words, and arguments by the names of their parameters.
#include "words.h"

#include <fmt/format.h>

#include <algorithm>

#include "../base/error.h"
#include "../graph/build.h"

namespace einkern {

double Value::number() const {
  if (const auto* integer = as<std::int64_t>()) return static_cast<double>(*integer);
  return std::get<double>(held);
}

std::string kind_text(const Value& value) {
  static constexpr const char* kTexts[] = {"an integer", "a number",        "a truth value",
                                           "a text",     "a tensor",        "a number",
                                           "a list",     "several results", ""};
  if (const auto* other = value.as<Value::Other>()) return other->what;
  return kTexts[value.held.index()];
}

const std::optional<Value>& Arguments::find(std::string_view name) const {
  for (std::size_t i = 0; i < word_->parameters.size(); ++i) {
    if (word_->parameters[i].name == name) return values_[i];
  }
  fail_check(fmt::format("{} has a parameter {}", word_->name, name).c_str(), __FILE__, __LINE__);
}

const Value& Arguments::value(std::string_view name) const {
  const std::optional<Value>& found = find(name);
  EINKERN_CHECK(found.has_value());
  return *found;
}

Expr Arguments::tensor(std::string_view name) const { return std::get<Expr>(value(name).held); }

std::optional<Expr> Arguments::maybe_tensor(std::string_view name) const {
  return has(name) ? std::optional(tensor(name)) : std::nullopt;
}

std::vector<Expr> Arguments::tensors(std::string_view name) const {
  std::vector<Expr> result;
  for (const Value& item : std::get<Value::List>(value(name).held)) {
    result.push_back(std::get<Expr>(item.held));
  }
  return result;
}

double Arguments::number(std::string_view name) const { return value(name).number(); }

std::optional<double> Arguments::maybe_number(std::string_view name) const {
  return has(name) ? std::optional(number(name)) : std::nullopt;
}

std::int64_t Arguments::integer(std::string_view name) const {
  return std::get<std::int64_t>(value(name).held);
}

std::optional<std::int64_t> Arguments::maybe_integer(std::string_view name) const {
  return has(name) ? std::optional(integer(name)) : std::nullopt;
}

std::vector<std::int64_t> Arguments::integers(std::string_view name) const {
  std::vector<std::int64_t> result;
  for (const Value& item : std::get<Value::List>(value(name).held)) {
    result.push_back(std::get<std::int64_t>(item.held));
  }
  return result;
}

bool Arguments::flag(std::string_view name) const { return std::get<bool>(value(name).held); }

namespace {

Axis as_axis(const Value& value) {
  if (const auto* label = value.as<std::string>()) return *label;
  return std::get<std::int64_t>(value.held);
}

}  // namespace

Axis Arguments::axis(std::string_view name) const { return as_axis(value(name)); }

std::vector<Axis> Arguments::axes(std::string_view name) const {
  std::vector<Axis> result;
  for (const Value& item : std::get<Value::List>(value(name).held)) {
    result.push_back(as_axis(item));
  }
  return result;
}

std::vector<std::string> Arguments::labels(std::string_view name) const {
  std::vector<std::string> result;
  for (const Value& item : std::get<Value::List>(value(name).held)) {
    result.push_back(std::get<std::string>(item.held));
  }
  return result;
}

const std::string& Arguments::text(std::string_view name) const {
  return std::get<std::string>(value(name).held);
}

std::string Word::signature() const {
  std::string text;
  for (const Parameter& parameter : parameters) {
    if (!text.empty()) text += ", ";
    text += parameter.name;
    if (parameter.rest) text += "...";
    if (parameter.otherwise) text += "=" + *parameter.otherwise;
    if (parameter.may_miss) text += "=...";
  }
  return fmt::format("{}({})", name, text);
}

Words::Words(std::initializer_list<const WordTable*> tables) {
  for (const WordTable* table : tables) {
    for (const Word& word : *table) {
      if (!by_name_.emplace(word.name, &word).second) {
        fail<ValueError>(fmt::format("words: two rows are named '{}'", word.name));
      }
      const char first = word.name.front();
      if ((first >= 'a' && first <= 'z') && word.name != "and" && word.name != "or" &&
          word.name != "not") {
        names_.push_back(word.name);
      }
    }
  }
}

const Word* Words::find(std::string_view name) const {
  const auto found = by_name_.find(name);
  return found == by_name_.end() ? nullptr : found->second;
}

const WordTable& engine_words() {
  using namespace parameters;
  static const WordTable kTable = {
      {"einsum",
       "sum of products, as an equation says",
       {text("equation"), tensor("operands").and_more(), text("path").standard("auto").by_name()},
       [](const Arguments& a) -> Value {
         return einsum(a.text("equation"), a.tensors("operands"), {parse_path(a.text("path"))});
       }},
      {"size",
       "the size of an axis, as a number",
       {tensor("x"), axis("axis")},
       [](const Arguments& a) -> Value {
         const Expr x = a.tensor("x");
         const std::int64_t size = x.shape()[graph::resolve_axes("size", x, {a.axis("axis")})[0]];
         if (size < 0) return SymbolicNumber{size, false};
         return size;
       }},
      {"astype",
       "the same elements in another dtype",
       {tensor("x"),
        choice("dtype", {"bool", "i8", "i16", "i32", "i64", "f16", "bf16", "f32", "f64"})},
       [](const Arguments& a) -> Value {
         for (int i = 0; i <= static_cast<int>(DType::f64); ++i) {
           const auto dtype = static_cast<DType>(i);
           if (const auto* name = a.value("dtype").as<std::string>();
               name != nullptr && *name == name_of(dtype)) {
             return graph::cast(a.tensor("x"), dtype);
           }
         }
         fail<TypeError>("astype: the dtype is " + kind_text(a.value("dtype")) +
                         "; choices: bool, i8, i16, i32, i64, f16, bf16, f32, f64");
       }},
  };
  return kTable;
}

}  // namespace einkern
