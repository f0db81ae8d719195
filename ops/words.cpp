// SPDX-License-Identifier: Apache-2.0
// The words of ops as rows: the table that programs look them up in. One row per word.
#include "words.h"

#include <cmath>
#include <utility>

#include "../engine/base/error.h"
#include "fold.h"
#include "ops.h"

namespace einkern {
namespace {

using namespace parameters;
using A = Arguments;

/// A word of one or two tensors that takes nothing else.
template <Expr (*F)(const Expr&)>
Value one(const A& a) {
  return F(a.tensor("x"));
}
template <Expr (*F)(const Expr&, const Expr&)>
Value two(const A& a) {
  return F(a.tensor("a"), a.tensor("b"));
}
template <BoolExpr (*F)(const Expr&, const Expr&)>
Value compared(const A& a) {
  return F(a.tensor("a"), a.tensor("b"));
}
std::vector<Parameter> x() { return {tensor("x")}; }
std::vector<Parameter> a_b() { return {tensor("a"), tensor("b")}; }

using Reduction = Expr (*)(const Expr&, const Axes&, const ReduceOptions&);
using FullReduction = Expr (*)(const Expr&, const ReduceOptions&);
template <Reduction F, FullReduction All>
Value reduced(const A& a) {
  const ReduceOptions options{.keep = a.flag("keep")};
  return a.has("axes") ? F(a.tensor("x"), a.axes("axes"), options) : All(a.tensor("x"), options);
}
std::vector<Parameter> reduction() {
  return {tensor("x"), axes("axes").optional(), flag("keep").standard("false").by_name()};
}

using Normalisation = Expr (*)(const Expr&, const Axes&, const SoftmaxOptions&);
template <Normalisation F>
Value normalised(const A& a) {
  return F(a.tensor("s"), a.axes("axes"), {.sink = a.maybe_tensor("sink")});
}
std::vector<Parameter> normalisation() {
  return {tensor("s"), axes("axes").standard("-1"), tensor("sink").optional().by_name()};
}

using Norm = Expr (*)(const Expr&, const Axes&, const NormOptions&);
template <Norm F>
Value normed_word(const A& a) {
  return F(
      a.tensor("x"), a.axes("axes"),
      {.weight = a.maybe_tensor("weight"), .bias = a.maybe_tensor("bias"), .eps = a.number("eps")});
}
std::vector<Parameter> normed() {
  return {tensor("x"), axes("axes").standard("-1"), tensor("weight").optional().by_name(),
          tensor("bias").optional().by_name(), number("eps").standard("1e-5").by_name()};
}

Value other(Mask mask, const char* what) { return Value::Other{std::move(mask), what}; }

Value causal_word(const A& a) {
  if (!a.has("q") && !a.has("k") && !a.has("placed")) return causal();
  if (!a.has("q") || !a.has("k")) fail<ValueError>("causal: takes two labels, q and k, or none");
  const Axis q = a.axis("q"), k = a.axis("k");
  if (!a.has("placed")) return causal(q, k);
  const Causal placed = *placement(a, "causal", "placed");
  if (placed.align == Align::bottom_right) return other(causal(q, k, placed), "a mask");
  return placed.offset == 0 ? causal(q, k) : causal_by(q, k, placed.offset);
}

Value mask_word(const A& a) {
  std::vector<Mask> masks;
  for (const Value& value : std::get<Value::List>(a.value("masks").held)) {
    const auto* made = value.as<Value::Other>();
    if (const auto* mask = made == nullptr ? nullptr : std::any_cast<Mask>(&made->value)) {
      masks.push_back(*mask);
    } else if (const auto* visible = value.as<Expr>()) {
      masks.emplace_back(*visible);
    } else {
      fail<TypeError>("mask: a mask is " + kind_text(value) +
                      "; it is a bool tensor or a bias(...)");
    }
  }
  return mask(a.tensor("s"), masks);
}

Value permute_word(const A& a) {
  if (const auto* equation = a.value("order").as<std::string>()) {
    return permute_as(a.tensor("x"), *equation);
  }
  return permute(a.tensor("x"), Axes(a.axes("order")));
}

Value gelu_word(const A& a) {
  const auto* form = a.value("form").as<std::string>();
  if (form == nullptr) fail<ValueError>("gelu: unknown form; choices: exact, tanh");
  return gelu(a.tensor("x"), *form == "tanh" ? Gelu::tanh : Gelu::exact);
}

Value toeplitz_word(const A& a) {
  if (!a.has("labels")) return toeplitz(a.tensor("x"), a.axis("axis"), a.integer("queries"));
  const std::vector<std::string> labels = a.labels("labels");
  if (labels.size() != 2) fail<ValueError>("toeplitz: labels are a list of two, [queries, keys]");
  return toeplitz(a.tensor("x"), a.axis("axis"), a.integer("queries"), {labels[0], labels[1]});
}

double reciprocal_root(double v) { return 1 / std::sqrt(v); }
double logistic(double v) { return 1 / (1 + std::exp(-v)); }

WordTable table() {
  WordTable rows = {
      // Operators, under their signs.
      {"+", "sum", a_b(), two<(operator+)>, fold::add},
      {"-", "difference", a_b(), two<(operator-)>, fold::subtract},
      {"*", "product", a_b(), two<(operator*)>, fold::multiply},
      {"/", "true division", a_b(), two<(operator/)>, fold::divide},
      {"//", "floor of the quotient", a_b(), two<floordiv>, fold::floordiv},
      {"%", "remainder with the divisor's sign", a_b(), two<mod>, fold::mod},
      {"**", "power", a_b(), two<pow>, fold::power},
      {"-x", "negative", x(), one<(operator-)>, fold::negative},
      {"<", "less", a_b(), compared<(operator<)>, fold::less},
      {"<=", "at most", a_b(), compared<(operator<=)>, fold::less_equal},
      {">", "greater", a_b(), compared<(operator>)>, fold::greater},
      {">=", "at least", a_b(), compared<(operator>=)>, fold::greater_equal},
      {"==", "equal", a_b(), compared<(operator==)>, fold::equal},
      {"!=", "unequal", a_b(), compared<(operator!=)>, fold::not_equal},
      {"and", "both", a_b(),
       [](const A& a) -> Value { return BoolExpr(a.tensor("a")) && BoolExpr(a.tensor("b")); }},
      {"or", "either", a_b(),
       [](const A& a) -> Value { return BoolExpr(a.tensor("a")) || BoolExpr(a.tensor("b")); }},
      {"not", "the opposite", x(), [](const A& a) -> Value { return !BoolExpr(a.tensor("x")); }},
      // elementwise.h
      {"floordiv", "floor of the quotient", a_b(), two<floordiv>, fold::floordiv},
      {"mod", "remainder with the divisor's sign", a_b(), two<mod>, fold::mod},
      {"pow", "power", a_b(), two<pow>, fold::power},
      {"minimum", "the smaller of two elements", a_b(), two<minimum>, fold::minimum},
      {"maximum", "the larger of two elements", a_b(), two<maximum>, fold::maximum},
      {"abs", "absolute value", x(), one<abs>, fold::abs},
      {"exp", "e to the power", x(), one<exp>, fold::real<std::exp>},
      {"log", "natural logarithm", x(), one<log>, fold::real<std::log>},
      {"sqrt", "square root", x(), one<sqrt>, fold::real<std::sqrt>},
      {"rsqrt", "1 / sqrt(x)", x(), one<rsqrt>, fold::real<reciprocal_root>},
      {"sin", "sine of an angle in radians", x(), one<sin>, fold::real<std::sin>},
      {"cos", "cosine of an angle in radians", x(), one<cos>, fold::real<std::cos>},
      {"tanh", "hyperbolic tangent", x(), one<tanh>, fold::real<std::tanh>},
      {"sigmoid", "1 / (1 + exp(-x))", x(), one<sigmoid>, fold::real<logistic>},
      {"erf", "error function", x(), one<erf>, fold::real<std::erf>},
      {"relu", "max(x, 0)", x(), one<relu>},
      {"gelu",
       "Gaussian error linear unit",
       {tensor("x"), choice("form", {"exact", "tanh"}).standard("exact")},
       gelu_word},
      {"silu", "x sigmoid(x)", x(), one<silu>},
      // dropout.h
      {"dropout",
       "zeros with probability p, the rest by 1 / (1 - p), by a seed",
       {tensor("x"), number("p"), tensor("seed")},
       [](const A& a) -> Value { return dropout(a.tensor("x"), a.number("p"), a.tensor("seed")); }},
      // index.h
      {"index",
       "the position along an axis",
       {label("axis")},
       [](const A& a) -> Value { return index(a.axis("axis")); }},
      {"where",
       "x where the condition holds, else y",
       {tensor("condition"), tensor("x"), tensor("y")},
       [](const A& a) -> Value {
         return where(a.tensor("condition"), a.tensor("x"), a.tensor("y"));
       }},
      // linear.h
      {"linear",
       "x w + bias over the last axis, w stored (in, out)",
       {tensor("x"), tensor("w"), tensor("bias").optional()},
       [](const A& a) -> Value {
         return linear(a.tensor("x"), a.tensor("w"), a.maybe_tensor("bias"));
       }},
      // mask.h
      {"causal",
       "visible where k <= q, or k <= q + an offset",
       {label("q").optional(), label("k").optional(),
        choice("placed", {"top_left", "bottom_right"}).optional()},
       causal_word},
      {"window",
       "visible where q - left <= k <= q + right; -1 is open",
       {label("q"), label("k"), integer("left"), integer("right")},
       [](const A& a) -> Value {
         return window(a.axis("q"), a.axis("k"), a.integer("left"), a.integer("right"));
       }},
      {"lengths",
       "visible where k < lengths[b]",
       {tensor("lengths"), name("b"), label("k")},
       [](const A& a) -> Value { return lengths(a.tensor("lengths"), a.text("b"), a.axis("k")); }},
      {"segments",
       "visible where both belong to the same segment",
       {tensor("segments_q"), tensor("segments_k")},
       [](const A& a) -> Value {
         return segments(a.tensor("segments_q"), a.tensor("segments_k"));
       }},
      {"bias",
       "a bias for mask: added, and hides where it is -inf",
       {tensor("b")},
       [](const A& a) -> Value { return other(bias(a.tensor("b")), "a bias"); }},
      {"mask", "scores under masks", {tensor("s"), any("masks").and_more()}, mask_word},
      // norm.h
      {"layer_norm", "mean 0 and variance 1 over axes", normed(), normed_word<layer_norm>},
      {"rms_norm", "mean square 1 over axes", normed(), normed_word<rms_norm>},
      // reduce.h
      {"sum", "sum over axes, or over all", reduction(), reduced<sum, sum>},
      {"prod", "product over axes, or over all", reduction(), reduced<prod, prod>},
      {"mean", "mean over axes, or over all", reduction(), reduced<mean, mean>},
      {"max", "largest element over axes, or over all", reduction(), reduced<max, max>},
      {"min", "smallest element over axes, or over all", reduction(), reduced<min, min>},
      // rope.h
      {"rope",
       "pairs of features turned by position times frequency",
       {tensor("x"), number("base").standard("10000").by_name(),
        integer("dims").standard("0").by_name(), flag("interleaved").standard("false").by_name(),
        tensor("positions").optional().by_name(), number("scale").standard("1").by_name(),
        tensor("frequencies").optional().by_name()},
       [](const A& a) -> Value {
         return rope(a.tensor("x"), {.base = a.number("base"),
                                     .dims = a.integer("dims"),
                                     .interleaved = a.flag("interleaved"),
                                     .positions = a.maybe_tensor("positions"),
                                     .scale = a.number("scale"),
                                     .frequencies = a.maybe_tensor("frequencies")});
       }},
      {"rope_ntk_base",
       "the base of rope that stretches the longest wave by a factor",
       {number("base"), number("factor"), integer("dims")},
       [](const A& a) -> Value {
         return rope_ntk_base(a.number("base"), a.number("factor"), a.integer("dims"));
       }},
      // scan.h
      {"scan",
       "s[t] = gate[t] s[t - 1] + x[t] along an axis",
       {tensor("x"), axis("axis"), tensor("gate").optional()},
       [](const A& a) -> Value {
         return scan(a.tensor("x"), a.axis("axis"), a.maybe_tensor("gate"));
       }},
      // shape.h
      {"permute",
       "axes in another order, by an equation or a list",
       {tensor("x"), order("order")},
       permute_word},
      {"split",
       "one axis as several",
       {tensor("x"), axis("axis"), labels("labels"), integers("sizes")},
       [](const A& a) -> Value {
         return split(a.tensor("x"), a.axis("axis"), a.labels("labels"), a.integers("sizes"));
       }},
      {"merge",
       "neighbouring axes as one",
       {tensor("x"), axes("axes"), name("label").optional()},
       [](const A& a) -> Value {
         return merge(a.tensor("x"), a.axes("axes"), a.has("label") ? a.text("label") : "");
       }},
      {"slice",
       "elements start, start + step, ... before stop of one axis",
       {tensor("x"), axis("axis"), integer("start").optional(), integer("stop").optional(),
        integer("step").standard("1")},
       [](const A& a) -> Value {
         return slice(a.tensor("x"), a.axis("axis"), a.maybe_integer("start"),
                      a.maybe_integer("stop"), a.integer("step"));
       }},
      {"repeat",
       "every element of an axis n times in a row",
       {tensor("x"), axis("axis"), integer("n")},
       [](const A& a) -> Value { return repeat(a.tensor("x"), a.axis("axis"), a.integer("n")); }},
      {"expand",
       "a new axis in front, stretched to a size",
       {tensor("x"), name("label"), size("size")},
       [](const A& a) -> Value {
         return expand(a.tensor("x"), a.text("label"), a.integer("size"));
       }},
      {"concat",
       "parts one after another along an axis",
       {tensors("parts"), axis("axis")},
       [](const A& a) -> Value { return concat(a.tensors("parts"), a.axis("axis")); }},
      {"named",
       "the same elements under the labels of a term",
       {tensor("x"), text("term")},
       [](const A& a) -> Value { return named(a.tensor("x"), a.text("term")); }},
      {"unnamed", "the same elements without labels", x(), one<unnamed>},
      // softmax.h
      {"softmax", "exp(s - m) / sum(exp(s - m)) over axes", normalisation(), normalised<softmax>},
      {"log_softmax", "the logarithm of softmax", normalisation(), normalised<log_softmax>},
      {"logsumexp", "log(sum(exp(s))) over axes, which disappear", normalisation(),
       normalised<logsumexp>},
      // take.h
      {"take",
       "elements at the positions that integers name along an axis",
       {tensor("x"), tensor("at"), axis("axis")},
       [](const A& a) -> Value { return take(a.tensor("x"), a.tensor("at"), a.axis("axis")); }},
      {"toeplitz",
       "one element for every difference k - q as a matrix, a view",
       {tensor("x"), axis("axis"), size("queries"), labels("labels").optional()},
       toeplitz_word},
  };
  return rows;
}

}  // namespace

std::optional<Causal> placement(const Arguments& a, const char* function, const char* name) {
  if (!a.has(name)) return {};
  const Value& value = a.value(name);
  if (const auto* flag = value.as<bool>())
    return *flag ? std::optional<Causal>(top_left) : std::nullopt;
  if (const auto* offset = value.as<std::int64_t>()) return Causal(*offset);
  const auto* text = value.as<std::string>();
  if (text != nullptr && *text == "top_left") return Causal(top_left);
  if (text != nullptr && *text == "bottom_right") return Causal(bottom_right);
  fail<ValueError>(std::string(function) + ": " + name + " is " + kind_text(value) +
                   "; choices: true, false, top_left, bottom_right, or an offset");
}

const WordTable& ops_words() {
  static const WordTable kTable = table();
  return kTable;
}

}  // namespace einkern
