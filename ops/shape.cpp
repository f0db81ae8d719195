// SPDX-License-Identifier: Apache-2.0
// Words that rearrange axes, as view nodes.
#include "shape.h"

#include <fmt/format.h>

#include <algorithm>

#include "../engine/base/error.h"
#include "../engine/graph/build.h"
#include "../engine/spec/spec.h"

namespace einkern {
namespace {

std::size_t one_axis(const char* function, const Expr& x, const Axis& axis) {
  return graph::resolve_axes(function, x, {axis})[0];
}

/// Where every axis of the result comes from; nothing when the right-hand term is no permutation.
std::vector<std::size_t> order_of(const std::vector<LabelId>& from,
                                  const std::vector<LabelId>& to) {
  std::vector<std::size_t> order;
  for (const LabelId label : to) {
    const auto found = std::find(from.begin(), from.end(), label);
    if (found == from.end() || std::count(to.begin(), to.end(), label) != 1 ||
        std::count(from.begin(), from.end(), label) != 1) {
      return {};
    }
    order.push_back(static_cast<std::size_t>(found - from.begin()));
  }
  return order;
}

}  // namespace

Expr permute_as(const Expr& x, std::string_view text) {
  const Equation equation = parse_equation(text, "permute");
  if (equation.inputs.size() != 1 || !equation.output) {
    fail<SyntaxError>(
        with_carets("permute: one term, an arrow and the same labels in their new order "
                    "are needed",
                    text, {{0, std::max<std::size_t>(1, text.size())}}));
  }
  const ResolvedEquation resolved = resolve(equation, {x.shape().size()}, "permute");
  const std::vector<LabelId>& from = resolved.inputs[0];
  const std::vector<std::size_t> order = order_of(from, resolved.output);
  if (order.size() != from.size()) {
    fail<SyntaxError>(with_carets("permute: both terms must hold the same labels, each once", text,
                                  {equation.inputs[0].span, equation.output->span}));
  }
  std::vector<std::string> labels;
  for (const std::size_t axis : order) {
    const std::string& name = resolved.names[static_cast<std::size_t>(from[axis])];
    labels.push_back(name.empty() ? x.labels()[axis] : name);
  }
  return graph::relabel("permute", graph::permute("permute", x, order), labels, false);
}

Expr permute(const Expr& x, const Axes& order) {
  const std::vector<std::size_t> axes = graph::resolve_axes("permute", x, order);
  if (axes.size() != x.rank()) {
    fail<ShapeError>(
        fmt::format("permute: {} axes are given for shape {}", axes.size(), to_string(x.shape())));
  }
  return graph::permute("permute", x, axes);
}

Expr split(const Expr& x, const Axis& axis, const std::vector<std::string>& labels,
           const std::vector<std::int64_t>& sizes) {
  return graph::split("split", x, one_axis("split", x, axis), labels, sizes);
}

Expr merge(const Expr& x, const Axes& axes, std::string_view label) {
  const std::vector<std::size_t> order = graph::resolve_axes("merge", x, axes);
  if (order.empty()) fail<ShapeError>("merge: no axis is given");
  for (std::size_t i = 1; i < order.size(); ++i) {
    if (order[i] != order[i - 1] + 1) {
      fail<ShapeError>(fmt::format("merge: axes {} and {} are not neighbours in this order",
                                   order[i - 1], order[i]));
    }
  }
  return graph::merge("merge", x, order[0], order.size(), std::string(label));
}

Expr slice(const Expr& x, const Axis& axis, std::optional<std::int64_t> start,
           std::optional<std::int64_t> stop, std::int64_t step) {
  return graph::slice("slice", x, one_axis("slice", x, axis), start, stop, step);
}

Expr repeat(const Expr& x, const Axis& axis, std::int64_t n) {
  if (n < 0) fail<ValueError>(fmt::format("repeat: {} times is less than none", n));
  const std::size_t at = one_axis("repeat", x, axis);
  return graph::merge("repeat", graph::expand("repeat", x, at + 1, "", n), at, 2, x.labels()[at]);
}

Expr expand(const Expr& x, std::string_view label, std::int64_t size) {
  return graph::expand("expand", x, 0, std::string(label), size);
}

Expr concat(const std::vector<Expr>& parts, const Axis& axis) {
  if (parts.empty()) fail<ValueError>("concat: there are no parts");
  return graph::concat("concat", parts, one_axis("concat", parts[0], axis));
}

Expr named(const Expr& x, std::string_view term) {
  return graph::relabel("named", x, parse_term(term, "named"), true);
}

Expr unnamed(const Expr& x) {
  return graph::relabel("unnamed", x, std::vector<std::string>(x.rank()), false);
}

}  // namespace einkern
