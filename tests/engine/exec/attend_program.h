// SPDX-License-Identifier: Apache-2.0
// Score programs written by hand, and their value at one element in double.
#pragma once

#include <cstdint>
#include <limits>
#include <vector>

#include "../../../engine/map/program.h"

namespace einkern::test {

using map::Op;
using map::Program;

/// Value of a program at one element, everything in double (booleans 0 and 1).
double evaluate(const Program& program, const std::vector<double>& loads,
                const std::vector<map::Scalar>& scalars, const std::vector<std::int64_t>& index);

/// Writes programs: every function appends one instruction and returns its register.
struct Writer {
  Program program;
  std::vector<map::Scalar>& scalars;
  DType real;

  std::int32_t emit(Op op, DType dtype, std::int32_t a = -1, std::int32_t b = -1,
                    std::int32_t c = -1, std::int32_t arg = 0) {
    return program.emit({.op = op, .dtype = dtype, .a = a, .b = b, .c = c, .arg = arg});
  }
  std::int32_t dot() { return emit(Op::load, real); }
  std::int32_t load(std::int32_t input, DType dtype) {
    return emit(Op::load, dtype, -1, -1, -1, input + 1);
  }
  std::int32_t number(double value) {
    scalars.push_back(map::Scalar::of(value));
    return emit(Op::scalar, real, -1, -1, -1, static_cast<std::int32_t>(scalars.size()) - 1);
  }
  std::int32_t integer(std::int64_t value) {
    scalars.push_back(map::Scalar::of(value));
    return emit(Op::scalar, DType::i64, -1, -1, -1, static_cast<std::int32_t>(scalars.size()) - 1);
  }
  std::int32_t index(std::size_t axis) {
    return emit(Op::index, DType::i64, -1, -1, -1, static_cast<std::int32_t>(axis));
  }
  std::int32_t hide_unless(std::int32_t condition, std::int32_t scores) {
    return emit(Op::select, real, condition, scores,
                number(-std::numeric_limits<double>::infinity()));
  }
};

}  // namespace einkern::test
