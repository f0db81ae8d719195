// SPDX-License-Identifier: Apache-2.0
// The result of an einsum against plain loops in double, at sampled elements.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "../engine/spec/spec.h"
#include "../engine/tensor/tensor.h"

namespace einkern::tools {

struct Samples {
  std::int64_t elements = 0;
  double largest_error = 0;  // absolute
};

/// Compares elements of `result` with sums of products over the operands (contiguous)
/// taken by a loop that shares nothing with the engine. CheckFailed, naming `what`, for an error
/// beyond epsilon (8 + sqrt(n)) sum |products| of n products.
Samples check_samples(const std::string& what, const Spec& spec,
                      const std::vector<Tensor>& operands, const Tensor& result);

}  // namespace einkern::tools
