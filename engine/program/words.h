// SPDX-License-Identifier: Apache-2.0
// Words of programs as table rows: a name, parameters, and what builds the expression.
#pragma once

#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "value.h"

namespace einkern {

/// One parameter of a word.
struct Parameter {
  enum class Kind {
    tensor,    // an expression, a number included
    tensors,   // a list of them
    number,    // known when the program is built
    integer,   // the same
    integers,  // a list of them
    size,      // an integer, or a size that is known only when a plan is called
    flag,      // true or false
    axis,      // a label of the word's first tensor, as a name or a text, or a number
    axes,      // one of them or a list
    label,     // a label of something else, or a number: never looked up
    labels,    // a list of names
    name,      // a label alone
    text,      // a text in double quotes
    order,     // a text, or axes
    choice,    // one of `choices`, as a name; anything else is a value
    any,       // whatever it is
  };

  std::string name;
  Kind kind = Kind::tensor;
  std::vector<std::string> choices = {};
  std::optional<std::string> otherwise = {};  // what it is when it is not given, as text
  bool may_miss = false;                      // it may be absent
  bool keyword = false;                       // given by name only
  bool rest = false;                          // takes all further arguments

  Parameter standard(std::string text) && {
    otherwise = std::move(text);
    return std::move(*this);
  }
  Parameter optional() && {
    may_miss = true;
    return std::move(*this);
  }
  Parameter by_name() && {
    keyword = true;
    return std::move(*this);
  }
  Parameter and_more() && {
    rest = true;
    return std::move(*this);
  }
};

/// Makers of parameters: `tensor("x")`, `axes("axes").standard("-1")`.
namespace parameters {
inline Parameter tensor(std::string name) { return {std::move(name), Parameter::Kind::tensor}; }
inline Parameter tensors(std::string name) { return {std::move(name), Parameter::Kind::tensors}; }
inline Parameter number(std::string name) { return {std::move(name), Parameter::Kind::number}; }
inline Parameter integer(std::string name) { return {std::move(name), Parameter::Kind::integer}; }
inline Parameter integers(std::string name) { return {std::move(name), Parameter::Kind::integers}; }
inline Parameter size(std::string name) { return {std::move(name), Parameter::Kind::size}; }
inline Parameter flag(std::string name) { return {std::move(name), Parameter::Kind::flag}; }
inline Parameter axis(std::string name) { return {std::move(name), Parameter::Kind::axis}; }
inline Parameter axes(std::string name) { return {std::move(name), Parameter::Kind::axes}; }
inline Parameter label(std::string name) { return {std::move(name), Parameter::Kind::label}; }
inline Parameter labels(std::string name) { return {std::move(name), Parameter::Kind::labels}; }
inline Parameter name(std::string name) { return {std::move(name), Parameter::Kind::name}; }
inline Parameter text(std::string name) { return {std::move(name), Parameter::Kind::text}; }
inline Parameter order(std::string name) { return {std::move(name), Parameter::Kind::order}; }
inline Parameter any(std::string name) { return {std::move(name), Parameter::Kind::any}; }
inline Parameter choice(std::string name, std::vector<std::string> choices) {
  return {std::move(name), Parameter::Kind::choice, std::move(choices)};
}
}  // namespace parameters

struct Word;

/// What a call gives to the parameters of its word, each already of its kind.
class Arguments {
 public:
  /// One value per parameter, in the order of the word's; a List for `rest`.
  Arguments(const Word& word, std::vector<std::optional<Value>> values)
      : word_(&word), values_(std::move(values)) {}

  bool has(std::string_view name) const { return find(name).has_value(); }
  const Value& value(std::string_view name) const;

  Expr tensor(std::string_view name) const;
  std::optional<Expr> maybe_tensor(std::string_view name) const;
  std::vector<Expr> tensors(std::string_view name) const;
  double number(std::string_view name) const;
  std::optional<double> maybe_number(std::string_view name) const;
  std::int64_t integer(std::string_view name) const;
  std::optional<std::int64_t> maybe_integer(std::string_view name) const;
  std::vector<std::int64_t> integers(std::string_view name) const;
  bool flag(std::string_view name) const;
  Axis axis(std::string_view name) const;
  std::vector<Axis> axes(std::string_view name) const;
  std::vector<std::string> labels(std::string_view name) const;
  const std::string& text(std::string_view name) const;

  const std::vector<std::optional<Value>>& values() const noexcept { return values_; }

 private:
  const std::optional<Value>& find(std::string_view name) const;

  const Word* word_;
  std::vector<std::optional<Value>> values_;
};

/// One row: adding a word to programs is adding one. Operators are rows under their signs.
struct Word {
  using Build = Value (*)(const Arguments&);
  /// The value when all arguments are numbers, in their order.
  using Fold = Value (*)(const std::vector<Value>&);

  std::string name;
  std::string summary;  // one line
  std::vector<Parameter> parameters;
  Build build = nullptr;
  Fold fold = nullptr;

  /// `softmax(s, axes=-1, sink=...)`.
  std::string signature() const;
};

/// A table of words.
using WordTable = std::vector<Word>;

/// Several tables as one, found by name.
class Words {
 public:
  /// The tables outlive this. ValueError when two rows share a name.
  explicit Words(std::initializer_list<const WordTable*> tables);

  const Word* find(std::string_view name) const;
  /// All names that are no signs, in the order of the tables.
  const std::vector<std::string>& names() const noexcept { return names_; }

 private:
  std::unordered_map<std::string_view, const Word*> by_name_;
  std::vector<std::string> names_;
};

/// The words that the engine itself has: einsum, size, astype.
const WordTable& engine_words();

}  // namespace einkern
