// SPDX-License-Identifier: Apache-2.0
// The step that sets every element to one value.
#include "elementwise.h"
#include "frame.h"

namespace einkern::exec {

void run(const plan::Fill& step, const Frame& frame) {
  // The value goes through f64 and a conversion, so that every dtype is one program.
  map::Program program;
  const std::int32_t value = program.emit({.op = map::Op::scalar, .dtype = DType::f64});
  if (step.out.dtype != DType::f64) {
    program.emit({.op = map::Op::cast, .dtype = step.out.dtype, .a = value});
  }
  const map::Scalar scalar = map::Scalar::of(step.value);
  run_elementwise(program, {}, step.out, std::span(&scalar, 1), frame);
}

}  // namespace einkern::exec
