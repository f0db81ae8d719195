// SPDX-License-Identifier: Apache-2.0
// Statements to expressions: every node is built by the word that C++ programs call.
#include "build.h"

#include <fmt/format.h>

#include <algorithm>
#include <unordered_map>

#include "../graph/build.h"
#include "../graph/extent.h"
#include "convert.h"
#include "engine_error.h"
#include "resolve.h"
#include "suggest.h"

namespace einkern::program {
namespace {

using Kind = Node::Kind;

constexpr std::int64_t kMostCalls = 100'000;  // of functions, which may double at every level

using Scope = std::unordered_map<std::string, Value>;

class Builder {
 public:
  Builder(const Modules& modules, bool outline) : modules_(modules), outline_(outline) {}

  Built run(const std::map<std::string, Value>& inputs) {
    const Module& main = modules_.main();
    Scope scope(inputs.begin(), inputs.end());
    Built built;
    for (const Statement& statement : main.tree.statements) {
      if (statement.kind == Statement::Kind::assign) {
        assign(main, statement, scope);
        for (const std::string& target : statement.targets) {
          built.steps.emplace_back(target, scope.at(target));
        }
      } else if (statement.kind == Statement::Kind::give) {
        const std::vector<std::string> names = output_names(main);
        static const Parameter kOutput = parameters::tensor("output");
        static const std::string kReturn = "return";
        for (std::size_t i = 0; i < statement.values.size(); ++i) {
          const Node& node = statement.values[i];
          const Origin origin{main.source, node, kReturn, outline_};
          const Value value = convert(kOutput, eval(main, node, scope), origin);
          const Expr& expr = std::get<Expr>(value.held);
          with_message([&] { expr.shape(); },
                       [&](const char* m) { return place_error(main.source, node, m); });
          built.outputs.emplace_back(names[i], expr);
        }
      }
    }
    return built;
  }

 private:
  void assign(const Module& module, const Statement& statement, Scope& scope) {
    Value value = eval(module, statement.values[0], scope);
    const std::size_t count = statement.targets.size();
    if (count == 1) {
      scope.insert_or_assign(statement.targets[0], std::move(value));
      return;
    }
    const std::vector<Value>* parts = nullptr;
    if (const auto* record = value.as<Value::Record>()) parts = &record->values;
    if (const auto* list = value.as<Value::List>()) parts = list;
    if (parts == nullptr || parts->size() != count) {
      fail_in<ValueError>(module.source, statement.span,
                          fmt::format("{} names for {}", count,
                                      parts == nullptr ? kind_text(value)
                                                       : fmt::format("{} results", parts->size())));
    }
    for (std::size_t i = 0; i < count; ++i) {
      scope.insert_or_assign(statement.targets[i], (*parts)[i]);
    }
  }

  Value eval(const Module& module, const Node& node, const Scope& scope) {
    switch (node.kind) {
      case Kind::integer:
        return node.integer;
      case Kind::number:
        return node.number;
      case Kind::text:
        return node.name;
      case Kind::name:
        if (const auto found = scope.find(node.name); found != scope.end()) return found->second;
        return *constant(node.name);
      case Kind::list: {
        Value::List list;
        for (const Node& child : node.children) list.push_back(eval(module, child, scope));
        return list;
      }
      case Kind::call:
        return call(module, node, scope);
      case Kind::naming:
        return naming(module, node, scope);
      case Kind::slice:
        return slice(module, node, scope);
      case Kind::field:
        return field(module, node, scope);
      case Kind::negate:
        return apply(module, node, "-x", {eval(module, node.children[0], scope)});
      case Kind::invert:
        return apply(module, node, "not", {eval(module, node.children[0], scope)});
      case Kind::comparison:
        return comparison(module, node, scope);
      case Kind::power: {
        Value value = eval(module, node.children.back(), scope);
        for (std::size_t i = node.children.size() - 1; i-- > 0;) {
          value = apply(module, node, "**", {eval(module, node.children[i], scope), value});
        }
        return value;
      }
      case Kind::either:
      case Kind::both:
      case Kind::sum:
      case Kind::product: {
        Value value = eval(module, node.children[0], scope);
        for (std::size_t i = 0; i < node.operators.size(); ++i) {
          value = apply(module, node, node.operators[i],
                        {value, eval(module, node.children[i + 1], scope)});
        }
        return value;
      }
      case Kind::range:
      case Kind::absent:
      case Kind::ellipsis:
        break;
    }
    fail_check("an expression", __FILE__, __LINE__);
  }

