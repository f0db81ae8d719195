// SPDX-License-Identifier: Apache-2.0
// Einsum as a node: labels per axis of each operand, and the Spec it becomes once sizes are known.
#pragma once

#include <memory>
#include <span>

#include "../spec/spec.h"
#include "expr.h"
#include "named_equation.h"
#include "node.h"

namespace einkern::graph {

/// The node of a resolved equation over these operands. ShapeError (sizes), TypeError (bool).
Expr einsum_node(const char* function, std::shared_ptr<const NamedEquation> named,
                 std::span<const Expr> operands, const PathChoice& path);
/// The same of an equation that comes from no text.
Expr einsum_node(const char* function, ResolvedEquation equation, std::span<const Expr> operands,
                 const PathChoice& path);

/// The contraction of an einsum node over operands of these (known) shapes.
Spec to_spec(const Einsum& node, const std::vector<Shape>& shapes);

}  // namespace einkern::graph
