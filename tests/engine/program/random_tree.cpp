// SPDX-License-Identifier: Apache-2.0
// Random programs as trees.
#include "random_tree.h"

#include <bit>
#include <cmath>
#include <cstdint>
#include <vector>

namespace einkern::test {

using program::Node;
using program::Statement;
using program::Tree;
using Kind = Node::Kind;

std::string RandomTree::name() {
  static const char* const kNames[] = {"x", "q", "scores", "w_1", "αβ", "größe", "Key", "_t", "e5"};
  return kNames[below(9)];
}

std::string RandomTree::comment() {
  static const char* const kComments[] = {"# why", "#", "# \"quoted\" # twice", "#  ünïcode (["};
  return kComments[below(4)];
}

Node RandomTree::leaf() {
  Node node;
  switch (below(5)) {
    case 0:
      node.kind = Kind::integer;
      node.integer = below(3) == 0 ? INT64_MAX - below(2) : below(1000);
      break;
    case 1:
      node.kind = Kind::number;
      do {
        const std::uint64_t bits = std::uint64_t{engine_()} << 31 ^ engine_();
        node.number = below(2) == 0 ? below(100) / 8.0 : std::abs(std::bit_cast<double>(bits));
      } while (!std::isfinite(node.number));
      break;
    case 2:
      node.kind = Kind::text;
      node.name = below(4) == 0 ? "" : below(2) == 0 ? "bhqd,bhkd->bhqk" : "# no comment (";
      break;
    default:
      node.kind = Kind::name;
      node.name = below(6) == 0 ? "pi" : name();
  }
  return node;
}

Node RandomTree::chain(Kind kind, int depth) {
  static const std::vector<std::string> kComparisons = {"<", "<=", ">", ">=", "==", "!="};
  static const std::vector<std::string> kProducts = {"*", "/", "//", "%"};
  Node node;
  node.kind = kind;
  const int count = 2 + below(3);
  for (int i = 0; i < count; ++i) node.children.push_back(expression(depth - 1));
  for (int i = 1; i < count; ++i) {
    switch (kind) {
      case Kind::comparison:
        node.operators.push_back(kComparisons[below(6)]);
        break;
      case Kind::sum:
        node.operators.emplace_back(below(2) == 0 ? "+" : "-");
        break;
      case Kind::product:
        node.operators.push_back(kProducts[below(4)]);
        break;
      default:
        node.operators.emplace_back(kind == Kind::power ? "**" : kind == Kind::both ? "and" : "or");
    }
  }
  return node;
}

Node RandomTree::slice_item(int depth) {
  Node node;
  switch (below(4)) {
    case 0:
      node.kind = Kind::ellipsis;
      break;
    case 1:
      return expression(depth - 1);
    default:
      node.kind = Kind::range;
      for (int i = 0; i < 3; ++i) {
        node.children.push_back(below(2) == 0 ? Node{} : expression(depth - 1));
      }
  }
  ++counts_[node.kind];
  return node;
}

Node RandomTree::expression(int depth) {
  Node node;
  const int choice = depth <= 0 ? 0 : below(14);
  switch (choice) {
    case 1:
      node.kind = Kind::list;
      for (int i = below(4); i > 0; --i) node.children.push_back(expression(depth - 1));
      break;
    case 2:
    case 3:
      node.kind = Kind::call;
      node.name = name();
      for (int i = below(5); i > 0; --i) {
        node.children.push_back(expression(depth - 1));
        node.keywords.push_back(below(2) == 0 ? name() : "");
      }
      break;
    case 4:
      node.kind = Kind::naming;
      node.children.push_back(expression(depth - 1));
      node.name = "hk";
      break;
    case 5:
      node.kind = Kind::slice;
      node.children.push_back(expression(depth - 1));
      for (int i = 1 + below(3); i > 0; --i) node.children.push_back(slice_item(depth));
      // A text alone names axes instead.
      if (node.children.size() == 2 && node.children[1].kind == Kind::text) return leaf();
      break;
    case 6:
      node.kind = Kind::field;
      node.children.push_back(expression(depth - 1));
      node.name = "weights";
      break;
    case 7:
      node.kind = below(2) == 0 ? Kind::negate : Kind::invert;
      node.children.push_back(expression(depth - 1));
      break;
    case 8:
    case 9:
    case 10:
    case 11:
    case 12:
    case 13: {
      static constexpr Kind kChains[] = {Kind::either, Kind::both,    Kind::comparison,
                                         Kind::sum,    Kind::product, Kind::power};
      node = chain(kChains[choice - 8], depth);
      break;
    }
    default:
      node = leaf();
  }
  ++counts_[node.kind];
  return node;
}

void RandomTree::add_remarks(Statement& statement, bool blank) {
  if (below(3) == 0) statement.beside = comment();
  if (below(3) != 0) return;
  if (blank && below(2) == 0) statement.above.emplace_back();
  for (int i = below(3); i > 0; --i) statement.above.push_back(comment());
}

Statement RandomTree::simple(bool give) {
  Statement statement;
  if (give) {
    statement.kind = Statement::Kind::give;
    for (int i = 1 + below(3); i > 0; --i) statement.values.push_back(expression(3));
  } else {
    for (int i = 1 + below(2); i > 0; --i) statement.targets.push_back(name());
    statement.values.push_back(expression(4));
  }
  return statement;
}

Tree RandomTree::tree() {
  Tree result;
  for (int i = below(6); i > 0; --i) {
    Statement statement;
    switch (below(6)) {
      case 0:
        statement.kind = Statement::Kind::import;
        statement.values.emplace_back();
        statement.values[0].kind = Kind::text;
        statement.values[0].name = "lib/masks.ein";
        break;
      case 1:
        statement.kind = Statement::Kind::input;
        statement.targets = {name()};
        statement.dtype = "f32";
        for (int d = below(4); d > 0; --d) {
          if (below(3) == 0) {
            statement.sizes.push_back({"", below(2000)});
          } else {
            statement.sizes.push_back({name(), 0});
          }
        }
        break;
      case 2:
        statement.kind = Statement::Kind::define;
        statement.targets = {name()};
        for (int p = below(4); p > 0; --p) {
          statement.parameters.push_back({name(), {}, {}});
          if (below(2) == 0) statement.parameters.back().standard.push_back(expression(1));
        }
        for (int line = below(3); line > 0; --line) statement.body.push_back(simple(false));
        statement.body.push_back(simple(true));
        for (std::size_t line = 0; line < statement.body.size(); ++line) {
          add_remarks(statement.body[line], true);
        }
        break;
      default:
        statement = simple(below(4) == 0);
    }
    add_remarks(statement, !result.statements.empty());
    result.statements.push_back(std::move(statement));
  }
  if (below(3) == 0) {
    if (!result.statements.empty() && below(2) == 0) result.below.emplace_back();
    result.below.push_back(comment());
  }
  return result;
}

}  // namespace einkern::test