  Value comparison(const Module& module, const Node& node, const Scope& scope) {
    std::vector<Value> operands;
    for (const Node& child : node.children) operands.push_back(eval(module, child, scope));
    Value value = apply(module, node, node.operators[0], {operands[0], operands[1]});
    for (std::size_t i = 1; i < node.operators.size(); ++i) {
      Value next = apply(module, node, node.operators[i], {operands[i], operands[i + 1]});
      value = apply(module, node, "and", {value, next});
    }
    return value;
  }

  /// An operator over values.
  Value apply(const Module& module, const Node& node, const std::string& sign,
              const std::vector<Value>& operands) {
    const bool flags = std::all_of(operands.begin(), operands.end(),
                                   [](const Value& v) { return v.as<bool>() != nullptr; });
    if (flags && sign == "not") return !std::get<bool>(operands[0].held);
    if (flags && sign == "and") {
      return std::get<bool>(operands[0].held) && std::get<bool>(operands[1].held);
    }
    if (flags && sign == "or") {
      return std::get<bool>(operands[0].held) || std::get<bool>(operands[1].held);
    }
    const Word& word = *modules_.words->find(sign);
    if (auto folded = fold(module, node, word, operands)) return *folded;
    std::vector<std::optional<Value>> values;
    for (std::size_t i = 0; i < operands.size(); ++i) {
      const Node& from = node.children.size() == operands.size() ? node.children[i] : node;
      values.emplace_back(
          convert(word.parameters[i], operands[i], {module.source, from, sign, outline_}));
    }
    return build_word(module, node, word, std::move(values));
  }

  /// The result when all operands are numbers and the word says what it does to them.
  std::optional<Value> fold(const Module& module, const Node& node, const Word& word,
                            const std::vector<Value>& operands) {
    if (word.fold == nullptr) return {};
    bool symbols = false;
    for (const Value& operand : operands) {
      const bool symbol = operand.as<SymbolicNumber>() != nullptr;
      if (!symbol && !operand.is_number()) return {};
      symbols |= symbol;
    }
    if (symbols) {
      static const std::vector<std::string> kTests = {"<", "<=", ">", ">=", "==", "!="};
      if (std::find(kTests.begin(), kTests.end(), word.name) != kTests.end()) {
        fail_in<ValueError>(module.source, node.span,
                            "a comparison of sizes that are known only when a plan is called");
      }
      return symbolic(word.name, operands);
    }
    return with_message([&] { return word.fold(operands); },
                        [&](const char* m) { return place_error(module.source, node, m); });
  }

  Value build_word(const Module& module, const Node& node, const Word& word,
                   std::vector<std::optional<Value>> values) {
    return with_message([&] { return word.build(Arguments(word, std::move(values))); },
                        [&](const char* m) { return place_error(module.source, node, m); });
  }

  Value call(const Module& module, const Node& node, const Scope& scope) {
    if (const auto found = module.functions.find(node.name); found != module.functions.end()) {
      return call_function(module, node, found->second, scope);
    }
    const Word& word = *modules_.words->find(node.name);
    const auto bound = bind_call(module.source, node, word);
    std::vector<std::optional<Value>> given(word.parameters.size());
    std::vector<Value> operands;
    for (std::size_t p = 0; p < bound.size(); ++p) {
      if (word.parameters[p].rest) continue;
      for (const std::size_t child : bound[p]) {
        given[p] = argument(module, node.children[child], word.parameters[p], scope);
        operands.push_back(*given[p]);
      }
    }
    if (auto folded = fold(module, node, word, operands)) return *folded;
    for (std::size_t p = 0; p < bound.size(); ++p) {
      const Parameter& parameter = word.parameters[p];
      if (parameter.rest) {
        Value::List rest;
        for (const std::size_t child : bound[p]) {
          const Node& from = node.children[child];
          rest.push_back(convert(parameter, argument(module, from, parameter, scope),
                                 {module.source, from, word.name, outline_}));
        }
        given[p] = std::move(rest);
      } else if (given[p]) {
        const Node& from = node.children[bound[p][0]];
        given[p] = convert(parameter, *given[p], {module.source, from, word.name, outline_});
      } else if (parameter.otherwise) {
        given[p] = standard_value(parameter);
      }
    }
    check_labels(module, node, word, bound, given);
    return build_word(module, node, word, std::move(given));
  }

