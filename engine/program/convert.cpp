// SPDX-License-Identifier: Apache-2.0
// Values to the kinds that parameters take, and numbers without a value.
#include "convert.h"

#include <fmt/format.h>

#include <functional>

#include "../graph/extent.h"
#include "../graph/node.h"
#include "number_text.h"

namespace einkern::program {
namespace {

using ParameterKind = Parameter::Kind;

constexpr std::size_t kLongestSymbol = 80;

/// `softmax: 's'`, or `'+': an operand` for signs.
std::string subject(const Parameter& parameter, const Origin& origin) {
  const char first = origin.word.front();
  if ((first >= 'a' && first <= 'z') && origin.word != "and" && origin.word != "or" &&
      origin.word != "not") {
    return fmt::format("{}: '{}'", origin.word, parameter.name);
  }
  return fmt::format("'{}': an operand", origin.word == "-x" ? "-" : origin.word);
}

[[noreturn]] void refuse_symbol(const Parameter& parameter, const Origin& origin,
                                const SymbolicNumber& number) {
  fail_in<ValueError>(origin.source, origin.node.span,
                      fmt::format("{} is {}, which is known only when sizes are; give them",
                                  subject(parameter, origin), graph::extent_text(number.extent)));
}

[[noreturn]] void refuse_kind(const Parameter& parameter, const Origin& origin, const Value& value,
                              const char* wanted) {
  std::string fact = fmt::format("is {}, not {}", kind_text(value), wanted);
  const auto* record = value.as<Value::Record>();
  if (record != nullptr && !record->names.empty()) {
    fact = fmt::format("is several results; name one, as in .{}", record->names[0]);
  }
  const std::string what =
      origin.word == "return" ? "return: the value" : subject(parameter, origin);
  fail_in<TypeError>(origin.source, origin.node.span, fmt::format("{} {}", what, fact));
}

Value as_tensor(const Parameter& parameter, const Value& value, const Origin& origin) {
  if (const auto* expr = value.as<Expr>()) return *expr;
  if (const auto* integer = value.as<std::int64_t>()) return Expr(*integer);
  if (const auto* number = value.as<double>()) return Expr(*number);
  if (const auto* symbol = value.as<SymbolicNumber>()) {
    if (!origin.outline) refuse_symbol(parameter, origin, *symbol);
    return symbol->real ? Expr(1.0) : Expr(std::int64_t{1});
  }
  refuse_kind(parameter, origin, value, "a tensor");
}

Value as_integer(const Parameter& parameter, const Value& value, const Origin& origin, bool size) {
  if (const auto* integer = value.as<std::int64_t>()) {
    // Negative extents stand for sizes that are not known yet.
    if (size && *integer < 0) {
      fail_in<ValueError>(
          origin.source, origin.node.span,
          fmt::format("{} is {}; a size is not negative", subject(parameter, origin), *integer));
    }
    return value;
  }
  if (const auto* symbol = value.as<SymbolicNumber>(); symbol != nullptr && !symbol->real) {
    if (!size) refuse_symbol(parameter, origin, *symbol);
    return symbol->extent;
  }
  refuse_kind(parameter, origin, value, "an integer that is known when the program is built");
}

template <class Convert>
Value as_list(const Parameter& parameter, const Value& value, const Origin& origin,
              const char* wanted, Convert item) {
  const auto* list = value.as<Value::List>();
  if (list == nullptr) refuse_kind(parameter, origin, value, wanted);
  Value::List result;
  for (const Value& element : *list) result.push_back(item(element));
  return result;
}

}  // namespace

Value convert(const Parameter& parameter, const Value& value, const Origin& origin) {
  switch (parameter.kind) {
    case ParameterKind::tensor:
      return as_tensor(parameter, value, origin);
    case ParameterKind::tensors:
      return as_list(parameter, value, origin, "a list of tensors",
                     [&](const Value& item) { return as_tensor(parameter, item, origin); });
    case ParameterKind::number:
      if (value.is_number()) return value.number();
      if (const auto* symbol = value.as<SymbolicNumber>()) {
        if (!origin.outline) refuse_symbol(parameter, origin, *symbol);
        return 1.0;
      }
      refuse_kind(parameter, origin, value, "a number that is known when the program is built");
    case ParameterKind::integer:
      return as_integer(parameter, value, origin, false);
    case ParameterKind::size:
      return as_integer(parameter, value, origin, true);
    case ParameterKind::integers:
      return as_list(parameter, value, origin, "a list of integers",
                     [&](const Value& item) { return as_integer(parameter, item, origin, false); });
    case ParameterKind::flag:
      if (value.as<bool>() != nullptr) return value;
      refuse_kind(parameter, origin, value, "true or false");
    case ParameterKind::axis:
    case ParameterKind::label:
      if (value.as<std::string>() != nullptr) return value;
      return as_integer(parameter, value, origin, false);
    case ParameterKind::axes:
      if (value.as<Value::List>() != nullptr) return value;
      return Value::List{value};
    case ParameterKind::name:
    case ParameterKind::text:
      if (value.as<std::string>() != nullptr) return value;
      refuse_kind(parameter, origin, value, "a text");
    case ParameterKind::order:
      if (value.as<std::string>() != nullptr || value.as<Value::List>() != nullptr) return value;
      refuse_kind(parameter, origin, value, "an equation or a list of axes");
    case ParameterKind::labels:
    case ParameterKind::choice:
    case ParameterKind::any:
      break;
  }
  // Numbers and tensors alike stand for tensors where words take anything.
  if (parameter.kind == ParameterKind::any &&
      (value.is_number() || value.as<SymbolicNumber>() != nullptr)) {
    return as_tensor(parameter, value, origin);
  }
  return value;
}

Value standard_value(const Parameter& parameter) {
  const std::string& text = *parameter.otherwise;
  switch (parameter.kind) {
    case ParameterKind::flag:
      return text == "true";
    case ParameterKind::text:
    case ParameterKind::name:
    case ParameterKind::choice:
      return text;
    case ParameterKind::axes:
      return Value::List{Value(static_cast<std::int64_t>(std::stoll(text)))};
    case ParameterKind::number:
      return std::stod(text);
    default:
      return static_cast<std::int64_t>(std::stoll(text));
  }
}

SymbolicNumber symbolic(const std::string& name, const std::vector<Value>& operands) {
  std::vector<std::string> texts;
  bool real = name != "+" && name != "-" && name != "*" && name != "//" && name != "%" &&
              name != "-x" && name != "minimum" && name != "maximum" && name != "abs" &&
              name != "floordiv" && name != "mod";
  std::vector<std::int64_t> extents;
  for (const Value& operand : operands) {
    if (const auto* symbol = operand.as<SymbolicNumber>()) {
      real |= symbol->real;
      texts.push_back(graph::extent_text(symbol->extent));
      extents.push_back(symbol->extent);
    } else if (const auto* integer = operand.as<std::int64_t>()) {
      texts.push_back(std::to_string(*integer));
      extents.push_back(*integer);
    } else {
      real = true;
      texts.push_back(number_text(operand.number()));
    }
  }
  // As merging axes names it.
  const bool product = name == "*" && extents.size() == 2 && (extents[0] < 0 || extents[0] > 0) &&
                       (extents[1] < 0 || extents[1] > 0) && texts[0][0] != '-' &&
                       texts[1][0] != '-';
  std::string text;
  if (product) {
    text = texts[0] + "*" + texts[1];
  } else if (texts.size() == 2) {
    text = fmt::format("({} {} {})", texts[0], name, texts[1]);
  } else {
    text = fmt::format("{}({})", name == "-x" ? "-" : name, fmt::join(texts, ", "));
  }
  // A name that grew by repetition says no more than another one.
  if (text.size() > kLongestSymbol) text = fmt::format("size_{:x}", std::hash<std::string>{}(text));
  return {graph::dyn_extent(text), real};
}

Value unwrapped(const Expr& expr) {
  const auto* constant = std::get_if<graph::Constant>(&expr.node()->op);
  if (constant == nullptr) return expr;
  const map::Scalar& scalar = constant->value;
  if (scalar.dtype == DType::i64) return scalar.integer;
  if (scalar.dtype == DType::f64) return scalar.real;
  return expr;
}

}  // namespace einkern::program
