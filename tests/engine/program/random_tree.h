// SPDX-License-Identifier: Apache-2.0
// Random programs as trees: every kind of statement and expression, nothing about what names mean.
#pragma once

#include <map>
#include <random>
#include <string>

#include "../../../engine/program/ast.h"

namespace einkern::test {

/// Makes trees and counts what they hold.
class RandomTree {
 public:
  explicit RandomTree(unsigned seed) : engine_(seed) {}

  program::Tree tree();
  program::Node expression(int depth);

  /// How many nodes of each kind were made so far.
  const std::map<program::Node::Kind, int>& counts() const { return counts_; }

 private:
  int below(int n) { return static_cast<int>(engine_() % static_cast<unsigned>(n)); }
  std::string name();
  std::string comment();
  program::Node leaf();
  program::Node chain(program::Node::Kind kind, int depth);
  program::Node slice_item(int depth);
  program::Statement simple(bool give);
  void add_remarks(program::Statement& statement, bool blank);

  std::mt19937 engine_;
  std::map<program::Node::Kind, int> counts_;
};

}  // namespace einkern::test
