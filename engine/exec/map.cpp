// SPDX-License-Identifier: Apache-2.0
// The step that evaluates an elementwise program, and what its faults are called.
#include <fmt/format.h>

#include "../base/error.h"
#include "elementwise.h"
#include "frame.h"

namespace einkern::exec {
namespace {

[[noreturn]] void raise(const map::Program& program, kernel::TileFault fault) {
  const map::Instruction& code = program.code[kernel::instruction_of(fault)];
  const std::string_view op = map::name_of(code.op);
  switch (kernel::reason_of(fault)) {
    case kernel::MapFault::none:
      break;
    case kernel::MapFault::overflow:
      fail<ValueError>(fmt::format("{}: integer overflow", op));
    case kernel::MapFault::division_by_zero:
      fail<ValueError>(fmt::format("{}: division by zero", op));
    case kernel::MapFault::negative_power:
      fail<ValueError>(fmt::format("{}: negative integer power", op));
    case kernel::MapFault::out_of_range:
      fail<ValueError>(fmt::format("astype: a value does not fit {}", name_of(code.dtype)));
  }
  fail_check("a fault has a reason", __FILE__, __LINE__);
}

}  // namespace

void run(const plan::Map& step, const Frame& frame) {
  EINKERN_CHECK(step.program.dtype() == step.out.dtype);
  const kernel::TileFault fault =
      run_elementwise(step.program, step.inputs, step.out, frame.scalars, frame);
  if (fault != kernel::kNoFault) raise(step.program, fault);
}

}  // namespace einkern::exec
