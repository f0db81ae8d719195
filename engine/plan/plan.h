// SPDX-License-Identifier: Apache-2.0
// A plan: values, and the steps that make them, in order. Pure data; prints itself with `explain`.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "step.h"

namespace einkern::plan {

/// A tensor that a plan reads, makes or hands out.
struct Value {
  enum class Role : std::uint8_t { input, temporary, output };
  Role role = Role::temporary;
  DType dtype = DType::f32;
  Layout layout;               // of inputs and outputs: the strides they are bound with
  std::int32_t position = -1;  // among the inputs or outputs
  std::string note;            // what explain calls it, such as "operand 0" or "ab"
};

/// What the planner expects of one step.
struct Estimate {
  double flops = 0, bytes_read = 0, bytes_written = 0, seconds = 0;
};

struct Plan {
  std::vector<Value> values;
  std::vector<Step> steps;
  std::vector<Estimate> estimates;         // one per step
  std::vector<std::string> notes;          // one per step: the term it stands for, may be empty
  std::vector<std::vector<ValueId>> dead;  // temporaries to free after each step
  std::vector<ValueId> inputs, outputs;    // by position
  std::int32_t scalars = 0;                // of the caller, in front of the scalar table
  std::vector<map::Scalar> constants;      // the plan's own, behind them
  std::string path;                        // contraction path in linear form, for explain
  std::vector<std::string> unfused;        // what might have been one streamed pass, and why not

  /// Largest sum of live temporaries, in bytes.
  std::int64_t workspace_bytes() const;
};

}  // namespace einkern::plan
