// SPDX-License-Identifier: Apache-2.0
// Short names for nodes in graph tests: the words of `ops` belong to a higher room.
#pragma once

#include <cmath>
#include <vector>

#include "../../../engine/graph/build.h"
#include "../../../engine/tensor/create.h"

namespace einkern::test {

inline Expr add(const Expr& a, const Expr& b) {
  return graph::elementwise("add", map::Op::add, {a, b});
}
inline Expr sub(const Expr& a, const Expr& b) {
  return graph::elementwise("sub", map::Op::sub, {a, b});
}
inline Expr mul(const Expr& a, const Expr& b) {
  return graph::elementwise("mul", map::Op::mul, {a, b});
}
inline Expr div(const Expr& a, const Expr& b) {
  return graph::elementwise("div", map::Op::div, {a, b});
}
inline Expr exp(const Expr& a) { return graph::elementwise("exp", map::Op::exp, {a}); }
inline Expr less_equal(const Expr& a, const Expr& b) {
  return graph::elementwise("less_equal", map::Op::less_equal, {a, b});
}
inline Expr select(const Expr& c, const Expr& x, const Expr& y) {
  return graph::elementwise("where", map::Op::select, {c, x, y});
}
inline Expr named(const Expr& x, const char* term) { return x[term]; }
inline Expr label(const Expr& x, const std::vector<std::string>& labels) {
  return graph::relabel("named", x, labels, false);
}
inline Expr index(const Axis& axis) { return graph::open_index(axis); }
inline Expr softmax(const Expr& s, std::size_t axis) {
  return graph::softmax("softmax", plan::SoftmaxKind::softmax, s, {axis});
}

/// 0, 1, 2, ... in C order.
inline Tensor counted(const Shape& shape, DType dtype = f64) {
  const Tensor flat = arange(element_count(shape), f64);
  return from_values(
             std::span<const double>(flat.data<double>(), static_cast<std::size_t>(flat.size())),
             shape)
      .astype(dtype);
}

}  // namespace einkern::test
