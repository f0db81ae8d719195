// SPDX-License-Identifier: Apache-2.0
// What a name of a program stands for while its expressions are built.
#pragma once

#include <any>
#include <concepts>
#include <cstdint>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "../graph/expr.h"

namespace einkern {

/// A number that is known only when a plan is called: a size named by `dyn`, or arithmetic with
/// one.
struct SymbolicNumber {
  std::int64_t extent = 0;  // the symbol, as shapes hold it
  bool real = false;        // made by division, a root or the like
};

/// A tensor expression, a number, a truth value, a text, or several of them.
struct Value {
  using List = std::vector<Value>;
  /// Several results; names are empty for those of `return a, b` in a function.
  struct Record {
    std::vector<std::string> names;
    std::vector<Value> values;
  };
  /// Something that only words know of, such as a mask that waits for its scores.
  struct Other {
    std::any value;
    std::string what;  // for messages: "a mask"
  };
  using Held = std::variant<std::int64_t, double, bool, std::string, Expr, SymbolicNumber, List,
                            Record, Other>;

  template <std::derived_from<Expr> T>
  Value(const T& expr) : held(Expr(expr)) {}
  Value(bool flag) : held(flag) {}
  Value(double number) : held(number) {}
  Value(std::int64_t integer) : held(integer) {}
  Value(std::string text) : held(std::move(text)) {}
  Value(SymbolicNumber number) : held(number) {}
  Value(List list) : held(std::move(list)) {}
  Value(Record record) : held(std::move(record)) {}
  Value(Other other) : held(std::move(other)) {}

  template <class T>
  const T* as() const noexcept {
    return std::get_if<T>(&held);
  }
  /// An integer or a double.
  bool is_number() const noexcept { return as<std::int64_t>() || as<double>(); }
  double number() const;

  Held held;
};

/// "a tensor", "a number", "a list": for messages.
std::string kind_text(const Value& value);

}  // namespace einkern
