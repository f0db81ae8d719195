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

/// Runs into the given tensors, which the plan was made for (their layouts are its outputs').
void run_into(const Call& call, const std::vector<Tensor>& outs, int threads);

/// ShapeError, TypeError or ValueError, naming `function`, unless `out` can take a value of this
/// type.
void check_out(const char* function, const Tensor& out, const Type& type);

/// Must the value be computed elsewhere first? True when an output shares memory with a leaf or
/// another output, or when the plan can fail half-way (integer arithmetic, checks), which must
/// leave outputs untouched.
bool needs_detour(const std::vector<Tensor>& outs, const Collected& collected,
                  const TensorPointers& leaves);

/// Contiguous layouts of these types.
std::vector<Layout> contiguous_layouts(std::span<const Type* const> types);

}  // namespace einkern::graph
