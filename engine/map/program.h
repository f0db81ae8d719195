// SPDX-License-Identifier: Apache-2.0
// The elementwise program: a straight-line list of operations evaluated once per element.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "../base/dtype.h"

namespace einkern::map {

/// Operations of a program. The dtype of an instruction is the dtype of its result; operands of
/// arithmetic have that dtype, operands of a comparison agree with one another.
enum class Op : std::uint8_t {
  // sources
  load,    // arg: which input; its dtype is the instruction's dtype
  scalar,  // arg: which scalar of the caller; dtype f32, f64, i64 or boolean
  index,   // arg: which axis of the iteration space; i64 position along it
  cast,    // a converted to dtype (float to bool: anything non-zero; float to i64: toward zero)
  // one operand (floats; neg, abs also i64; logical_not bool)
  neg,
  abs,
  exp,
  log,
  sqrt,
  rsqrt,
  sin,
  cos,
  tanh,
  sigmoid,
  erf,
  logical_not,
  // two operands
  add,
  sub,
  mul,
  div,
  floordiv,
  mod,
  pow,
  maximum,
  minimum,
  random,  // 62 random bits, a function of the counter a and the key b; i64
  // comparisons (result boolean) and logic on booleans
  less,
  less_equal,
  equal,
  not_equal,
  logical_and,
  logical_or,
  // three operands: a ? b : c with a boolean
  select,
};

/// Name as `str` and error texts show it: `"add"`, `"less_equal"`.
std::string_view name_of(Op op) noexcept;
/// Number of registers an operation reads: 0 to 3.
int arity(Op op) noexcept;

/// One instruction; its result is the register with its own position in the program. `a`, `b`, `c`
/// are earlier registers.
struct Instruction {
  Op op;
  DType dtype;
  std::int32_t a = -1, b = -1, c = -1;
  std::int32_t arg = 0;
  friend bool operator==(const Instruction&, const Instruction&) = default;
};

/// A program: the last instruction is the result. Instructions that are equal are stored once.
struct Program {
  std::vector<Instruction> code;

  DType dtype() const { return code.back().dtype; }
  /// Appends (or finds an equal earlier) instruction and returns its register.
  std::int32_t emit(Instruction instruction);
  /// One line per instruction: `r2: f32 = mul r0 r1`.
  std::string str() const;
  friend bool operator==(const Program&, const Program&) = default;
};

/// Checks registers, arities and dtypes; std::logic_error naming the line when broken.
void verify(const Program& program, std::size_t inputs, std::size_t scalars, std::size_t rank);

/// Value of a scalar of the caller, read by `Op::scalar` as the instruction's dtype.
struct Scalar {
  DType dtype = DType::f64;  // f64, i64 or boolean (in `integer`)
  double real = 0;
  std::int64_t integer = 0;

  static Scalar of(double value) { return {DType::f64, value, 0}; }
  static Scalar of(std::int64_t value) { return {DType::i64, static_cast<double>(value), value}; }
  static Scalar of(bool value) { return {DType::boolean, value ? 1.0 : 0.0, value ? 1 : 0}; }
  friend bool operator==(const Scalar&, const Scalar&) = default;
};

}  // namespace einkern::map
