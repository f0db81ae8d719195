// SPDX-License-Identifier: Apache-2.0
// The grammar of programs in Spirit X3. What it names is what messages expect.
#include "grammar.h"

#include <boost/spirit/home/x3.hpp>
#include <type_traits>

namespace einkern::program {

bool is_name_start(char32_t c) noexcept {
  return (c >= U'a' && c <= U'z') || (c >= U'A' && c <= U'Z') || c == U'_' ||
         (c >= 0xA1 && c != 0x1680 && !(c >= 0x2000 && c <= 0x200A) && c != 0x2028 && c != 0x2029 &&
          c != 0x202F && c != 0x205F && c != 0x3000 && c != 0xFEFF);
}

bool is_name_part(char32_t c) noexcept { return is_name_start(c) || (c >= U'0' && c <= U'9'); }

namespace {

namespace x3 = boost::spirit::x3;

using Iterator = std::u32string_view::const_iterator;

bool is_digit(char32_t c) noexcept { return c >= U'0' && c <= U'9'; }

// Parsers of single tokens. X3's own character parsers work on bytes, or need its Unicode tables.
template <class Derived>
struct TokenParser : x3::parser<Derived> {
  using attribute_type = x3::unused_type;
  static constexpr bool has_attribute = false;

  template <class Context, class RuleContext, class Attribute>
  bool parse(Iterator& first, const Iterator& last, const Context& context, RuleContext&,
             Attribute&) const {
    Iterator at = first;
    x3::skip_over(at, last, context);
    if (!this->derived().match(at, last)) return false;
    first = at;
    return true;
  }
};

struct Exactly : TokenParser<Exactly> {
  std::u32string_view wanted;
  std::u32string_view never_before = {};  // code points that make it another token

  constexpr explicit Exactly(std::u32string_view text, std::u32string_view unless = {})
      : wanted(text), never_before(unless) {}

  bool match(Iterator& at, Iterator last) const {
    for (const char32_t c : wanted) {
      if (at == last || *at != c) return false;
      ++at;
    }
    if (is_name_part(wanted.back()) && at != last && is_name_part(*at)) return false;
    return at == last || never_before.find(*at) == never_before.npos;
  }
};

struct Name : TokenParser<Name> {
  bool match(Iterator& at, Iterator last) const {
    const Iterator begin = at;
    if (at == last || !is_name_start(*at)) return false;
    while (at != last && is_name_part(*at)) ++at;
    return !is_keyword({&*begin, static_cast<std::size_t>(at - begin)});
  }
};

// The constants: keywords that an expression may hold.
struct Constant : TokenParser<Constant> {
  bool match(Iterator& at, Iterator last) const {
    const Iterator begin = at;
    while (at != last && is_name_part(*at)) ++at;
    const std::u32string_view word(&*begin, static_cast<std::size_t>(at - begin));
    return at != begin && (word == U"inf" || word == U"nan" || word == U"pi" || word == U"true" ||
                           word == U"false");
  }
};

struct Number : TokenParser<Number> {
  static bool digits(Iterator& at, Iterator last) {
    const Iterator begin = at;
    while (at != last && is_digit(*at)) ++at;
    return at != begin;
  }
  bool match(Iterator& at, Iterator last) const {
    if (!digits(at, last)) return false;
    if (Iterator dot = at; dot != last && *dot == U'.' && digits(++dot, last)) at = dot;
    if (at != last && (*at == U'e' || *at == U'E')) {
      Iterator power = at + 1;
      if (power != last && (*power == U'+' || *power == U'-')) ++power;
      if (digits(power, last)) at = power;
    }
    return at == last || !is_name_part(*at);
  }
};

struct Whole : TokenParser<Whole> {
  bool match(Iterator& at, Iterator last) const {
    return Number::digits(at, last) && (at == last || !is_name_part(*at));
  }
};

struct Text : TokenParser<Text> {
  bool match(Iterator& at, Iterator last) const {
    if (at == last || *at != U'"') return false;
    ++at;
    while (at != last && *at != U'"' && *at != U'\n') ++at;
    return at != last && *at++ == U'"';
  }
};

// The first token of the next line that holds one, when blanks stand before it.
struct Indented : x3::parser<Indented> {
  using attribute_type = x3::unused_type;
  static constexpr bool has_attribute = false;

