// SPDX-License-Identifier: Apache-2.0
// Tokens to nodes and statements.
#include "tree_builder.h"

#include <algorithm>
#include <charconv>
#include <iterator>
#include <utility>

#include "number_text.h"

namespace einkern::program {
namespace {

constexpr std::u32string_view kKeywords[] = {U"and", U"def",   U"false",  U"import",
                                             U"inf", U"input", U"nan",    U"not",
                                             U"or",  U"pi",    U"return", U"true"};

constexpr std::uint32_t kMostLevels = 1000;

Span cover(const Span& first, const Span& last) {
  return {first.begin, last.begin + last.size - first.begin};
}

}  // namespace

bool is_keyword(std::u32string_view name) noexcept {
  return std::find(std::begin(kKeywords), std::end(kKeywords), name) != std::end(kKeywords);
}

std::string TreeBuilder::text(const Span& span) const {
  return encode_utf8(points_.substr(span.begin, span.size));
}

std::vector<Node> TreeBuilder::take_from(std::size_t first) {
  const auto begin = nodes_.begin() + static_cast<std::ptrdiff_t>(first);
  std::vector<Node> taken(std::make_move_iterator(begin), std::make_move_iterator(nodes_.end()));
  nodes_.erase(begin, nodes_.end());
  return taken;
}

void TreeBuilder::push(Node node) {
  for (const Node& child : node.children) node.height = std::max(node.height, child.height + 1);
  if (node.height > kMostLevels) throw TooDeep{node.span};
  nodes_.push_back(std::move(node));
}

void TreeBuilder::wrap(Node node) {
  node.children.insert(node.children.begin(), std::move(nodes_.back()));
  nodes_.pop_back();
  push(std::move(node));
}

TreeBuilder::Frame TreeBuilder::close() {
  Frame frame = std::move(frames_.back());
  frames_.pop_back();
  return frame;
}

void TreeBuilder::add(Node::Kind kind, const Span& span) {
  Node node;
  node.kind = kind;
  node.span = span;
  push(std::move(node));
}

void TreeBuilder::add_integer_or_number(const Span& span) {
  Node node;
  node.span = span;
  node.kind =
      read_number(text(span), node.integer, node.number) ? Node::Kind::integer : Node::Kind::number;
  push(std::move(node));
}

void TreeBuilder::add_text(const Span& span) {
  add(Node::Kind::text, span);
  nodes_.back().name = text({span.begin + 1, span.size - 2});
}

void TreeBuilder::add_name(const Span& span) {
  add(Node::Kind::name, span);
  nodes_.back().name = text(span);
}

void TreeBuilder::close_chain(Node::Kind kind) {
  Frame frame = close();
  if (frame.operators.empty()) return;
  Node node;
  node.kind = kind;
  node.children = take_from(frame.first);
  node.operators = std::move(frame.operators);
  node.span = cover(node.children.front().span, node.children.back().span);
  push(std::move(node));
}

void TreeBuilder::close_prefix(Node::Kind kind) {
  const Frame frame = close();
  for (std::size_t i = 0; i < frame.operators.size(); ++i) {
    Node node;
    node.kind = kind;
    node.span = nodes_.back().span;
    wrap(std::move(node));
  }
}

void TreeBuilder::open_bracket(const Span& span) {
  ++depth;
  brackets_.push_back(span);
  frames_.push_back({nodes_.size(), {}});
}

void TreeBuilder::close_bracket(const Span& span) {
  --depth;
  closed_ = cover(brackets_.back(), span);
  brackets_.pop_back();
}

void TreeBuilder::add_argument() {
  frames_.back().keywords.emplace_back();
  frames_.back().keyword_spans.push_back({0, 0});
}

void TreeBuilder::name_argument(const Span& span) {
  frames_.back().keywords.back() = text(span);
  frames_.back().keyword_spans.back() = span;
}

void TreeBuilder::close_call() {
  Frame frame = close();
  Node node;
  node.kind = Node::Kind::call;
  node.children = take_from(frame.first);
  node.name = std::move(nodes_.back().name);
  node.keywords = std::move(frame.keywords);
  node.keyword_spans = std::move(frame.keyword_spans);
  node.span = cover(nodes_.back().span, closed_);
  nodes_.pop_back();
  push(std::move(node));
}

void TreeBuilder::close_list() {
  const Frame frame = close();
  Node node;
  node.kind = Node::Kind::list;
  node.children = take_from(frame.first);
  node.span = closed_;
  push(std::move(node));
}

void TreeBuilder::close_parentheses() {
  close();
  nodes_.back().span = closed_;
}

void TreeBuilder::close_subscript() {
  const Frame frame = close();
  Node node;
  std::vector<Node> items = take_from(frame.first);
  node.span = cover(nodes_.back().span, closed_);
  if (items.size() == 1 && items[0].kind == Node::Kind::text) {
    node.kind = Node::Kind::naming;
    node.name = std::move(items[0].name);
  } else {
    node.kind = Node::Kind::slice;
    node.children = std::move(items);
  }
  wrap(std::move(node));
}

// The start of the range is the last expression.
void TreeBuilder::open_range() { frames_.push_back({nodes_.size() - 1, {}}); }

void TreeBuilder::close_range() {
  const Frame frame = close();
  Node node;
  node.kind = Node::Kind::range;
  node.children = take_from(frame.first);
  node.span = cover(node.children.front().span, node.children.back().span);
  node.children.resize(3);
  push(std::move(node));
}

void TreeBuilder::close_field(const Span& span) {
  Node node;
  node.kind = Node::Kind::field;
  node.name = text(span);
  node.span = cover(nodes_.back().span, span);
  wrap(std::move(node));
}

void TreeBuilder::add_target(const Span& span) {
  current_.targets.push_back(text(span));
  current_.target_spans.push_back(span);
}

void TreeBuilder::begin_function(const Span& head) {
  close();
  current_.kind = Statement::Kind::define;
  current_.span = head;
  functions_.push_back(std::exchange(current_, {}));
}

void TreeBuilder::add_parameter(const Span& span) {
  FunctionParameter parameter;
  parameter.name = text(span);
  parameter.span = span;
  current_.parameters.push_back(std::move(parameter));
}

void TreeBuilder::add_standard() {
  current_.parameters.back().standard = take_from(nodes_.size() - 1);
}

void TreeBuilder::end_function() {
  statements_.push_back(std::move(functions_.back()));
  functions_.pop_back();
}

void TreeBuilder::add_dtype(const Span& span) {
  current_.dtype = text(span);
  current_.dtype_span = span;
}

void TreeBuilder::add_size(const Span& span, bool named) {
  DeclaredSize size;
  if (named) {
    size.name = text(span);
  } else {
    double ignored = 0;
    if (!read_number(text(span), size.size, ignored)) size.size = -1;
  }
  current_.sizes.push_back(std::move(size));
}

void TreeBuilder::end_statement(Statement::Kind kind, std::size_t begin, std::size_t end) {
  current_.kind = kind;
  current_.span = {begin, end - begin};
  current_.values = take_from(0);
  std::vector<Statement>& into = functions_.empty() ? statements_ : functions_.back().body;
  into.push_back(std::exchange(current_, {}));
}

}  // namespace einkern::program
