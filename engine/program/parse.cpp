// SPDX-License-Identifier: Apache-2.0
// A program text to its tree, and the place where it stops following the grammar to a message.
#include "parse.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>

#include "comments.h"
#include "grammar.h"
#include "suggest.h"

namespace einkern::program {
namespace {

/// What stands here for a sign of another language.
const char* instead_of(char32_t sign) {
  switch (sign) {
    case U'@':
      return "; products of matrices are einsum(\"ij,jk->ik\", a, b)";
    case U'^':
      return "; powers are **";
    case U'&':
      return "; both is 'and'";
    case U'|':
      return "; either is 'or'";
    case U'~':
      return "; the opposite is 'not'";
    case U';':
      return "; a statement ends with its line";
    default:
      return "";
  }
}

constexpr std::size_t kMostBrackets = 256;

std::string describe(char32_t c) {
  std::string number = fmt::format("U+{:04X}", static_cast<std::uint32_t>(c));
  if (c <= 0x20 || (c >= 0x7F && c < 0xA1)) return number;
  return fmt::format("'{}' ({})", encode_utf8({&c, 1}), number);
}

bool is_known_character(char32_t c) {
  return is_name_part(c) ||
         std::u32string_view(U" \t\n#\"()[].,:=+-*/%<>!").find(c) != std::u32string_view::npos;
}

/// Characters, texts that do not end, and brackets, before the grammar sees anything.
void check_characters(const Source& source) {
  const std::u32string_view points = source.points();
  std::vector<std::size_t> open;
  for (std::size_t i = 0; i < points.size(); ++i) {
    const char32_t c = points[i];
    if (c == U'#') {
      i = std::min(points.find(U'\n', i), points.size()) - 1;
    } else if (c == U'"') {
      const std::size_t end = std::min(points.find_first_of(U"\"\n", i + 1), points.size());
      if (end == points.size() || points[end] == U'\n') {
        fail_in<SyntaxError>(source, {i, end - i},
                             "the text in double quotes does not end on its line");
      }
      i = end;
    } else if (c == U'\'') {
      fail_in<SyntaxError>(source, {i, 1}, "a text stands in double quotes");
    } else if (!is_known_character(c)) {
      fail_in<SyntaxError>(source, {i, 1},
                           fmt::format("unknown character {}{}", describe(c), instead_of(c)));
    } else if (c == U'(' || c == U'[') {
      open.push_back(i);
      if (open.size() > kMostBrackets) {
        fail_in<SyntaxError>(source, {i, 1},
                             fmt::format("brackets nest deeper than {}", kMostBrackets));
      }
    } else if (c == U')' || c == U']') {
      if (open.empty()) {
        const char32_t opening = c == U')' ? U'(' : U'[';
        fail_in<SyntaxError>(source, {i, 1},
                             fmt::format("{} without {}", c == U')' ? "')'" : "']'",
                                         opening == U'(' ? "'('" : "'['"));
      }
      open.pop_back();
    }
  }
}

/// The token at a place, for messages.
Span token_at(const Source& source, std::size_t at) {
  const std::u32string_view points = source.points();
  if (at >= points.size() || points[at] == U'\n') return {at, 1};
  std::size_t end = at + 1;
  if (points[at] == U'"') {
    end = std::min(points.find(U'"', end), points.size() - 1) + 1;
  } else if (is_name_part(points[at])) {
    while (end < points.size() && is_name_part(points[end])) ++end;
  } else {
    const std::u32string_view twice = U"*/<>=!.";
    while (end < points.size() && twice.find(points[at]) != twice.npos &&
           (points[end] == points[at] || points[end] == U'=')) {
      ++end;
    }
  }
  return {at, end - at};
}

class Diagnosis {
 public:
  Diagnosis(const Source& source, const Mismatch& mismatch, const TreeBuilder& tree)
      : source_(source), expected_(mismatch.expected), open_(tree.open_brackets()) {
    where_ = mismatch.where;
    const std::u32string_view points = source.points();
    // The grammar stops before blanks and comments.
    while (where_ < points.size()) {
      if (points[where_] == U'#') {
        where_ = std::min(points.find(U'\n', where_), points.size());
      } else if (points[where_] == U' ' || points[where_] == U'\t' ||
                 (points[where_] == U'\n' && !open_.empty())) {
        ++where_;
      } else {
        break;
      }
    }
  }

