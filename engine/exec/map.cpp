// SPDX-License-Identifier: Apache-2.0
// The step that evaluates an elementwise program.
#include "../base/error.h"
#include "elementwise.h"
#include "frame.h"

namespace einkern::exec {

void run(const plan::Map& step, const Frame& frame) {
  EINKERN_CHECK(step.program.dtype() == step.out.dtype);
  const kernel::TileFault fault =
      run_elementwise(step.program, step.inputs, step.out, frame.scalars, frame);
  if (fault != kernel::kNoFault) raise_fault(step.program, fault);
}

}  // namespace einkern::exec
