// SPDX-License-Identifier: Apache-2.0
// What the tests of plans share: a target, plans of equations, rules that every plan obeys.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "../../../engine/plan/einsum.h"

namespace einkern::test {

/// A target with round numbers, so that printed estimates can be checked by hand.
inline constexpr Target kTarget = {.name = "test",
                                   .peak_f32 = 100e9,
                                   .peak_f64 = 50e9,
                                   .read_bandwidth = 10e9,
                                   .write_bandwidth = 20e9,
                                   .call_overhead = 1e-7};

/// The plan of a spec for contiguous operands of one dtype and a contiguous output.
plan::Plan plan_of(const Spec& spec, DType dtype = f32, const PathChoice& path = {});
plan::Plan plan_of(std::string_view equation, const std::vector<Shape>& shapes, DType dtype = f32,
                   const PathChoice& path = {});

/// The only step of a plan, which must be of this kind.
template <class S>
const S& only(const plan::Plan& plan) {
  if (plan.steps.size() != 1) throw std::logic_error("not one step");
  return std::get<S>(plan.steps.front());
}

/// The first rule of step.h that a plan breaks, in words; empty when it obeys all.
std::string broken_rule(const plan::Plan& plan);

}  // namespace einkern::test
