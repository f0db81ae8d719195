// SPDX-License-Identifier: Apache-2.0
// A program as a tree: statements of expressions, each with its place in the text.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "../base/caret.h"

namespace einkern::program {

/// One expression. A tree of one struct, so that printing, comparing and making one are short.
struct Node {
  enum class Kind : std::uint8_t {
    integer,     // `integer`
    number,      // `number`
    text,        // `name`, what stands between the quotes
    name,        // `name`: a variable, a constant or a label
    list,        // [children]
    call,        // name(children), `keywords[i]` before child i or empty
    naming,      // child 0 [`name`]: axes named by a term
    slice,       // child 0 [children 1...], each a range, an ellipsis or an index
    range,       // start:stop:step, absent ones of kind `absent`
    absent,      // nothing, in a range
    ellipsis,    // `...` in a slice
    field,       // child 0 . name
    negate,      // -child
    invert,      // not child
    either,      // children joined by `or`
    both,        // children joined by `and`
    comparison,  // children joined by `operators`
    sum,         // children joined by + and -
    product,     // children joined by * / // %
    power,       // children joined by **, from the right
  };

  Kind kind = Kind::absent;
  std::string name;
  std::int64_t integer = 0;
  double number = 0;
  std::vector<Node> children;
  std::vector<std::string> keywords;   // of a call, as many as children
  std::vector<std::string> operators;  // of a chain, one fewer than children
  Span span = {0, 0};                  // of the whole expression, in code points of the text
  std::vector<Span> keyword_spans = {};
  std::uint32_t height = 0;  // levels of children

  /// The same expression, wherever it stands.
  friend bool operator==(const Node& a, const Node& b);
};

/// `name=value` of a function's head, or a plain name.
struct FunctionParameter {
  std::string name;
  std::vector<Node> standard;  // one when the parameter may be left out
  Span span = {0, 0};
  friend bool operator==(const FunctionParameter& a, const FunctionParameter& b) {
    return a.name == b.name && a.standard == b.standard;
  }
};

/// One size of a declared input: a number, or a name that is also the axis' label.
struct DeclaredSize {
  std::string name;
  std::int64_t size = 0;
  friend bool operator==(const DeclaredSize&, const DeclaredSize&) = default;
};

struct Statement {
  enum class Kind : std::uint8_t { assign, give, define, import, input };

  Kind kind = Kind::assign;
  std::vector<std::string> targets;  // of an assignment; the name of a function, import or input
  std::vector<Span> target_spans = {};
  std::vector<Node> values;                        // of an assignment (one) or a return
  std::vector<FunctionParameter> parameters = {};  // of a function
  std::vector<Statement> body = {};                // of a function, the last one a return
  std::string dtype = {};                          // of an input
  std::vector<DeclaredSize> sizes = {};
  std::vector<std::string> above = {};  // comment lines before it; an empty one is a blank line
  std::string beside = {};              // a comment on its line
  Span span = {0, 0};
  Span dtype_span = {0, 0};

  friend bool operator==(const Statement& a, const Statement& b);
};

/// A text as statements.
struct Tree {
  std::vector<Statement> statements;
  std::vector<std::string> below;  // comment lines after the last statement
  friend bool operator==(const Tree&, const Tree&) = default;
};

}  // namespace einkern::program