  template <class Context, class RuleContext, class Attribute>
  bool parse(Iterator& first, const Iterator& last, const Context&, RuleContext&,
             Attribute&) const {
    Iterator line = first;
    while (true) {
      Iterator at = line;
      while (at != last && (*at == U' ' || *at == U'\t')) ++at;
      if (at != last && *at == U'#') {
        while (at != last && *at != U'\n') ++at;
      }
      if (at == last) return false;
      if (*at != U'\n') {
        if (at == line) return false;
        first = at;
        return true;
      }
      line = at + 1;
    }
  }
};

// Blanks and comments; line ends inside brackets.
struct Skipper : x3::parser<Skipper> {
  using attribute_type = x3::unused_type;
  static constexpr bool has_attribute = false;
  const int* depth;

  explicit Skipper(const int* open) : depth(open) {}

  template <class Context, class RuleContext, class Attribute>
  bool parse(Iterator& first, const Iterator& last, const Context&, RuleContext&,
             Attribute&) const {
    if (first == last) return false;
    if (*first == U' ' || *first == U'\t' || (*first == U'\n' && *depth > 0)) {
      ++first;
      return true;
    }
    if (*first != U'#') return false;
    while (first != last && *first != U'\n') ++first;
    return true;
  }
};

struct BuilderTag;
struct BeginTag;

TreeBuilder& builder(const auto& context) { return x3::get<BuilderTag>(context).get(); }

// Where the token of an action stands.
Span span_of(const auto& context) {
  const Iterator begin = x3::get<BeginTag>(context).get();
  const auto& token = x3::_attr(context);
  return {static_cast<std::size_t>(token.begin() - begin),
          static_cast<std::size_t>(token.end() - token.begin())};
}

using Plain = void (TreeBuilder::*)();
using Spanned = void (TreeBuilder::*)(const Span&);

// Tells the builder and reads nothing, not even blanks.
template <class Action>
struct Tell : x3::parser<Tell<Action>> {
  using attribute_type = x3::unused_type;
  static constexpr bool has_attribute = false;
  Action action;

