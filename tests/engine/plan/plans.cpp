// SPDX-License-Identifier: Apache-2.0
// What the tests of plans share: a target, plans of equations, rules that every plan obeys.
#include "plans.h"

#include "../../../engine/plan/operands.h"

namespace einkern::test {
namespace {

using plan::Contract;
using plan::Loop;
using plan::Loops;

bool nested(const Loops& loops) {
  for (std::size_t i = 1; i < loops.size(); ++i) {
    const Loop &outer = loops[i - 1], &inner = loops[i];
    if (outer.a == inner.a * inner.size && outer.b == inner.b * inner.size &&
        outer.c == inner.c * inner.size) {
      return true;
    }
  }
  return false;
}

std::string broken_rule(const Contract& s) {
  for (const Loops* loops : {&s.batch, &s.m, &s.n, &s.k}) {
    if (nested(*loops)) return "neighbours that nest are not fused";
    for (const Loop& loop : *loops) {
      if (loop.size == 1) return "a loop of size 1";
    }
  }
  for (const Loop& loop : s.m) {
    if (loop.b != 0) return "b moves along m";
    if (loop.c == 1) return "the unit stride of c lies in m";
  }
  for (const Loop& loop : s.n) {
    if (loop.a != 0) return "a moves along n";
    if (loop.c == 1 && &loop != &s.n.back()) return "the unit stride of c is not the last of n";
  }
  for (const Loop& loop : s.k) {
    if (loop.c != 0) return "c moves along k";
  }
  if (s.k.empty() != (s.regime == plan::Regime::outer)) return "outer with contracted loops";
  if (!s.k.empty() && (s.m.empty() && s.n.empty()) != (s.regime == plan::Regime::dot)) {
    return "not a dot";
  }
  return {};
}

std::string broken_rule(const plan::Reduce& s) {
  if (nested(s.kept) || nested(s.reduced)) return "neighbours that nest are not fused";
  for (const Loop& loop : s.reduced) {
    if (loop.c != 0) return "out moves along a reduced loop";
  }
  return {};
}

template <class Other>
std::string broken_rule(const Other&) {
  return {};
}

}  // namespace

plan::Plan plan_of(const Spec& spec, DType dtype, const PathChoice& path) {
  plan::Builder builder(kTarget);
  std::vector<plan::Operand> operands;
  for (const Shape& shape : spec.shapes) {
    operands.push_back(builder.add_input(dtype, contiguous(shape)));
  }
  const plan::Operand out = builder.add_output(dtype, contiguous(spec.output_shape()));
  plan::add_einsum(builder, spec, operands, out, path);
  return builder.finish();
}

plan::Plan plan_of(std::string_view equation, const std::vector<Shape>& shapes, DType dtype,
                   const PathChoice& path) {
  return plan_of(make_spec(equation, shapes), dtype, path);
}

std::string broken_rule(const plan::Plan& plan) {
  for (const plan::Step& step : plan.steps) {
    std::string rule = std::visit([](const auto& s) { return broken_rule(s); }, step);
    if (!rule.empty()) return rule;
  }
  return {};
}

}  // namespace einkern::test
