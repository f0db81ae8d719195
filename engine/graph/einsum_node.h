// SPDX-License-Identifier: Apache-2.0
// Einsum as a node: labels per axis of each operand, and the Spec it becomes once sizes are known.
#pragma once

#include <memory>
#include <string_view>

#include "../spec/spec.h"
#include "expr.h"
#include "node.h"

namespace einkern::graph {

/// An equation resolved for operands of some ranks, and the labels of its result.
struct NamedEquation {
  ResolvedEquation equation;
  Labels labels;

  explicit NamedEquation(ResolvedEquation resolved);
};

/// The equation for these operands. Parsed when its text is met for the first time with operands of
/// these ranks, later found among the last 512: parsing takes longer than an 8 x 8 product.
std::shared_ptr<const NamedEquation> named_equation(std::string_view text,
                                                    const std::vector<Expr>& operands);

/// The node of a resolved equation over these operands. ShapeError (sizes), TypeError (bool).
Expr einsum_node(const char* function, const NamedEquation& named,
                 const std::vector<Expr>& operands, const PathChoice& path);

/// The contraction of an einsum node over operands of these (known) shapes.
Spec to_spec(const Einsum& node, const std::vector<Shape>& shapes);

}  // namespace einkern::graph
