// SPDX-License-Identifier: Apache-2.0
// One call of a plan: its tensors bound, its outputs made or filled.
#pragma once

#include <memory>
#include <span>
#include <vector>

#include "expr.h"
#include "prepare.h"

namespace einkern::graph {

/// Tensors that somebody else keeps alive.
using TensorPointers = SmallVector<const Tensor*, 8>;

/// A plan with everything it reads; both outlive the call.
struct Call {
  const Prepared& prepared;
  TensorPointers leaves;                 // by input position
  std::span<const map::Scalar> scalars;  // by slot
};

/// Runs into new contiguous tensors of these types.
std::vector<Tensor> run(const Call& call, std::span<const Type* const> types, int threads);
/// The same of a plan with one output.
Tensor run(const Call& call, const Type& type, int threads);

/// Runs into the given tensors, which the plan was made for (their layouts are its outputs').
void run_into(const Call& call, std::span<const Tensor> outs, int threads);

/// ShapeError, TypeError or ValueError, naming `function`, unless `out` can take a value of this
/// type.
void check_out(const char* function, const Tensor& out, const Type& type);

/// Does an output share memory with a leaf or with another output? Then values are computed
/// elsewhere first.
bool may_share_memory(std::span<const Tensor> outs, std::span<const Tensor* const> leaves);

/// Must the value be computed elsewhere first, because a run may fail after it has begun to write
/// (integer arithmetic, checks)? Outputs are left untouched then.
bool may_fail_half_way(const Call& call);

/// Contiguous layouts of these types.
std::vector<Layout> contiguous_layouts(std::span<const Type* const> types);

}  // namespace einkern::graph
