// SPDX-License-Identifier: Apache-2.0
// Names of a program to what they mean, statement by statement.
#include "resolve.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <numbers>
#include <set>

#include "../spec/equation.h"
#include "engine_error.h"
#include "suggest.h"

namespace einkern::program {
namespace {

using Kind = Node::Kind;

class Resolver {
 public:
  Resolver(Module& module, const Words& words, const Import& import, bool imported)
      : module_(module), words_(words), import_(import), imported_(imported) {
    for (const Statement& statement : module.tree.statements) {
      module.declares |= statement.kind == Statement::Kind::input;
    }
  }

  void run() {
    const std::vector<Statement>& statements = module_.tree.statements;
    for (std::size_t i = 0; i < statements.size(); ++i) {
      const Statement& statement = statements[i];
      if (imported_ && statement.kind != Statement::Kind::define &&
          statement.kind != Statement::Kind::import) {
        refuse(statement.span, "an imported file holds functions and imports only");
      }
      switch (statement.kind) {
        case Statement::Kind::import:
          add_imported(statement);
          break;
        case Statement::Kind::define:
          define(statement);
          break;
        case Statement::Kind::input:
          declare(statement);
          break;
        default:
          simple(statement, i + 1 == statements.size());
      }
    }
    if (!imported_ && (statements.empty() || statements.back().kind != Statement::Kind::give)) {
      const std::string fact = "the program returns nothing; it ends with 'return' and values";
      if (!statements.empty()) refuse(statements.back().span, fact);
      fail<SyntaxError>(module_.source.name() + ": " + fact);
    }
  }

 private:
  [[noreturn]] void refuse(const Span& span, const std::string& fact) const {
    fail_in<SyntaxError>(module_.source, span, fact);
  }

  void check_new_function(const std::string& name, const Span& span) const {
    if (words_.find(name) != nullptr)
      refuse(span, fmt::format("'{}' is a word of the language", name));
    if (const auto found = module_.functions.find(name); found != module_.functions.end()) {
      const Function& other = found->second;
      refuse(span, fmt::format("function '{}' is defined already, in {}", name,
                               other.module->source.place(other.statement->span.begin)));
    }
  }

  void add_imported(const Statement& statement) {
    const Module& from = import_(module_, statement);
    for (const Statement& other : from.tree.statements) {
      if (other.kind != Statement::Kind::define) continue;
      check_new_function(other.targets[0], statement.values[0].span);
      module_.functions[other.targets[0]] = {&from, &other};
    }
  }

  void define(const Statement& statement) {
    check_new_function(statement.targets[0], statement.target_spans[0]);
    std::set<std::string> outer;
    outer.swap(scope_);
    in_function_ = true;
    function_ = statement.targets[0];
    for (const FunctionParameter& parameter : statement.parameters) {
      for (const Node& value : parameter.standard) expression(value);
    }
    bool optional = false;
    for (const FunctionParameter& parameter : statement.parameters) {
      if (!scope_.insert(parameter.name).second) {
        refuse(parameter.span, fmt::format("parameter '{}' stands twice", parameter.name));
      }
      if (optional && parameter.standard.empty()) {
        refuse(parameter.span,
               fmt::format("parameter '{}' has no default, but one before it has", parameter.name));
      }
      optional |= !parameter.standard.empty();
    }
    for (std::size_t i = 0; i < statement.body.size(); ++i) {
      simple(statement.body[i], i + 1 == statement.body.size());
    }
    if (statement.body.back().kind != Statement::Kind::give) {
      refuse(statement.span, fmt::format("function '{}' returns nothing", statement.targets[0]));
    }
    in_function_ = false;
    function_.clear();
    scope_.swap(outer);
    // From here on it can be called; never by itself.
    module_.functions[statement.targets[0]] = {&module_, &statement};
  }

  void declare(const Statement& statement) {
    const std::string& name = statement.targets[0];
    if (!scope_.insert(name).second) {
      refuse(statement.target_spans[0], fmt::format("'{}' has a value already", name));
    }
    if (!dtype_named(statement.dtype)) {
      refuse(
          statement.dtype_span,
          fmt::format("unknown dtype '{}'; choices: bool, i8, i16, i32, i64, f16, bf16, f32, f64",
                      statement.dtype));
    }
    module_.inputs.push_back(name);
  }

  void simple(const Statement& statement, bool last) {
    if (statement.kind == Statement::Kind::give && !last) {
      refuse(statement.span, "nothing may follow a return");
    }
    for (const Node& value : statement.values) expression(value);
    if (statement.kind != Statement::Kind::assign) return;
    for (std::size_t i = 0; i < statement.targets.size(); ++i) {
      const auto begin = statement.targets.begin();
      if (std::find(begin, begin + static_cast<std::ptrdiff_t>(i), statement.targets[i]) !=
          begin + static_cast<std::ptrdiff_t>(i)) {
        refuse(statement.target_spans[i],
               fmt::format("'{}' is assigned twice in one statement", statement.targets[i]));
      }
    }
    scope_.insert(statement.targets.begin(), statement.targets.end());
  }

  void expression(const Node& node) {
    if (node.kind == Kind::name) return variable(node);
    if (node.kind == Kind::call) return call(node);
    if (node.kind == Kind::naming) {
      with_message([&] { parse_term(node.name, "named"); },
                   [&](const char* message) { return place_error(module_.source, node, message); });
    }
    for (const Node& child : node.children) {
      if (child.kind != Kind::absent) expression(child);
    }
  }

