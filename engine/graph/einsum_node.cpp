// SPDX-License-Identifier: Apache-2.0
// Einsum nodes: built from a resolved equation, turned into a Spec for the planner.
#include "einsum_node.h"

#include <fmt/format.h>

#include <algorithm>

#include "../base/error.h"
#include "build.h"
#include "extent.h"
#include "promote.h"

namespace einkern::graph {
namespace {

using Shapes = SmallVector<const Shape*, 8>;

/// Sizes by label when some are symbols: bind cannot check those, the call does.
Dims symbolic_sizes(const ResolvedEquation& equation, const Shapes& shapes) {
  Dims sizes(equation.names.size(), 1);
  for (std::size_t p = 0; p < shapes.size(); ++p) {
    for (std::size_t i = 0; i < shapes[p]->size(); ++i) {
      const auto label = static_cast<std::size_t>(equation.inputs[p][i]);
      const std::int64_t size = (*shapes[p])[i];
      if (!unify_extents(sizes[label], size, &sizes[label])) {
        fail<ShapeError>(fmt::format("einsum: label '{}' is {} and {}", equation.names[label],
                                     extent_text(sizes[label]), extent_text(size)));
      }
    }
  }
  return sizes;
}

}  // namespace

Expr einsum_node(const char* function, std::shared_ptr<const NamedEquation> named,
                 std::span<const Expr> operands, const PathChoice& path) {
  const ResolvedEquation& equation = named->equation;
  Shapes shapes;
  std::vector<NodePtr> inputs;
  inputs.reserve(operands.size());
  ElementType element{DType::i64, true};
  bool symbolic = false;
  for (std::size_t p = 0; p < operands.size(); ++p) {
    const NodePtr& node = operands[p].node();
    const Shape& shape = operands[p].shape();  // refuses open axes
    if (node->type.dtype == DType::boolean) {
      fail<TypeError>(
          fmt::format("{}: operand {} is bool; convert it with astype first", function, p));
    }
    symbolic |= std::any_of(shape.begin(), shape.end(), is_dyn);
    shapes.push_back(&shape);
    element = combine(element, {compute_dtype(node->type.dtype), node->type.weak});
    inputs.push_back(node);
  }
  const Dims sizes =
      symbolic ? symbolic_sizes(equation, shapes) : bind_sizes(equation, shapes, function);

  Type type;
  type.dtype = element.dtype;
  type.labels = named->labels;
  for (const LabelId label : equation.output) {
    type.shape.push_back(sizes[static_cast<std::size_t>(label)]);
  }
  if (!symbolic) element_count(type.shape, function);
  return Expr(std::make_shared<const Node>(Einsum{std::move(named), path}, std::move(inputs),
                                           std::move(type)));
}

Expr einsum_node(const char* function, ResolvedEquation equation, std::span<const Expr> operands,
                 const PathChoice& path) {
  return einsum_node(function, std::make_shared<const NamedEquation>(std::move(equation)), operands,
                     path);
}

Spec to_spec(const Einsum& node, const std::vector<Shape>& shapes) {
  Spec spec{node.inputs(), node.output(), std::vector<std::int64_t>(node.names().size(), 1),
            node.names(), shapes};
  for (std::size_t p = 0; p < shapes.size(); ++p) {
    for (std::size_t i = 0; i < shapes[p].size(); ++i) {
      if (shapes[p][i] == 1) continue;
      spec.sizes[static_cast<std::size_t>(node.inputs()[p][i])] = shapes[p][i];
    }
  }
  return spec;
}

}  // namespace einkern::graph
