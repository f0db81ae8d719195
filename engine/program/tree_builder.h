// SPDX-License-Identifier: Apache-2.0
// Tokens in the order of the text to a tree: what the actions of the grammar call.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "ast.h"

namespace einkern::program {

/// An expression that is nested too deeply to be walked.
struct TooDeep {
  Span span;
};

/// Collects finished expressions on a stack; a frame remembers where a compound began. The grammar
/// never goes back over a token, so what was received stays true.
class TreeBuilder {
 public:
  explicit TreeBuilder(std::u32string_view points) : points_(points) {}

  /// Open brackets: while there are some, a line end is a blank.
  int depth = 0;

  // Leaves. Spans are in code points.
  void add_integer_or_number(const Span& span);
  void add_text(const Span& span);
  void add_name(const Span& span);
  void add(Node::Kind kind, const Span& span);

  // Compounds: open, then children and operators, then one of the closing functions.
  void open() { frames_.push_back({nodes_.size(), {}}); }
  void add_operator(const Span& span) { frames_.back().operators.push_back(text(span)); }
  void close_chain(Node::Kind kind);
  void close_prefix(Node::Kind kind);

  void open_bracket(const Span& span);
  void close_bracket(const Span& span);
  void add_argument();
  void name_argument(const Span& span);
  void close_call();
  void close_list();
  void close_parentheses();
  void close_subscript();
  void open_range();
  void close_range();
  void close_field(const Span& span);

  // Statements.
  void add_target(const Span& span);
  void add_parameter(const Span& span);
  void add_standard();
  void begin_function(const Span& head);
  void end_function();
  void add_dtype(const Span& span);
  void add_size(const Span& span, bool named);
  void close_sizes() { close(); }
  void end_statement(Statement::Kind kind, std::size_t begin, std::size_t end);

  /// Where bracket pairs that are still open begin, innermost last.
  const std::vector<Span>& open_brackets() const noexcept { return brackets_; }
  std::vector<Statement> take() { return std::move(statements_); }

 private:
  struct Frame {
    std::size_t first;  // of its children on the stack
    std::vector<std::string> operators;
    std::vector<std::string> keywords = {};
    std::vector<Span> keyword_spans = {};
  };

  std::string text(const Span& span) const;
  std::vector<Node> take_from(std::size_t first);
  Frame close();
  void push(Node node);
  /// Puts `node`, whose child is the last expression, into its place.
  void wrap(Node node);

  std::u32string_view points_;
  std::vector<Node> nodes_;
  std::vector<Frame> frames_;
  std::vector<Span> brackets_;  // open ones
  Span closed_{0, 0};           // the pair that was closed last, whole
  Statement current_;
  std::vector<Statement> statements_;
  std::vector<Statement> functions_;  // the one whose body is being read
};

/// Is this a word of the language itself, which names nothing else?
bool is_keyword(std::u32string_view name) noexcept;

}  // namespace einkern::program
