// SPDX-License-Identifier: Apache-2.0
// Integer labels to a Spec, by way of an equation whose names are the integers in decimal.
#include <map>
#include <string>

#include "diagnose.h"
#include "spec.h"

namespace einkern {
namespace {

using IntegerTerm = std::vector<std::int64_t>;

// Writes the term in brackets at the end of the text: `[0 -7 ...]`.
Term write_term(const IntegerTerm& labels, std::string& text) {
  Term term;
  term.span.begin = text.size();
  text += '[';
  for (std::size_t i = 0; i < labels.size(); ++i) {
    if (i > 0) text += ' ';
    const std::string label = labels[i] == kEllipsis ? "" : std::to_string(labels[i]);
    const std::string_view shown = label.empty() ? "..." : std::string_view(label);
    term.items.push_back({label, {text.size(), shown.size()}});
    text += shown;
  }
  text += ']';
  term.span.size = text.size() - term.span.begin;
  return term;
}

using Occurrences = std::map<std::int64_t, std::size_t>;

Occurrences count(const std::vector<IntegerTerm>& inputs) {
  Occurrences occurrences;
  for (const IntegerTerm& term : inputs) {
    for (const std::int64_t label : term) ++occurrences[label];
  }
  return occurrences;
}

// The ellipsis, then labels that occur once, in increasing order.
IntegerTerm implicit_output(const Occurrences& occurrences) {
  IntegerTerm output;
  for (const auto& [label, count] : occurrences) {  // kEllipsis is the lowest of all
    if (label == kEllipsis || count == 1) output.push_back(label);
  }
  return output;
}

}  // namespace

Spec make_spec(const std::vector<std::vector<std::int64_t>>& inputs,
               const std::optional<std::vector<std::int64_t>>& output,
               const std::vector<Shape>& shapes, const char* function) {
  if (inputs.empty()) fail<ShapeError>(std::string(function) + ": there are no operands");
  Equation equation;
  for (std::size_t p = 0; p < inputs.size(); ++p) {
    if (p > 0) equation.text += ',';
    equation.inputs.push_back(write_term(inputs[p], equation.text));
  }
  const Occurrences occurrences = count(inputs);
  if (output) {
    equation.text += "->";
    equation.output = write_term(*output, equation.text);
    for (std::size_t i = 0; i < output->size(); ++i) {
      if ((*output)[i] == kEllipsis || occurrences.contains((*output)[i])) continue;
      fail_unknown_output(equation, equation.output->items[i], function, "");
    }
  } else {
    std::string unseen;  // messages show the equation without the output it implies
    equation.output = write_term(implicit_output(occurrences), unseen);
  }
  check_ellipses(equation, function);

  std::vector<std::size_t> ranks;
  ranks.reserve(shapes.size());
  for (const Shape& shape : shapes) ranks.push_back(shape.size());
  ResolvedEquation resolved = resolve(equation, ranks, function);
  resolved.integer_labels = true;
  return einkern::bind(resolved, shapes, function);
}

}  // namespace einkern
