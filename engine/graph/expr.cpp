// SPDX-License-Identifier: Apache-2.0
// The user's handle: leaves, scalars, named terms and einsum.
#include "expr.h"

#include <fmt/format.h>

#include "../base/error.h"
#include "../spec/spec.h"
#include "build.h"
#include "einsum_node.h"
#include "node.h"

namespace einkern {
namespace {

using graph::Node;

graph::NodePtr constant(map::Scalar value) {
  graph::Type type;
  type.dtype = value.dtype;
  type.weak = true;
  return std::make_shared<const Node>(graph::Constant{value}, std::vector<graph::NodePtr>{}, type);
}

}  // namespace

Expr::Expr(const Tensor& tensor) : node_(std::make_shared<const Node>(tensor)) {}

Expr::Expr(double value) : node_(constant(map::Scalar::of(value))) {}

Expr::Expr(std::int64_t value, Integer) : node_(constant(map::Scalar::of(value))) {}

DType Expr::dtype() const { return node_->type.dtype; }
std::size_t Expr::rank() const { return shape().size(); }
const Labels& Expr::labels() const { return node_->type.labels; }

const Shape& Expr::shape() const {
  if (!node_->type.open.empty()) {
    const graph::OpenAxis& open = node_->type.open.front();
    fail<ShapeError>(
        open.label.empty()
            ? fmt::format("shape: index({}) has met no axis yet", open.position)
            : fmt::format("shape: index(\"{}\") has met no axis '{}' yet", open.label, open.label));
  }
  return node_->type.shape;
}

Expr Expr::operator[](std::string_view term) const {
  return graph::relabel("[]", *this, parse_term(term, "[]"), true);
}

Expr::operator Tensor() const { return eval(*this); }

BoolExpr::BoolExpr(const Expr& expr) : Expr(expr) {
  if (expr.dtype() != DType::boolean) {
    fail<TypeError>(fmt::format("BoolExpr: the expression is {}, not bool", name_of(expr.dtype())));
  }
}

BoolExpr::BoolExpr(const Tensor& tensor) : BoolExpr(Expr(tensor)) {}

Expr einsum(std::string_view equation, std::span<const Expr> operands,
            const EinsumOptions& options) {
  return graph::einsum_node("einsum", graph::named_equation(equation, operands), operands,
                            options.path);
}

Expr einsum(std::string_view equation, std::initializer_list<Expr> operands,
            const EinsumOptions& options) {
  return einsum(equation, std::span<const Expr>(operands.begin(), operands.size()), options);
}

Expr einsum(const std::vector<std::vector<std::int64_t>>& inputs,
            const std::optional<std::vector<std::int64_t>>& output,
            const std::vector<Expr>& operands, const EinsumOptions& options) {
  std::vector<Shape> shapes;
  for (const Expr& operand : operands) shapes.push_back(operand.shape());
  const Spec spec = make_spec(inputs, output, shapes);
  return graph::einsum_node("einsum", {spec.inputs, spec.output, spec.names, {}, {}}, operands,
                            options.path);
}

}  // namespace einkern
