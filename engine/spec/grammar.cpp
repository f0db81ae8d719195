// SPDX-License-Identifier: Apache-2.0
// The grammar of einsum texts in Spirit X3: code points in, terms or the place of failure out.
#include "grammar.h"

#include <boost/spirit/home/x3.hpp>
#include <utility>

namespace einkern {

bool is_invisible(char32_t c) noexcept {
  // The control characters, then Unicode's White_Space.
  return c <= U' ' || (c >= 0x7F && c <= 0xA0) || c == 0x1680 || (c >= 0x2000 && c <= 0x200A) ||
         c == 0x2028 || c == 0x2029 || c == 0x202F || c == 0x205F || c == 0x3000;
}

bool is_letter(char32_t c) noexcept {
  return (c >= U'a' && c <= U'z') || (c >= U'A' && c <= U'Z') || (c >= 0xA1 && !is_invisible(c));
}

bool is_letter(std::string_view name) {
  if (name.empty() || name.size() > 4) return false;  // bytes of a code point
  const std::u32string points = decode_utf8(name);
  return points.size() == 1 && is_letter(points[0]);
}

bool is_name_character(char32_t c) noexcept {
  return is_letter(c) || (c >= U'0' && c <= U'9') || c == U'_';
}

namespace {

namespace x3 = boost::spirit::x3;

using Iterator = std::u32string_view::const_iterator;

// One code point of a class. X3's own character parsers work on bytes, or need its Unicode tables.
template <class Class>
struct CodePoint : x3::parser<CodePoint<Class>> {
  using attribute_type = x3::unused_type;
  static constexpr bool has_attribute = false;

  constexpr explicit CodePoint(Class contains) : contains_(contains) {}

  template <class Context, class RuleContext, class Attribute>
  bool parse(Iterator& first, const Iterator& last, const Context& context, RuleContext&,
             Attribute&) const {
    x3::skip_over(first, last, context);
    if (first == last || !contains_(*first)) return false;
    ++first;
    return true;
  }

 private:
  Class contains_;
};

constexpr auto one(char32_t wanted) {
  return CodePoint([wanted](char32_t c) { return c == wanted; });
}
constexpr auto one_of(bool (*contains)(char32_t) noexcept) {
  return CodePoint([contains](char32_t c) { return contains(c); });
}

// Receives the tokens in the order of the text. The grammar never backtracks over a token, so what
// was received stays true.
class Builder {
 public:
  Builder(Iterator begin, Equation& equation) : begin_(begin), equation_(equation) {
    start_input(begin);
  }

  template <class Token>
  void add_label(const Token& token) {
    const Span span = cover(token);
    term_->items.push_back({encode_utf8({&*token.begin(), span.size}), span});
  }
  template <class Token>
  void add_ellipsis(const Token& token) {
    term_->items.push_back({"", cover(token)});
  }
  // Stretches the span of the term up to the token.
  template <class Token>
  Span cover(const Token& token) {
    const Span span{position(token.begin()), position(token.end()) - position(token.begin())};
    if (term_->span.size == 0) term_->span.begin = span.begin;
    term_->span.size = span.begin + span.size - term_->span.begin;
    return span;
  }
  void start_input(Iterator at) { term_ = &equation_.inputs.emplace_back(empty_term(at)); }
  void start_output(Iterator at) { term_ = &equation_.output.emplace(empty_term(at)); }

 private:
  std::size_t position(Iterator at) const { return static_cast<std::size_t>(at - begin_); }
  Term empty_term(Iterator at) const { return {{}, {position(at), 0}}; }

  Iterator begin_;
  Equation& equation_;
  Term* term_ = nullptr;  // the one that tokens go to
};

struct BuilderTag;
Builder& builder(const auto& context) { return x3::get<BuilderTag>(context).get(); }

// Actions; `_attr` is the range of code points of the token.
constexpr auto add_label = [](auto& context) { builder(context).add_label(x3::_attr(context)); };
constexpr auto add_ellipsis = [](auto& context) {
  builder(context).add_ellipsis(x3::_attr(context));
};
constexpr auto cover = [](auto& context) { builder(context).cover(x3::_attr(context)); };
constexpr auto start_input = [](auto& context) {
  builder(context).start_input(x3::_attr(context).end());
};
constexpr auto start_output = [](auto& context) {
  builder(context).start_output(x3::_attr(context).end());
};

const auto blank = one(U' ');

const auto letter = x3::rule<struct Letter>{"a letter"} = x3::raw[one_of(is_letter)][add_label];

const auto name = x3::rule<struct Name>{"a name"} =
    x3::raw[x3::lexeme[+one_of(is_name_character)]][add_label];

const auto third_dot = x3::rule<struct ThirdDot>{"three dots"} = one(U'.') >> !one(U'.');

const auto second_dot = x3::rule<struct SecondDot>{"three dots"} = one(U'.');

const auto ellipsis = x3::rule<struct Ellipsis>{"an ellipsis"} =
    x3::raw[x3::lexeme[one(U'.') > second_dot > third_dot]][add_ellipsis];

const auto bracketed = x3::rule<struct Bracketed>{"a label or '...'"} = name | ellipsis;

const auto close = x3::rule<struct Close>{"']'"} = x3::raw[one(U']')][cover];

const auto group = x3::rule<struct Group>{"labels in brackets"} =
    x3::raw[one(U'[')][cover] > -(bracketed >> *((one(U',') > bracketed) | bracketed)) > close;

const auto term = x3::rule<struct TermRule>{"a term"} = *(letter | ellipsis | group);

const auto comma = x3::rule<struct Comma>{"','"} = x3::raw[one(U',')][start_input];

const auto arrow_head = x3::rule<struct ArrowHead>{"'->'"} = one(U'>');

const auto arrow = x3::rule<struct Arrow>{"'->'"} =
    x3::raw[x3::lexeme[one(U'-') > arrow_head]][start_output];

const auto end = x3::rule<struct End>{"the end"} = x3::eoi;

const auto terms = x3::rule<struct Terms>{"terms"} = (term % comma) >> -(arrow >> term);

const auto equation_rule = x3::rule<struct EquationRule>{"an equation"} = terms > end;

const auto term_alone = x3::rule<struct TermAlone>{"a term alone"} = term > end;

std::optional<Mismatch> match(std::u32string_view code_points, Equation& equation,
                              const auto& grammar) {
  Iterator first = code_points.begin();
  Builder builder(first, equation);
  try {
    x3::phrase_parse(first, code_points.end(), x3::with<BuilderTag>(std::ref(builder))[grammar],
                     blank);
  } catch (const x3::expectation_failure<Iterator>& failure) {
    return Mismatch{static_cast<std::size_t>(failure.where() - code_points.begin()),
                    failure.which()};
  }
  return std::nullopt;
}

}  // namespace

std::optional<Mismatch> match_equation(std::u32string_view code_points, Equation& equation) {
  return match(code_points, equation, equation_rule);
}

std::optional<Mismatch> match_term(std::u32string_view code_points, Term& term) {
  Equation equation;
  std::optional<Mismatch> mismatch = match(code_points, equation, term_alone);
  term = std::move(equation.inputs.front());
  return mismatch;
}

}  // namespace einkern