  constexpr explicit Tell(Action tell) : action(tell) {}
  template <class Context, class RuleContext, class Attribute>
  bool parse(Iterator&, const Iterator&, const Context& context, RuleContext&, Attribute&) const {
    action(builder(context));
    return true;
  }
};

const auto nothing = Tell([](TreeBuilder&) {});

template <Plain F>
constexpr auto then() {
  return Tell([](TreeBuilder& tree) { (tree.*F)(); });
}
template <Spanned F>
constexpr auto on(const auto& token) {
  return x3::raw[token][([](auto& context) { (builder(context).*F)(span_of(context)); })];
}
template <Node::Kind kind>
constexpr auto leaf(const auto& token) {
  return x3::raw[token][([](auto& context) { builder(context).add(kind, span_of(context)); })];
}
template <Node::Kind kind>
constexpr auto end_chain() {
  return Tell([](TreeBuilder& tree) { tree.close_chain(kind); });
}
template <Node::Kind kind>
constexpr auto end_prefix() {
  return Tell([](TreeBuilder& tree) { tree.close_prefix(kind); });
}

constexpr auto operators(const auto& token) { return on<&TreeBuilder::add_operator>(token); }
// Operands joined by operators, or a single operand alone. Each parser holds those it is made of:
// one that stood twice in every level would stand 64 times in an expression, and make the grammar
// 200 KB of pointers to relocate at every start.
template <Node::Kind kind>
constexpr auto chain(const auto& operand, const auto& token) {
  return then<&TreeBuilder::open>() >> operand % operators(token) >> end_chain<kind>();
}
// Any number of items with commas between them, and one more if it pleases.
constexpr auto items(const auto& item, const auto& end) {
  return -((!end >> item) % Exactly(U",") >> -Exactly(U","));
}

const auto open_paren = on<&TreeBuilder::open_bracket>(Exactly(U"("));
const auto open_square = on<&TreeBuilder::open_bracket>(Exactly(U"["));
const auto paren = Exactly(U")");
const auto square = Exactly(U"]");
const auto close_paren = x3::rule<struct CloseParen>{"')'"} =
    on<&TreeBuilder::close_bracket>(paren);
const auto close_square = x3::rule<struct CloseSquare>{"']'"} =
    on<&TreeBuilder::close_bracket>(square);
// What an action is told of must carry the rule's name itself, for messages.
template <Spanned F>
constexpr auto named_token(const auto& token, const char* what) {
  return x3::rule<std::integral_constant<Spanned, F>>{what} = on<F>(token);
}
const auto target = named_token<&TreeBuilder::add_target>(Name{}, "a name");
const auto equals = x3::rule<struct Equals>{"'='"} = Exactly(U"=", U"=");
const auto colon = x3::rule<struct Colon>{"':'"} = Exactly(U":");
const auto quoted = named_token<&TreeBuilder::add_text>(Text{}, "a text in double quotes");

const x3::rule<struct ExpressionTag> expression = "an expression";

const auto argument = then<&TreeBuilder::add_argument>() >>
                      -(x3::raw[Name{} >> &Exactly(U"=", U"=")][([](auto& context) {
                          builder(context).name_argument(span_of(context));
                        })] >>
                        Exactly(U"=")) >>
                      expression;

const auto call = open_paren >> items(argument, paren) > close_paren
                  > then<&TreeBuilder::close_call>();

const auto list = open_square >> items(expression, square) > close_square
                  > then<&TreeBuilder::close_list>();

const auto group = open_paren > expression > close_paren > then<&TreeBuilder::close_parentheses>();

const auto atom = x3::rule<struct Atom>{"an expression"} =
    on<&TreeBuilder::add_integer_or_number>(Number{}) | on<&TreeBuilder::add_text>(Text{}) |
    (on<&TreeBuilder::add_name>(Name{}) >> -call) | on<&TreeBuilder::add_name>(Constant{}) | list |
    group;

const auto absent =
    x3::raw[&(Exactly(U":") | Exactly(U",") | square)]
           [([](auto& context) { builder(context).add(Node::Kind::absent, span_of(context)); })];
const auto bound = absent | expression;
const auto range_or_index = (x3::raw[&Exactly(U":")][([](auto& context) {
                               builder(context).add(Node::Kind::absent, span_of(context));
                             })] |
                             expression) >>
                            -(Exactly(U":") >> then<&TreeBuilder::open_range>() >> bound >>
                              -(Exactly(U":") >> bound) >> then<&TreeBuilder::close_range>());
const auto slice_item = leaf<Node::Kind::ellipsis>(Exactly(U"...")) | range_or_index;
const auto subscript = open_square >> items(slice_item, square) > close_square
                       > then<&TreeBuilder::close_subscript>();
const auto field = Exactly(U".") > named_token<&TreeBuilder::close_field>(Name{}, "a name");

const auto postfix = (nothing > atom) >> *(subscript | field);

const auto minus = Exactly(U"-");
template <class Operand>
constexpr auto negated(const Operand& operand) {
  return then<&TreeBuilder::open>() >> *operators(minus) >> operand >>
         end_prefix<Node::Kind::negate>();
}

const auto power =
    then<&TreeBuilder::open>() >> postfix >>
    *(operators(Exactly(U"**")) >> negated(postfix)) >> end_chain<Node::Kind::power>();
const auto product = chain<Node::Kind::product>(
    negated(power), Exactly(U"*", U"*") | Exactly(U"//") | Exactly(U"/") | Exactly(U"%"));
const auto sum = chain<Node::Kind::sum>(product, Exactly(U"+") | minus);
const auto comparison =
    chain<Node::Kind::comparison>(sum, Exactly(U"<=") | Exactly(U">=") | Exactly(U"==") |
                                           Exactly(U"!=") | Exactly(U"<") | Exactly(U">"));
const auto inverted = then<&TreeBuilder::open>() >> *operators(Exactly(U"not")) >> comparison
                      >> end_prefix<Node::Kind::invert>();
const auto both = chain<Node::Kind::both>(inverted, Exactly(U"and"));
const auto expression_def = chain<Node::Kind::either>(both, Exactly(U"or"));

BOOST_SPIRIT_DEFINE(expression)

// Statements. The span of one ends with its last token.
template <Statement::Kind kind>
constexpr auto statement(const auto& content) {
  return x3::raw[content][([](auto& context) {
    const Span span = span_of(context);
    builder(context).end_statement(kind, span.begin, span.begin + span.size);
  })];
}

const auto line_end = x3::rule<struct LineEnd>{"the end of the line"} = Exactly(U"\n") | x3::eoi;

const auto assignment =
    statement<Statement::Kind::assign>(target >> *(Exactly(U",") > target) > equals > expression);
const auto give = statement<Statement::Kind::give>(Exactly(U"return") >> expression >>
                                                   *(Exactly(U",") >> expression));
const auto import_statement = statement<Statement::Kind::import>(Exactly(U"import") > quoted);

const auto size = x3::rule<struct Size>{"a size: a name or a number"} =
    x3::raw[Name{}][([](auto& context) { builder(context).add_size(span_of(context), true); })] |
    x3::raw[Whole{}][([](auto& context) { builder(context).add_size(span_of(context), false); })];
const auto open_sizes = x3::rule<struct OpenSizes>{"'['"} = open_square;
const auto needed_size = nothing > size;
const auto input_statement = statement<Statement::Kind::input>(
    Exactly(U"input") > target > colon > named_token<&TreeBuilder::add_dtype>(Name{}, "a dtype") >
    open_sizes > items(needed_size, square) > close_square > then<&TreeBuilder::close_sizes>());

const auto simple = x3::rule<struct Simple>{"a statement"} = give | assignment;
const auto parameter = (nothing > named_token<&TreeBuilder::add_parameter>(Name{}, "a name")) >>
                       -(Exactly(U"=", U"=") >> expression >> then<&TreeBuilder::add_standard>());
const auto open_parameters = x3::rule<struct OpenParameters>{"'('"} = open_paren;
const auto block = Exactly(U"\n") >> Indented{} > simple > line_end >>
                   *(Indented{} > simple > line_end);
const auto function_head =
    x3::raw[Exactly(U"def") > target > open_parameters > items(parameter, paren) > close_paren >
            colon][([](auto& context) { builder(context).begin_function(span_of(context)); })];
const auto body = x3::rule<struct Body>{"a statement, or indented lines of them"} =
    block | (simple >> line_end);
const auto function = function_head > body > then<&TreeBuilder::end_function>();

const auto top = function | ((import_statement | input_statement | give | assignment) > line_end);

const auto end = x3::rule<struct End>{"a statement"} = x3::eoi;

const auto program = *(Exactly(U"\n") | top) > end;

}  // namespace

std::optional<Mismatch> match_program(std::u32string_view points, TreeBuilder& tree) {
  Iterator first = points.begin();
  const Iterator begin = first;
  try {
    x3::phrase_parse(
        first, points.end(),
        x3::with<BuilderTag>(std::ref(tree))[x3::with<BeginTag>(std::cref(begin))[program]],
        Skipper(&tree.depth));
  } catch (const x3::expectation_failure<Iterator>& failure) {
    return Mismatch{static_cast<std::size_t>(failure.where() - points.begin()), failure.which()};
  }
  return std::nullopt;
}

}  // namespace einkern::program
