// SPDX-License-Identifier: Apache-2.0
// The ways to run a contraction, its epilogue included. Every size is at least 1; f32 and f64
// unless said otherwise; any groups and strides.
#pragma once

#include "frame.h"

namespace einkern::exec {

/// Packed matrix products.
void run_matmul(const plan::Contract& step, const Frame& frame);

/// Products with a short sum over a large operand, streamed. Does nothing and says false where the
/// strides or sizes do not suit.
bool run_stream(const plan::Contract& step, const Frame& frame);

/// A large operand read once, where it lies, for a few rows or columns of the other; it may be f16
/// or bf16. Does nothing and says false where the strides or sizes do not suit.
bool run_skinny(const plan::Contract& step, const Frame& frame);

/// A batch that has the unit stride of c and of its operands: matrices side by side in the lanes.
/// Does nothing and says false where the strides or sizes do not suit.
bool run_lanes(const plan::Contract& step, const Frame& frame);

/// Many small matrices, each kept in registers.
void run_small(const plan::Contract& step, const Frame& frame);

/// One matrix and one vector (m or n is empty).
void run_matvec(const plan::Contract& step, const Frame& frame);

/// Sums of products of two vectors (m and n are empty).
void run_dot(const plan::Contract& step, const Frame& frame);

/// Products without a sum (k is empty).
void run_outer(const plan::Contract& step, const Frame& frame);

/// Exact i64 contraction by plain loops; ValueError when a sum leaves i64.
void run_integer(const plan::Contract& step, const Frame& frame);

/// Calls `f(T{})` with the float type of the step.
template <class F>
void with_float(const plan::Contract& step, const F& f) {
  if (step.c.dtype == DType::f32) {
    f(float{});
  } else {
    f(double{});
  }
}

}  // namespace einkern::exec