  [[noreturn]] void fail() const {
    const std::u32string_view points = source_.points();
    const Span token = token_at(source_, where_);
    const std::string found = where_ < points.size() && points[where_] != U'\n'
                                  ? fmt::format("'{}'", source_.text(token))
                                  : "the end of the line";
    const bool at_end = where_ >= points.size();
    // What stands at the start of another line belongs to the next statement.
    if (!open_.empty() && (at_end || starts_line())) {
      const Span& bracket = open_.back();
      fail_in<SyntaxError>(source_, bracket,
                           fmt::format("'{}' is not closed", source_.text(bracket)));
    }
    if (found == "'='" && expected_ == "the end of the line") {
      say("one '=' belongs into a statement; '==' compares", token);
    }
    if (expected_ == "a statement" && is_keyword(points.substr(token.begin, token.size))) {
      if (found == "'def'" || found == "'import'" || found == "'input'") {
        say(fmt::format("{} stands at the top of a program, not in a function", found), token);
      }
    }
    if (expected_ == "a name" && is_keyword(points.substr(token.begin, token.size))) {
      say(fmt::format("{} is a word of the language, not a name", found), token);
    }
    if (expected_ == "'='") refuse_foreign(points, token);
    if (expected_ == "'='" && found == "'('") {
      say("a statement is 'name = expression' or 'return expression', not a call alone", token);
    }
    if (expected_ == "the end of the line" || expected_ == "')'" || expected_ == "']'") {
      say(fmt::format("expected {}{}, found {}", close_or_operator(), expected_, found), token);
    }
    say(fmt::format("expected {}, found {}", expected_, found), token);
  }

 private:
  [[noreturn]] void say(const std::string& fact, const Span& span) const {
    fail_in<SyntaxError>(source_, span, fact);
  }
  /// Statements of other languages, told by their first word, which was read as a name.
  void refuse_foreign(std::u32string_view points, const Span& token) const {
    const std::size_t begin = source_.line_begin(source_.line_of(token.begin));
    const std::size_t first = points.find_first_not_of(U" \t", begin);
    std::size_t end = first;
    while (end < points.size() && is_name_part(points[end])) ++end;
    const std::u32string_view word = points.substr(first, end - first);
    const Span span{first, word.size()};
    if (word == U"if" || word == U"elif" || word == U"else") {
      say("there are no conditional statements; where(condition, x, y) chooses by element", span);
    }
    if (word == U"for" || word == U"while") {
      say("there are no loops; einsum, reductions and scan run along axes", span);
    }
    constexpr std::u32string_view kSigns = U"+-*/%";
    if (token.begin + 1 < points.size() && kSigns.find(points[token.begin]) != kSigns.npos &&
        points[token.begin + 1] == U'=') {
      say("a statement is 'name = expression'; write 'name = name + ...'", {token.begin, 2});
    }
  }
  bool starts_line() const {
    const std::size_t line = source_.line_of(where_);
    const std::u32string_view text = source_.line(line);
    const std::size_t column = where_ - source_.line_begin(line);
    return line > source_.line_of(open_.back().begin) && column == 0 && is_name_start(text[column]);
  }
  std::string close_or_operator() const { return open_.empty() ? "an operator or " : "',' or "; }

  const Source& source_;
  const std::string& expected_;
  std::vector<Span> open_;
  std::size_t where_ = 0;
};

void check_literals(const Source& source, const Node& node) {
  if (node.kind == Node::Kind::number && node.number > 1.7976931348623157e308) {
    fail_in<SyntaxError>(source, node.span, "the number is larger than a double holds");
  }
  for (const Node& child : node.children) check_literals(source, child);
}

/// What the grammar leaves open about statements: columns and numbers.
void check_statements(const Source& source, const std::vector<Statement>& statements,
                      std::optional<std::size_t> column) {
  for (const Statement& statement : statements) {
    const std::size_t at = source.column_of(statement.span.begin);
    const bool on_head_line =
        column && *column == 0 && !statements.empty() && statements.size() == 1;
    if (column && at != *column && !on_head_line) {
      fail_in<SyntaxError>(source, statement.span,
                           *column == 0 ? "blanks before a statement outside of a function"
                                        : "this line is indented differently from the one before");
    }
    for (const Node& value : statement.values) check_literals(source, value);
    for (const FunctionParameter& parameter : statement.parameters) {
      for (const Node& value : parameter.standard) check_literals(source, value);
    }
    for (const DeclaredSize& size : statement.sizes) {
      if (size.name.empty() && size.size < 0) {
        fail_in<SyntaxError>(source, statement.span, "a size is larger than 64 bits hold");
      }
    }
    if (statement.kind == Statement::Kind::define) {
      check_statements(source, statement.body, source.column_of(statement.body.front().span.begin));
    }
  }
}

}  // namespace

Tree parse_tree(const Source& source) {
  check_characters(source);
  TreeBuilder builder(source.points());
  try {
    if (const auto mismatch = match_program(source.points(), builder)) {
      Diagnosis(source, *mismatch, builder).fail();
    }
  } catch (const TooDeep& deep) {
    fail_in<SyntaxError>(source, deep.span, "the expression is nested too deeply");
  }
  Tree tree{builder.take(), {}};
  check_statements(source, tree.statements, 0);
  attach_comments(source, tree);
  return tree;
}

}  // namespace einkern::program