  void variable(const Node& node) {
    if (scope_.contains(node.name) || constant(node.name)) return;
    std::vector<std::string> known(scope_.begin(), scope_.end());
    if (in_function_ || module_.declares) {
      refuse(node.span,
             fmt::format("unknown name '{}'{}", node.name, known_names(node.name, known)));
    }
    scope_.insert(node.name);
    module_.inputs.push_back(node.name);
  }

  std::string known_names(const std::string& name, const std::vector<std::string>& known) const {
    std::string near = suggestion(name, known);
    return near.empty() ? "; names here: " + listed(known) : near;
  }

  void call(const Node& node) {
    const Span head{node.span.begin, decode_utf8(node.name).size()};
    if (const auto found = module_.functions.find(node.name); found != module_.functions.end()) {
      const Word shown{node.name, "", found->second.parameters()};
      bind_call(module_.source, node, shown);
      for (const Node& child : node.children) expression(child);
      return;
    }
    const Word* word = words_.find(node.name);
    if (word == nullptr) unknown_function(node.name, head);
    const auto bound = bind_call(module_.source, node, *word);
    for (std::size_t p = 0; p < bound.size(); ++p) {
      for (const std::size_t child : bound[p]) argument(node.children[child], word->parameters[p]);
    }
    if (word->name == "einsum") check_equation(node.children[bound[0][0]]);
  }

  [[noreturn]] void unknown_function(const std::string& name, const Span& head) const {
    if (scope_.contains(name)) refuse(head, fmt::format("'{}' is a value, not a function", name));
    for (const Statement& statement : module_.tree.statements) {
      if (statement.kind == Statement::Kind::define && statement.targets[0] == name) {
        if (name == function_) refuse(head, fmt::format("function '{}' calls itself", name));
        refuse(head, fmt::format("function '{}' is defined in line {}, behind its use", name,
                                 module_.source.line_of(statement.span.begin) + 1));
      }
    }
    std::vector<std::string> known = words_.names();
    for (const auto& [function, what] : module_.functions) known.push_back(function);
    const std::string hint = foreign_word(name);
    refuse(head, fmt::format("unknown word '{}'{}", name,
                             hint.empty() ? suggestion(name, known) : "; here it is " + hint));
  }

  /// An equation in quotes is wrong wherever its operands come from.
  void check_equation(const Node& node) const {
    if (node.kind != Kind::text) return;
    with_message([&] { parse_equation(node.name); },
                 [&](const char* message) { return place_error(module_.source, node, message); });
  }

  void argument(const Node& node, const Parameter& parameter) {
    using P = Parameter::Kind;
    switch (parameter.kind) {
      case P::axis:
      case P::label:
        return label(node);
      case P::axes:
        if (node.kind != Kind::list) return label(node);
        for (const Node& child : node.children) label(child);
        return;
      case P::order:
        if (node.kind != Kind::list) return expression(node);
        for (const Node& child : node.children) label(child);
        return;
      case P::labels:
        if (node.kind != Kind::list)
          refuse(node.span, fmt::format("'{}' is a list of labels, as in [h, d]", parameter.name));
        for (const Node& child : node.children) one_name(child, parameter);
        return;
      case P::name:
        return one_name(node, parameter);
      case P::choice:
        return choice(node, parameter);
      default:
        return expression(node);
    }
  }

  // A label is never looked up; anything but a name or a text is a number.
  void label(const Node& node) {
    if (node.kind != Kind::name && node.kind != Kind::text) expression(node);
  }

  void one_name(const Node& node, const Parameter& parameter) const {
    if (node.kind == Kind::name || node.kind == Kind::text) return;
    refuse(node.span, fmt::format("'{}' is a label: a name, or a text", parameter.name));
  }

  void choice(const Node& node, const Parameter& parameter) {
    if (node.kind != Kind::name || constant(node.name) || scope_.contains(node.name)) {
      if (node.kind != Kind::name && node.kind != Kind::text) expression(node);
      if (node.kind != Kind::text) return;
    }
    const std::vector<std::string>& choices = parameter.choices;
    if (std::find(choices.begin(), choices.end(), node.name) != choices.end()) return;
    refuse(node.span, fmt::format("'{}' is none of the choices of '{}': {}{}", node.name,
                                  parameter.name, listed(choices), suggestion(node.name, choices)));
  }

  Module& module_;
  const Words& words_;
  const Import& import_;
  bool imported_;
  bool in_function_ = false;
  std::string function_;  // the one whose body is looked at
  std::set<std::string> scope_;
};

}  // namespace

std::optional<Value> constant(std::string_view name) {
  if (name == "inf") return std::numeric_limits<double>::infinity();
  if (name == "nan") return std::numeric_limits<double>::quiet_NaN();
  if (name == "pi") return std::numbers::pi;
  if (name == "true") return true;
  if (name == "false") return false;
  return {};
}

std::optional<DType> dtype_named(std::string_view name) {
  for (int i = 0; i <= static_cast<int>(DType::f64); ++i) {
    if (name_of(static_cast<DType>(i)) == name) return static_cast<DType>(i);
  }
  return {};
}

std::vector<Parameter> Function::parameters() const {
  std::vector<Parameter> list;
  for (const FunctionParameter& parameter : statement->parameters) {
    list.push_back({parameter.name, Parameter::Kind::any});
    list.back().may_miss = !parameter.standard.empty();
  }
  return list;
}

void resolve(Module& module, const Words& words, const Import& import, bool imported) {
  Resolver(module, words, import, imported).run();
}

}  // namespace einkern::program
