// SPDX-License-Identifier: Apache-2.0
// Values to the kinds that parameters take.
#pragma once

#include <string>

#include "ast.h"
#include "source.h"
#include "words.h"

namespace einkern::program {

/// Where a value comes from, for messages.
struct Origin {
  const Source& source;
  const Node& node;
  const std::string& word;
  bool outline = false;
};

/// The value as `parameter` takes it: a number becomes an expression for a tensor. TypeError that
/// names the word, the parameter and what is there instead.
Value convert(const Parameter& parameter, const Value& value, const Origin& origin);

/// The default of a parameter.
Value standard_value(const Parameter& parameter);

/// The number that arithmetic on symbolic numbers gives: a symbol named after what was done.
/// `name` is the sign or the word.
SymbolicNumber symbolic(const std::string& name, const std::vector<Value>& operands);

/// A number that a binding holds as an expression, or the expression itself.
Value unwrapped(const Expr& expr);

}  // namespace einkern::program
