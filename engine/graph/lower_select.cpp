// SPDX-License-Identifier: Apache-2.0
// Cuts a selecting einsum into values, a selecting contraction, and the rest.
#include "lower_select.h"

#include <algorithm>

#include "../plan/term.h"

namespace einkern::graph {
namespace {

using plan::contains;
using plan::LabelList;

/// Labels and layout without the axes of size 1, which broadcast or do nothing.
struct Squeezed {
  plan::Operand operand;
  LabelList labels;
};
Squeezed squeeze(const plan::Operand& operand, const LabelList& labels) {
  Squeezed result{{operand.value, operand.dtype, {{}, {}, operand.layout.offset}}, {}};
  for (std::size_t d = 0; d < labels.size(); ++d) {
    if (operand.layout.shape[d] == 1) continue;
    result.operand.layout.shape.push_back(operand.layout.shape[d]);
    result.operand.layout.strides.push_back(operand.layout.strides[d]);
    result.labels.push_back(labels[d]);
  }
  return result;
}

Shape shape_of(const LabelList& term, const Spec& spec) {
  Shape shape;
  for (const LabelId label : term) shape.push_back(spec.sizes[static_cast<std::size_t>(label)]);
  return shape;
}

/// A contraction of some of the operands under the labels of the whole.
Spec part_of(const Spec& spec, std::vector<LabelList> inputs, LabelList output,
             std::vector<Shape> shapes) {
  return {std::move(inputs), std::move(output), spec.sizes, spec.names, std::move(shapes)};
}

}  // namespace

void lower_select(plan::Builder& builder, const Spec& spec, std::size_t weights,
                  const std::vector<plan::Operand>& operands, const plan::Operand& visible,
                  const plan::Operand& out, const PathChoice& path) {
  const LabelList& weight_labels = spec.inputs[weights];
  std::vector<std::size_t> values, rest;  // who shares a contracted label with the weights
  for (std::size_t p = 0; p < operands.size(); ++p) {
    if (p == weights) continue;
    const bool shares =
        std::any_of(spec.inputs[p].begin(), spec.inputs[p].end(), [&](LabelId label) {
          return contains(weight_labels, label) && !contains(spec.output, label) &&
                 spec.sizes[static_cast<std::size_t>(label)] != 1;
        });
    (shares ? values : rest).push_back(p);
  }
  const bool empty = std::any_of(spec.sizes.begin(), spec.sizes.end(),
                                 [](std::int64_t size) { return size == 0; });
  // Nothing is summed over hidden keys, or a diagonal of the weights is: the plain contraction.
  if (values.empty() || empty || plan::repeats(weight_labels)) {
    plan::add_einsum(builder, spec, operands, out, path);
    return;
  }

  const auto needed_later = [&](LabelId label) {
    return contains(spec.output, label) ||
           std::any_of(rest.begin(), rest.end(),
                       [&](std::size_t p) { return contains(spec.inputs[p], label); });
  };
  // Values: one tensor without repeated labels or labels that only they have.
  LabelList value_labels;
  for (const std::size_t p : values) {
    for (const LabelId label : spec.inputs[p]) {
      if (!contains(value_labels, label) &&
          (needed_later(label) || contains(weight_labels, label))) {
        value_labels.push_back(label);
      }
    }
  }
  plan::Operand value = operands[values.front()];
  if (values.size() > 1 || value_labels != spec.inputs[values.front()]) {
    std::vector<LabelList> inputs;
    std::vector<Shape> shapes;
    std::vector<plan::Operand> parts;
    for (const std::size_t p : values) {
      inputs.push_back(spec.inputs[p]);
      shapes.push_back(spec.shapes[p]);
      parts.push_back(operands[p]);
    }
    // Sizes of the values alone: a label on which they all have size 1 stays 1.
    Spec part = part_of(spec, std::move(inputs), value_labels, std::move(shapes));
    std::fill(part.sizes.begin(), part.sizes.end(), 1);
    for (std::size_t i = 0; i < part.inputs.size(); ++i) {
      for (std::size_t d = 0; d < part.inputs[i].size(); ++d) {
        if (part.shapes[i][d] != 1) {
          part.sizes[static_cast<std::size_t>(part.inputs[i][d])] = part.shapes[i][d];
        }
      }
    }
    value = builder.add_temporary(out.dtype, shape_of(value_labels, part));
    plan::add_einsum(builder, part, parts, value);
  }

  // The selecting contraction keeps every free label of the weights.
  const Squeezed w = squeeze(operands[weights], weight_labels);
  const Squeezed v = squeeze(value, value_labels);
  const Squeezed seen = squeeze(visible, weight_labels);
  LabelList product;
  for (const LabelId label : w.labels) {
    if (!contains(v.labels, label) || needed_later(label)) product.push_back(label);
  }
  for (const LabelId label : v.labels) {
    if (!contains(w.labels, label)) product.push_back(label);
  }
  const Squeezed target = squeeze(out, spec.output);
  LabelList sorted_product = product, sorted_target = target.labels;
  std::sort(sorted_product.begin(), sorted_product.end());
  std::sort(sorted_target.begin(), sorted_target.end());
  const bool direct =
      rest.empty() && sorted_product == sorted_target;  // repeated labels never match
  plan::Operand result = target.operand;
  LabelList result_labels = target.labels;
  if (!direct) {
    result = builder.add_temporary(out.dtype, shape_of(product, spec));
    result_labels = product;
  }
  builder.add(plan::make_select_contract(w.operand, w.labels, v.operand, v.labels, result,
                                         result_labels, seen.operand, seen.labels,
                                         builder.target()));
  if (direct) return;
  std::vector<LabelList> inputs{product};
  std::vector<Shape> shapes{shape_of(product, spec)};
  std::vector<plan::Operand> parts{result};
  for (const std::size_t p : rest) {
    inputs.push_back(spec.inputs[p]);
    shapes.push_back(spec.shapes[p]);
    parts.push_back(operands[p]);
  }
  plan::add_einsum(builder, part_of(spec, std::move(inputs), spec.output, std::move(shapes)), parts,
                   out);
}

}  // namespace einkern::graph
