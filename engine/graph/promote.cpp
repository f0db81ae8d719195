// SPDX-License-Identifier: Apache-2.0
// Promotion rules of elementwise operations.
#include "promote.h"

#include <fmt/format.h>

#include "../base/error.h"

namespace einkern::graph {
namespace {

using map::Op;

bool is_comparison(Op op) { return op >= Op::less && op <= Op::not_equal; }
bool is_logical(Op op) {
  return op == Op::logical_and || op == Op::logical_or || op == Op::logical_not;
}
bool is_float_function(Op op) { return op >= Op::exp && op <= Op::erf; }

void require_bool(const char* function, DType dtype, std::size_t operand) {
  if (dtype == DType::boolean) return;
  fail<TypeError>(fmt::format("{}: operand {} is {}, not bool", function, operand, name_of(dtype)));
}

}  // namespace

DType float_dtype(DType dtype) { return is_float(dtype) ? compute_dtype(dtype) : DType::f64; }

ElementType combine(const ElementType& a, const ElementType& b) {
  if (a.weak == b.weak) return {promote(a.dtype, b.dtype), a.weak};
  const DType strong = a.weak ? b.dtype : a.dtype;
  const DType weak = a.weak ? a.dtype : b.dtype;
  if (is_float(strong)) return {compute_dtype(strong), false};
  return {is_float(weak) ? DType::f64 : DType::i64, false};
}

ElementType result_type(const char* function, Op op, const std::vector<ElementType>& operands) {
  const auto number = [](ElementType type) {
    type.dtype = compute_dtype(type.dtype);
    return type;
  };
  const auto floating = [](ElementType type) {
    type.dtype = float_dtype(type.dtype);
    return type;
  };
  if (is_comparison(op)) {
    const bool ordered = op == Op::less || op == Op::less_equal;
    for (std::size_t i = 0; ordered && i < operands.size(); ++i) {
      if (operands[i].dtype == DType::boolean) {
        fail<TypeError>(fmt::format("{}: operand {} is bool, which has no order", function, i));
      }
    }
    return {DType::boolean, false};
  }
  if (is_logical(op)) {
    for (std::size_t i = 0; i < operands.size(); ++i) require_bool(function, operands[i].dtype, i);
    return {DType::boolean, false};
  }
  if (op == Op::select) {
    require_bool(function, operands[0].dtype, 0);
    return combine(operands[1], operands[2]);
  }
  if (is_float_function(op)) return floating(operands[0]);
  if (map::arity(op) == 1) return number(operands[0]);
  const ElementType common = combine(operands[0], operands[1]);
  return op == Op::div ? floating(common) : number(common);
}

DType operand_dtype(Op op, DType result, const std::vector<ElementType>& operands, std::size_t i) {
  if (op == Op::cast) return operands[i].dtype;
  if (is_logical(op)) return DType::boolean;
  if (is_comparison(op)) return combine(operands[0], operands[1]).dtype;
  if (op == Op::select && i == 0) return DType::boolean;
  return result;
}

}  // namespace einkern::graph
