// SPDX-License-Identifier: Apache-2.0
// The reference einsum: one loop over all labels, in float64 or exact integers, from raw memory.
#pragma once

#include <cstdint>
#include <vector>

#include "../../engine/base/dtype.h"
#include "../../engine/spec/spec.h"

namespace einkern::test {

/// Raw memory with sizes and signed strides in elements; `data` is the element at index (0, ...,
/// 0).
struct RawView {
  const void* data = nullptr;
  DType dtype = DType::f64;
  std::vector<std::int64_t> shape, strides;
};

/// out[output labels] = sum over the other labels of the product of the operands, in C order. A
/// label repeated in the output leaves zeros off the diagonal. Every product and sum is a double.
std::vector<double> oracle_einsum(const Spec& spec, const std::vector<RawView>& operands);

/// The same over integers, summed in 128 bits; std::overflow_error when a result does not fit 64.
std::vector<std::int64_t> oracle_einsum_exact(const Spec& spec,
                                              const std::vector<RawView>& operands);

}  // namespace einkern::test
