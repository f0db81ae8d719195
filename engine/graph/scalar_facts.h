// SPDX-License-Identifier: Apache-2.0
// What rules may know of a scalar. Plans are kept for all scalars of the same facts, so a rule must
// not look at the value itself.
#pragma once

#include <cmath>
#include <cstdint>

#include "node.h"

namespace einkern::graph {

enum class ScalarFact : std::uint8_t {
  other,
  minus_infinity,
  zero,  // or -0
  tiny,  // above 0, below 1/1024: keeps from dividing by 0
  one,
};

inline ScalarFact fact_of(const map::Scalar& value) {
  if (value.dtype == DType::boolean) return ScalarFact::other;
  const double x = value.real;
  if (x == 0) return ScalarFact::zero;
  if (x == 1) return ScalarFact::one;
  if (x > 0 && x < 0x1p-10) return ScalarFact::tiny;
  return x == -HUGE_VAL ? ScalarFact::minus_infinity : ScalarFact::other;
}

inline bool is_scalar(const NodePtr& node) { return std::holds_alternative<Constant>(node->op); }

inline bool has_fact(const NodePtr& node, ScalarFact fact) {
  const auto* constant = std::get_if<Constant>(&node->op);
  return constant != nullptr && fact_of(constant->value) == fact;
}

}  // namespace einkern::graph
