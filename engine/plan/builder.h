// SPDX-License-Identifier: Apache-2.0
// Assembles a plan step by step: values in, values out, and who is dead after which step.
#pragma once

#include <span>
#include <string>

#include "../base/machine.h"
#include "plan.h"

namespace einkern::plan {

/// Collects values and steps; `finish` works out estimates and lifetimes.
class Builder {
 public:
  explicit Builder(const Target& target) : target_(target) {}

  const Target& target() const noexcept { return target_; }
  /// The next input, bound with this dtype and layout (offset 0).
  Operand add_input(DType dtype, const Layout& layout, std::string note = {});
  /// The next output, bound with this layout.
  Operand add_output(DType dtype, const Layout& layout, std::string note = {});
  /// A contiguous temporary of this shape.
  Operand add_temporary(DType dtype, const Shape& shape, std::string note = {});
  void add(Step step, std::string note = {});
  void set_scalars(std::int32_t count) { plan_.scalars = count; }
  /// Slot of a number that the plan itself needs, behind the caller's scalars.
  std::int32_t add_constant(const map::Scalar& value);
  void append_path(const std::string& path);

  /// Makes every elementwise step that only finishes the sums of a contraction a part of it.
  void join_epilogues();

  /// Estimates every step, lists dead temporaries, and checks that each value is written before it
  /// is read (std::logic_error). The builder is empty afterwards.
  Plan finish();

 private:
  Target target_;
  Plan plan_;
};

/// Cost model: what a step should take on one thread of `target`.
Estimate estimate(const Step& step, const Target& target);

/// The plan as text for people: a line per step with kind, M x N x K x batch, flops, bytes,
/// predicted time and regime, then how streamed steps are cut, what of them is visible where the
/// caller's scalars are given, and why they are streamed, then copies and workspace.
std::string explain(const Plan& plan, const Target& target,
                    std::span<const map::Scalar> scalars = {});
/// The same as JSON.
std::string explain_json(const Plan& plan, const Target& target,
                         std::span<const map::Scalar> scalars = {});

}  // namespace einkern::plan