  Value argument(const Module& module, const Node& node, const Parameter& parameter,
                 const Scope& scope) {
    using P = Parameter::Kind;
    const auto label = [&](const Node& item) -> Value {
      if (item.kind == Kind::name || item.kind == Kind::text) return item.name;
      const Value value = eval(module, item, scope);
      static const std::string kAxis = "axis";
      return convert(parameters::integer(parameter.name), value,
                     {module.source, item, kAxis, outline_});
    };
    const auto labels = [&]() -> Value {
      Value::List list;
      for (const Node& child : node.children) list.push_back(label(child));
      return list;
    };
    switch (parameter.kind) {
      case P::axis:
      case P::label:
      case P::name:
        return label(node);
      case P::axes:
      case P::labels:
        return node.kind == Kind::list ? labels() : label(node);
      case P::order:
        return node.kind == Kind::list ? labels() : eval(module, node, scope);
      case P::choice:
        if (node.kind == Kind::name && !scope.contains(node.name) && !constant(node.name)) {
          return node.name;
        }
        return eval(module, node, scope);
      default:
        return eval(module, node, scope);
    }
  }

  /// Labels of axes that the first tensor of the word does not have.
  void check_labels(const Module& module, const Node& node, const Word& word,
                    const std::vector<std::vector<std::size_t>>& bound,
                    const std::vector<std::optional<Value>>& given) const {
    using P = Parameter::Kind;
    const Expr* tensor = given.empty() || !given[0] ? nullptr : given[0]->as<Expr>();
    if (tensor == nullptr || graph::has_open_axes(*tensor)) return;
    std::vector<std::string> known;
    for (const std::string& label : tensor->labels().to_vector(tensor->rank())) {
      if (!label.empty()) known.push_back(label);
    }
    const auto check = [&](const Node& item) {
      if (item.kind != Kind::name && item.kind != Kind::text) return;
      if (std::find(known.begin(), known.end(), item.name) != known.end()) return;
      fail_in<ShapeError>(module.source, item.span,
                          known.empty()
                              ? fmt::format("{}: no axis '{}': the axes of '{}' have no labels",
                                            word.name, item.name, word.parameters[0].name)
                              : fmt::format("{}: no axis '{}' among {}{}", word.name, item.name,
                                            listed(known), suggestion(item.name, known)));
    };
    for (std::size_t p = 0; p < bound.size(); ++p) {
      const P kind = word.parameters[p].kind;
      if (kind != P::axis && kind != P::axes && kind != P::order) continue;
      for (const std::size_t child : bound[p]) {
        const Node& item = node.children[child];
        if (item.kind == Kind::list) {
          for (const Node& one : item.children) check(one);
        } else if (kind != P::order) {
          check(item);
        }
      }
    }
  }

  Value call_function(const Module& module, const Node& node, const Function& function,
                      const Scope& scope) {
    if (++calls_ > kMostCalls) {
      fail_in<ValueError>(
          module.source, node.span,
          fmt::format("the program calls functions more than {} times", kMostCalls));
    }
    const Word shown{node.name, "", function.parameters()};
    const auto bound = bind_call(module.source, node, shown);
    const Statement& definition = *function.statement;
    const Module& home = *function.module;
    Scope inner;
    for (std::size_t p = 0; p < bound.size(); ++p) {
      const FunctionParameter& parameter = definition.parameters[p];
      inner.insert_or_assign(parameter.name, bound[p].empty()
                                                 ? eval(home, parameter.standard[0], Scope{})
                                                 : eval(module, node.children[bound[p][0]], scope));
    }
    return with_message(
        [&] {
          for (const Statement& statement : definition.body) {
            if (statement.kind == Statement::Kind::assign) assign(home, statement, inner);
          }
          return returned(home, definition.body.back(), inner);
        },
        [&](const char* message) {
          return fmt::format("{}\n  called from {}", message, module.source.place(node.span.begin));
        });
  }

  Value returned(const Module& module, const Statement& give, const Scope& scope) {
    if (give.values.size() == 1) return eval(module, give.values[0], scope);
    Value::Record record;
    for (const Node& value : give.values) record.values.push_back(eval(module, value, scope));
    return record;
  }

  /// A value that must be a tensor, of the first child of `node`.
  Expr tensor_of(const Module& module, const Node& node, const Scope& scope,
                 const std::string& function) {
    const Value value = eval(module, node.children[0], scope);
    const Origin origin{module.source, node.children[0], function, outline_};
    return std::get<Expr>(convert(parameters::tensor("x"), value, origin).held);
  }

