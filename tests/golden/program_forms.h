// SPDX-License-Identifier: Apache-2.0
// Programs of examples/programs with inputs, and the C++ functions they should be.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "../../einkern.h"

namespace einkern::test {

using Tensors = std::map<std::string, Tensor>;

/// A program, its inputs, and what it should be.
struct ProgramForm {
  std::string file;
  Tensors inputs;
  std::function<std::vector<Expr>(const Tensors&)> cpp;
};

/// Uniform in [-1, 1).
Tensor noise(const Shape& shape, std::uint64_t seed);
/// The one and the other.
Tensors with(Tensors inputs, const Tensors& more);
/// Queries (2, 4, 40, 16), keys and values of two sequences.
Tensors qkv(std::int64_t keys = 40, std::int64_t kv_heads = 4);

/// Softmax and the projections around it.
std::vector<ProgramForm> seed_forms();
/// What runs as streamed passes.
std::vector<ProgramForm> attention_forms();
/// Variants of the same kind.
std::vector<ProgramForm> variant_forms();
/// What has no pair around a softmax, or cannot be streamed.
std::vector<ProgramForm> plain_forms();

}  // namespace einkern::test
