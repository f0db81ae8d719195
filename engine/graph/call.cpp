// SPDX-License-Identifier: Apache-2.0
// Binds memory to plans and runs them.
#include "call.h"

#include <fmt/format.h>

#include <algorithm>

#include "../base/error.h"
#include "../exec/execute.h"
#include "../plan/may_fail.h"
#include "../tensor/create.h"
#include "align.h"

namespace einkern::graph {
std::vector<Tensor> run(const Call& call, std::span<const Type* const> types, int threads) {
  std::vector<Tensor> outs;
  outs.reserve(types.size());
  for (const Type* type : types) outs.push_back(empty(type->shape, type->dtype, type->labels));
  run_into(call, outs, threads);
  return outs;
}

Tensor run(const Call& call, const Type& type, int threads) {
  Tensor out = empty(type.shape, type.dtype, type.labels);
  run_into(call, {&out, 1}, threads);
  return out;
}

void run_into(const Call& call, std::span<const Tensor> outs, int threads) {
  SmallVector<const void*, 8> inputs;
  SmallVector<void*, 4> outputs;
  for (const Tensor* leaf : call.leaves) inputs.push_back(leaf->bytes());
  for (const Tensor& out : outs) outputs.push_back(out.mutable_bytes("eval"));
  exec::execute(call.prepared.plan,
                {{inputs.data(), inputs.size()}, {outputs.data(), outputs.size()}, call.scalars},
                threads);
}

void check_out(const char* function, const Tensor& out, const Type& type) {
  if (!(out.shape() == type.shape)) {
    fail<ShapeError>(fmt::format("{}: the result is {} but out is {}", function, axes_text(type),
                                 to_string(out.shape())));
  }
  if (out.dtype() != type.dtype) {
    fail<TypeError>(fmt::format("{}: the result is {} but out is {}", function, name_of(type.dtype),
                                name_of(out.dtype())));
  }
  out.mutable_bytes(function);
  if (!out.is_contiguous() && may_self_overlap(out.layout())) {
    fail<ValueError>(fmt::format("{}: elements of out share memory (strides {})", function,
                                 to_string(out.strides())));
  }
}

bool may_share_memory(std::span<const Tensor> outs, std::span<const Tensor* const> leaves) {
  for (std::size_t i = 0; i < outs.size(); ++i) {
    for (const Tensor* leaf : leaves) {
      if (may_share_memory(outs[i], *leaf)) return true;
    }
    for (std::size_t j = 0; j < i; ++j) {
      if (may_share_memory(outs[i], outs[j])) return true;
    }
  }
  return false;
}

bool may_fail_half_way(const Call& call) {
  return plan::may_fail_half_way(call.prepared.plan, call.scalars);
}

std::vector<Layout> contiguous_layouts(std::span<const Type* const> types) {
  std::vector<Layout> layouts;
  layouts.reserve(types.size());
  for (const Type* type : types) layouts.push_back(contiguous(type->shape));
  return layouts;
}

}  // namespace einkern::graph
