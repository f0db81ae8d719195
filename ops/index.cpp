// SPDX-License-Identifier: Apache-2.0
// Positions, comparisons, logic and selection as elementwise nodes.
#include "index.h"

#include <fmt/format.h>

#include <algorithm>

#include "../engine/base/error.h"
#include "../engine/graph/build.h"

namespace einkern {
namespace {

using map::Op;

BoolExpr compare(const char* function, Op op, const Expr& a, const Expr& b) {
  return BoolExpr(graph::elementwise(function, op, {a, b}));
}

void check_ordered(const char* function, const Expr& a, const Expr& b) {
  if (a.dtype() != boolean && b.dtype() != boolean) return;
  fail<TypeError>(fmt::format("{}: operand {} is bool, which has no order", function,
                              a.dtype() == boolean ? 0 : 1));
}

/// Two named terms whose union must list the labels of `a` first.
bool order_matters(const Expr& a, const Expr& b) {
  if (a.labels().empty() || b.labels().empty()) return false;
  const std::size_t rank = std::max(a.rank(), b.rank());
  return a.labels().to_vector(rank) != b.labels().to_vector(rank);
}

}  // namespace

Expr index(const Axis& axis) { return graph::open_index(axis); }

BoolExpr operator<(const Expr& a, const Expr& b) { return compare("less", Op::less, a, b); }
BoolExpr operator<=(const Expr& a, const Expr& b) {
  return compare("less_equal", Op::less_equal, a, b);
}
// There is no `greater`: operands change places, except where that would change the order of the
// result's axes.
BoolExpr operator>(const Expr& a, const Expr& b) {
  check_ordered("greater", a, b);
  if (order_matters(a, b)) {
    return compare("greater", Op::not_equal, a, b) && compare("greater", Op::less_equal, b, a);
  }
  return compare("greater", Op::less, b, a);
}
BoolExpr operator>=(const Expr& a, const Expr& b) {
  check_ordered("greater_equal", a, b);
  if (order_matters(a, b)) {
    return compare("greater_equal", Op::equal, a, b) || compare("greater_equal", Op::less, b, a);
  }
  return compare("greater_equal", Op::less_equal, b, a);
}
BoolExpr operator==(const Expr& a, const Expr& b) { return compare("equal", Op::equal, a, b); }
BoolExpr operator!=(const Expr& a, const Expr& b) {
  return compare("not_equal", Op::not_equal, a, b);
}

BoolExpr operator&&(const BoolExpr& a, const BoolExpr& b) {
  return BoolExpr(graph::elementwise("logical_and", Op::logical_and, {a, b}));
}
BoolExpr operator||(const BoolExpr& a, const BoolExpr& b) {
  return BoolExpr(graph::elementwise("logical_or", Op::logical_or, {a, b}));
}
BoolExpr operator!(const BoolExpr& a) {
  return BoolExpr(graph::elementwise("logical_not", Op::logical_not, {a}));
}

Expr where(const Expr& condition, const Expr& x, const Expr& y) {
  if (condition.dtype() != boolean) {
    fail<TypeError>(
        fmt::format("where: the condition is {}, not bool", name_of(condition.dtype())));
  }
  return graph::elementwise("where", Op::select, {condition, x, y});
}

}  // namespace einkern