  Value naming(const Module& module, const Node& node, const Scope& scope) {
    const Expr x = tensor_of(module, node, scope, "named");
    return with_message([&]() -> Value { return x[node.name]; },
                        [&](const char* m) { return place_error(module.source, node, m); });
  }

  Value slice(const Module& module, const Node& node, const Scope& scope) {
    static const std::string kSlice = "slice";
    Expr x = tensor_of(module, node, scope, kSlice);
    const auto place = [&](const Node& at) {
      return [&](const char* m) { return place_error(module.source, at, m); };
    };
    const std::size_t rank = with_message([&] { return x.rank(); }, place(node));
    const std::size_t count = node.children.size() - 1;
    const auto dots = static_cast<std::size_t>(
        std::count_if(node.children.begin() + 1, node.children.end(),
                      [](const Node& child) { return child.kind == Kind::ellipsis; }));
    if (dots > 1 || count - dots > rank) {
      fail_in<ShapeError>(module.source, node.span,
                          dots > 1 ? "slice: two ellipses"
                                   : fmt::format("slice: {} ranges or positions for {} ax{}s",
                                                 count - dots, rank, rank == 1 ? "i" : "e"));
    }
    const Expr whole = x;
    std::size_t axis = 0, dropped = 0;
    for (std::size_t i = 1; i <= count; ++i) {
      const Node& item = node.children[i];
      if (item.kind == Kind::ellipsis) {
        axis += rank - (count - 1);
        continue;
      }
      if (item.kind != Kind::range) {
        static const Parameter kPosition = parameters::integer("position");
        Value value = eval(module, item, scope);
        if (value.as<Expr>() != nullptr) {
          fail_in<TypeError>(module.source, item.span,
                             "slice: a position is a number that is known when the program is "
                             "built; take(x, at, axis) picks by a tensor");
        }
        // Where sizes are names, any position has the shape that is asked for.
        const bool some = outline_ && (value.as<SymbolicNumber>() != nullptr ||
                                       graph::is_dyn(whole.shape()[axis + dropped]));
        value = convert(kPosition, some ? Value(std::int64_t{0}) : value,
                        {module.source, item, kSlice, outline_});
        const auto position = std::get<std::int64_t>(value.held);
        x = with_message(
            [&] {
              graph::pick("slice", whole, axis + dropped, position);  // its message counts all axes
              return graph::pick("slice", x, axis, position);
            },
            place(item));
        ++dropped;
        continue;
      }
      std::optional<std::int64_t> bounds[3];
      for (std::size_t b = 0; b < 3; ++b) {
        if (item.children[b].kind == Kind::absent) continue;
        static constexpr const char* kNames[] = {"start", "stop", "step"};
        const Value value =
            convert(parameters::integer(kNames[b]), eval(module, item.children[b], scope),
                    {module.source, item.children[b], kSlice, outline_});
        bounds[b] = std::get<std::int64_t>(value.held);
      }
      if (bounds[0] || bounds[1] || bounds[2]) {
        x = with_message(
            [&] {
              return graph::slice("slice", x, axis, bounds[0], bounds[1], bounds[2].value_or(1));
            },
            place(item));
      }
      ++axis;
    }
    return x;
  }

  Value field(const Module& module, const Node& node, const Scope& scope) {
    const Value value = eval(module, node.children[0], scope);
    const auto* record = value.as<Value::Record>();
    if (record == nullptr || record->names.empty()) {
      fail_in<TypeError>(module.source, node.span,
                         fmt::format("{} has no parts with names", kind_text(value)));
    }
    const auto found = std::find(record->names.begin(), record->names.end(), node.name);
    if (found == record->names.end()) {
      fail_in<ValueError>(module.source, node.span,
                          fmt::format("no result '{}' among {}{}", node.name, listed(record->names),
                                      suggestion(node.name, record->names)));
    }
    return record->values[static_cast<std::size_t>(found - record->names.begin())];
  }

  const Modules& modules_;
  bool outline_;
  std::int64_t calls_ = 0;
};

}  // namespace

std::vector<std::string> output_names(const Module& main) {
  std::vector<std::string> names;
  for (const Node& value : main.tree.statements.back().values) {
    names.push_back(value.kind == Kind::name && !constant(value.name)
                        ? value.name
                        : fmt::format("out{}", names.size()));
  }
  return names;
}

Built build(const Modules& modules, const std::map<std::string, Value>& inputs, bool outline) {
  return Builder(modules, outline).run(inputs);
}

}  // namespace einkern::program
