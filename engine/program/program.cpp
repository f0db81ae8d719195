// SPDX-License-Identifier: Apache-2.0
// Programs as the public sees them: inputs are checked against what is declared, then built.
#include "program.h"

#include <fmt/format.h>

#include <algorithm>
#include <functional>

#include "../base/error.h"
#include "../graph/build.h"
#include "../graph/extent.h"
#include "build.h"
#include "convert.h"
#include "print.h"
#include "resolve.h"
#include "suggest.h"

namespace einkern {

using program::Statement;

struct Program::State {
  program::Modules modules;

  const program::Module& main() const { return modules.main(); }
  /// The declaration of an input.
  const Statement* find(std::string_view input) const {
    for (const Statement& statement : main().tree.statements) {
      if (statement.kind == Statement::Kind::input && statement.targets[0] == input) {
        return &statement;
      }
    }
    return nullptr;
  }
  void check_names(const std::vector<std::string>& given, bool all) const;
};

namespace {

/// Labels and sizes that declared names stand for.
Program::Declared declared_type(const Statement& statement) {
  Program::Declared declared{*program::dtype_named(statement.dtype), {}, {}};
  for (const program::DeclaredSize& size : statement.sizes) {
    declared.shape.push_back(size.name.empty() ? size.size : graph::dyn_extent(size.name));
    const auto same = [&](const program::DeclaredSize& other) { return other.name == size.name; };
    const bool alone = std::count_if(statement.sizes.begin(), statement.sizes.end(), same) == 1;
    declared.labels.push_back(alone ? size.name : "");
  }
  return declared;
}

std::string declared_text(const Statement& statement) {
  program::Tree tree;
  tree.statements.push_back(statement);
  tree.statements[0].above.clear();
  tree.statements[0].beside.clear();
  const std::string text = program::print_tree(tree);
  return text.substr(text.find(": ") + 2, text.size() - text.find(": ") - 3);
}

/// Sizes that names of declarations have in one call.
using Sizes = std::map<std::string, std::int64_t>;

/// Checks one input against its declaration.
void check_declared(const program::Source& source, const Statement& statement, DType dtype,
                    const Shape& shape, Sizes& sizes) {
  const std::string& name = statement.targets[0];
  const auto given = [&] {
    std::string text(name_of(dtype));
    for (std::size_t d = 0; d < shape.size(); ++d) {
      text += (d == 0 ? "[" : ", ") + graph::extent_text(shape[d]);
    }
    return text + (shape.empty() ? "[]" : "]");
  };
  if (dtype != *program::dtype_named(statement.dtype)) {
    program::fail_in<TypeError>(
        source, statement.span,
        fmt::format("input '{}' is {} but declared {}", name, given(), declared_text(statement)));
  }
  bool fits = shape.size() == statement.sizes.size();
  for (std::size_t d = 0; fits && d < shape.size(); ++d) {
    const program::DeclaredSize& size = statement.sizes[d];
    if (size.name.empty()) {
      fits = shape[d] == size.size || shape[d] < 0;
      continue;
    }
    const auto [known, added] = sizes.emplace(size.name, shape[d]);
    if (!added && known->second != shape[d]) {
      program::fail_in<ShapeError>(
          source, statement.span,
          fmt::format("input '{}' is {}, so size '{}' is {} here but {} before", name, given(),
                      size.name, graph::extent_text(shape[d]), graph::extent_text(known->second)));
    }
  }
  if (fits) return;
  program::fail_in<ShapeError>(
      source, statement.span,
      fmt::format("input '{}' is {} but declared {}", name, given(), declared_text(statement)));
}

/// The same expression under the labels of its declaration, aligning by position.
Expr labelled(const Expr& expr, const Statement& statement) {
  const Program::Declared declared = declared_type(statement);
  const bool any = std::any_of(declared.labels.begin(), declared.labels.end(),
                               [](const std::string& label) { return !label.empty(); });
  return any ? graph::relabel("input", expr, declared.labels, false) : expr;
}

}  // namespace

void Program::State::check_names(const std::vector<std::string>& given, bool all) const {
  const std::vector<std::string>& wanted = main().inputs;
  std::vector<std::string> missing, unknown;
  for (const std::string& name : wanted) {
    if (std::find(given.begin(), given.end(), name) != given.end()) continue;
    if (all || find(name) == nullptr) missing.push_back(name);
  }
  for (const std::string& name : given) {
    if (std::find(wanted.begin(), wanted.end(), name) == wanted.end()) unknown.push_back(name);
  }
  if (missing.empty() && unknown.empty()) return;
  std::string fact = main().source.name() + ": ";
  if (!missing.empty()) {
    fact +=
        fmt::format("missing input{} {}", missing.size() == 1 ? "" : "s", program::listed(missing));
  }
  if (!unknown.empty()) {
    fact += fmt::format("{}no input{} {}", missing.empty() ? "" : "; ",
                        unknown.size() == 1 ? "" : "s", program::listed(unknown));
  }
  fail<ValueError>(fmt::format("{}; the program takes {}, given are {}", fact,
                               program::listed(wanted), program::listed(given)));
}

Program Program::make(std::string_view text, const std::string& name,
                      const std::optional<std::filesystem::path>& path, const Words& words) {
  return Program(std::make_shared<const State>(
      State{program::load_modules(program::Source(name, text), path, words)}));
}

Program Program::parse(std::string_view text, const std::string& name, const Words& words) {
  return make(text, name, {}, words);
}

Program Program::from_file(const std::filesystem::path& path, const Words& words) {
  return make(program::read_program(path), path.generic_string(), path, words);
}

const std::vector<std::string>& Program::inputs() const noexcept { return state_->main().inputs; }

std::vector<std::string> Program::outputs() const { return program::output_names(state_->main()); }

std::string Program::str() const { return program::print_tree(state_->main().tree); }

std::optional<Program::Declared> Program::declared(std::string_view input) const {
  const Statement* statement = state_->find(input);
  if (statement == nullptr) return {};
  return declared_type(*statement);
}

void Program::check_inputs(const std::vector<std::string>& given) const {
  state_->check_names(given, true);
}

std::vector<Expr> Program::build(const std::map<std::string, Expr>& inputs) const {
  std::vector<std::string> given;
  for (const auto& [name, expr] : inputs) given.push_back(name);
  state_->check_names(given, true);
  std::map<std::string, Value> values;
  Sizes sizes;
  for (const std::string& name : this->inputs()) {
    const Expr& expr = inputs.at(name);
    Value value = program::unwrapped(expr);
    const Statement* statement = state_->find(name);
    const bool number = value.is_number();
    if (statement != nullptr && number) {
      // A number of the program has no dtype of its own.
      check_declared(state_->main().source, *statement, *program::dtype_named(statement->dtype), {},
                     sizes);
    } else if (statement != nullptr) {
      check_declared(state_->main().source, *statement, expr.dtype(), expr.shape(), sizes);
      value = labelled(expr, *statement);
    }
    values.emplace(name, std::move(value));
  }
  std::vector<Expr> outputs;
  for (auto& [name, expr] : program::build(state_->modules, values, false).outputs) {
    outputs.push_back(std::move(expr));
  }
  return outputs;
}

std::vector<Tensor> Program::operator()(const std::map<std::string, Expr>& inputs,
                                        const EvalOptions& options) const {
  return eval(build(inputs), options);
}

namespace {

/// Symbolic inputs of these types, checked against declarations; what is only declared has the
/// sizes of its declaration.
std::vector<std::pair<std::string, Expr>> input_expressions(
    const Program& program, const program::Source& source,
    const std::map<std::string, InputType>& types,
    const std::function<const Statement*(std::string_view)>& find) {
  std::vector<std::pair<std::string, Expr>> made;
  Sizes sizes;
  for (const std::string& name : program.inputs()) {
    const Statement* statement = find(name);
    const auto given = types.find(name);
    if (given != types.end() && statement != nullptr) {
      check_declared(source, *statement, given->second.dtype, given->second.shape, sizes);
    }
  }
  for (const std::string& name : program.inputs()) {
    const Statement* statement = find(name);
    const auto given = types.find(name);
    InputType type = given != types.end() ? given->second
                                          : InputType(declared_type(*statement).shape,
                                                      declared_type(*statement).dtype);
    if (given == types.end()) {
      // Sizes that another input has given are known here too.
      for (std::size_t d = 0; d < type.shape.size(); ++d) {
        const auto known = sizes.find(statement->sizes[d].name);
        if (known != sizes.end()) type.shape[d] = known->second;
      }
    }
    made.emplace_back(name, input(type.dtype, type.shape));
  }
  return made;
}

}  // namespace

Compiled Program::compile(const std::map<std::string, InputType>& types) const {
  std::vector<std::string> given;
  for (const auto& [name, type] : types) given.push_back(name);
  state_->check_names(given, false);
  const auto find = [&](std::string_view name) { return state_->find(name); };
  std::map<std::string, Value> values;
  std::vector<Expr> symbols, outputs;
  for (const auto& [name, expr] : input_expressions(*this, state_->main().source, types, find)) {
    symbols.push_back(expr);
    const Statement* statement = find(name);
    values.emplace(name, statement == nullptr ? expr : labelled(expr, *statement));
  }
  for (auto& [name, expr] : program::build(state_->modules, values, false).outputs) {
    outputs.push_back(std::move(expr));
  }
  return einkern::compile(symbols, outputs);
}

Program::Outline Program::outline(const std::map<std::string, InputType>& types) const {
  std::vector<std::string> given;
  for (const auto& [name, type] : types) given.push_back(name);
  state_->check_names(given, false);
  const auto find = [&](std::string_view name) { return state_->find(name); };
  Outline outline;
  std::map<std::string, Value> values;
  for (const auto& [name, expr] : input_expressions(*this, state_->main().source, types, find)) {
    const Statement* statement = find(name);
    const Expr shown = statement == nullptr ? expr : labelled(expr, *statement);
    outline.inputs.emplace_back(name, shown);
    values.emplace(name, shown);
  }
  program::Built built = program::build(state_->modules, values, true);
  for (auto& [name, value] : built.steps) {
    if (const auto* expr = value.as<Expr>()) outline.steps.emplace_back(name, *expr);
  }
  outline.outputs = std::move(built.outputs);
  return outline;
}

}  // namespace einkern
