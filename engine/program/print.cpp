// SPDX-License-Identifier: Apache-2.0
// Trees to canonical text.
#include "print.h"

#include <fmt/format.h>

#include "number_text.h"

namespace einkern::program {
namespace {

constexpr std::size_t kWidth = 100;
constexpr std::size_t kIndent = 4;

using Kind = Node::Kind;

/// How tightly a kind binds; an operand that binds no tighter than its operator needs brackets.
int rank(Kind kind) {
  switch (kind) {
    case Kind::either:
      return 1;
    case Kind::both:
      return 2;
    case Kind::invert:
      return 3;
    case Kind::comparison:
      return 4;
    case Kind::sum:
      return 5;
    case Kind::product:
      return 6;
    case Kind::negate:
      return 7;
    case Kind::power:
      return 8;
    default:
      return 9;
  }
}

std::string flat(const Node& node);

std::string operand(const Node& node, int least) {
  const std::string text = flat(node);
  return rank(node.kind) >= least ? text : fmt::format("({})", text);
}

std::string joined(const Node& node, int least) {
  std::string text = operand(node.children[0], least);
  for (std::size_t i = 0; i < node.operators.size(); ++i) {
    text += fmt::format(" {} {}", node.operators[i], operand(node.children[i + 1], least));
  }
  return text;
}

// `-` stands before an exponent without brackets, and nowhere else inside a power.
std::string power_text(const Node& node) {
  std::string text = operand(node.children[0], 9);
  for (std::size_t i = 1; i < node.children.size(); ++i) {
    std::string exponent;
    const Node* inner = &node.children[i];
    while (inner->kind == Kind::negate) {
      exponent += "-";
      inner = &inner->children[0];
    }
    text += " ** " + exponent + operand(*inner, 9);
  }
  return text;
}

std::string argument_text(const Node& call, std::size_t i) {
  const std::string value = flat(call.children[i]);
  return call.keywords[i].empty() ? value : call.keywords[i] + "=" + value;
}

std::string range_text(const Node& node) {
  const auto part = [&](std::size_t i) {
    return node.children[i].kind == Kind::absent ? std::string() : flat(node.children[i]);
  };
  std::string text = fmt::format("{}:{}", part(0), part(1));
  if (node.children[2].kind != Kind::absent) text += fmt::format(":{}", part(2));
  return text;
}

std::string list_of(const std::vector<Node>& nodes, std::size_t from = 0) {
  std::string text;
  for (std::size_t i = from; i < nodes.size(); ++i) {
    text += (i > from ? ", " : "") + flat(nodes[i]);
  }
  return text;
}

std::string flat(const Node& node) {
  switch (node.kind) {
    case Kind::integer:
      return std::to_string(node.integer);
    case Kind::number:
      return number_text(node.number);
    case Kind::text:
      return fmt::format("\"{}\"", node.name);
    case Kind::name:
      return node.name;
    case Kind::list:
      return fmt::format("[{}]", list_of(node.children));
    case Kind::call: {
      std::string text = node.name + "(";
      for (std::size_t i = 0; i < node.children.size(); ++i) {
        text += fmt::format("{}{}", i > 0 ? ", " : "", argument_text(node, i));
      }
      return text + ")";
    }
    case Kind::naming:
      return fmt::format("{}[\"{}\"]", operand(node.children[0], 9), node.name);
    case Kind::slice:
      return fmt::format("{}[{}]", operand(node.children[0], 9), list_of(node.children, 1));
    case Kind::range:
      return range_text(node);
    case Kind::absent:
      return {};
    case Kind::ellipsis:
      return "...";
    case Kind::field:
      return fmt::format("{}.{}", operand(node.children[0], 9), node.name);
    case Kind::negate:
      return fmt::format("-{}", operand(node.children[0], 7));
    case Kind::invert:
      return fmt::format("not {}", operand(node.children[0], 3));
    case Kind::power:
      return power_text(node);
    case Kind::either:
    case Kind::both:
    case Kind::comparison:
    case Kind::sum:
    case Kind::product:
      break;
  }
  std::string joint = node.kind == Kind::either ? "or" : node.kind == Kind::both ? "and" : "";
  if (joint.empty()) return joined(node, rank(node.kind) + 1);
  std::string text;
  for (std::size_t i = 0; i < node.children.size(); ++i) {
    if (i > 0) text += " " + joint + " ";
    text += operand(node.children[i], rank(node.kind) + 1);
  }
  return text;
}

std::size_t width_of(const std::string& text) { return decode_utf8(text).size(); }

/// The expression behind `prefix` on a line, broken at the commas of its outermost call or list
/// when it is too long.
std::string laid_out(const std::string& prefix, const Node& node, std::size_t indent) {
  std::string whole = prefix + flat(node);
  const bool breakable =
      (node.kind == Kind::call || node.kind == Kind::list) && !node.children.empty();
  if (indent + width_of(whole) <= kWidth || !breakable) return whole;
  const std::string blanks(indent + kIndent, ' ');
  std::string text = prefix + (node.kind == Kind::call ? node.name + "(\n" : "[\n");
  for (std::size_t i = 0; i < node.children.size(); ++i) {
    const std::string key =
        node.kind == Kind::call && !node.keywords[i].empty() ? node.keywords[i] + "=" : "";
    text += blanks + laid_out(key, node.children[i], indent + kIndent) + ",\n";
  }
  return text + std::string(indent, ' ') + (node.kind == Kind::call ? ")" : "]");
}

void print(const Statement& statement, std::size_t indent, std::string& out);

std::string head(const Statement& statement) {
  std::string parameters;
  for (const FunctionParameter& parameter : statement.parameters) {
    if (!parameters.empty()) parameters += ", ";
    parameters += parameter.name;
    if (!parameter.standard.empty()) parameters += fmt::format("={}", flat(parameter.standard[0]));
  }
  return fmt::format("def {}({}):", statement.targets[0], parameters);
}

std::string content(const Statement& statement, std::size_t indent) {
  switch (statement.kind) {
    case Statement::Kind::assign:
      return laid_out(fmt::format("{} = ", fmt::join(statement.targets, ", ")), statement.values[0],
                      indent);
    case Statement::Kind::give:
      if (statement.values.size() == 1) return laid_out("return ", statement.values[0], indent);
      return "return " + list_of(statement.values);
    case Statement::Kind::import:
      return "import " + flat(statement.values[0]);
    case Statement::Kind::input: {
      std::string sizes;
      for (const DeclaredSize& size : statement.sizes) {
        if (!sizes.empty()) sizes += ", ";
        sizes += size.name.empty() ? std::to_string(size.size) : size.name;
      }
      return fmt::format("input {}: {}[{}]", statement.targets[0], statement.dtype, sizes);
    }
    case Statement::Kind::define:
      break;
  }
  return head(statement);
}

void print_lines(const std::vector<std::string>& lines, std::size_t indent, std::string& out) {
  for (const std::string& line : lines) {
    out += line.empty() ? "\n" : std::string(indent, ' ') + line + "\n";
  }
}

void print(const Statement& statement, std::size_t indent, std::string& out) {
  print_lines(statement.above, indent, out);
  out += std::string(indent, ' ') + content(statement, indent);
  if (!statement.beside.empty()) out += "  " + statement.beside;
  out += "\n";
  for (const Statement& inner : statement.body) print(inner, indent + kIndent, out);
}

}  // namespace

std::string print_tree(const Tree& tree) {
  std::string text;
  for (const Statement& statement : tree.statements) print(statement, 0, text);
  print_lines(tree.below, 0, text);
  return text;
}

std::string print_expression(const Node& node) { return flat(node); }

}  // namespace einkern::program
