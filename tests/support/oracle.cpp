// SPDX-License-Identifier: Apache-2.0
// The reference einsum: one loop over all labels, in float64 or exact integers, from raw memory.
#include "oracle.h"

#include <stdexcept>

namespace einkern::test {
namespace {

__extension__ using Wide = __int128;

template <class Number>
Number element(const RawView& view, std::int64_t offset) {
  switch (view.dtype) {
    case DType::boolean:
      return static_cast<const bool*>(view.data)[offset] ? 1 : 0;
    case DType::i8:
      return static_cast<const std::int8_t*>(view.data)[offset];
    case DType::i16:
      return static_cast<const std::int16_t*>(view.data)[offset];
    case DType::i32:
      return static_cast<const std::int32_t*>(view.data)[offset];
    case DType::i64:
      return static_cast<Number>(static_cast<const std::int64_t*>(view.data)[offset]);
    case DType::f16:
      return static_cast<Number>(widen(static_cast<const Float16*>(view.data)[offset]));
    case DType::bf16:
      return static_cast<Number>(widen(static_cast<const BFloat16*>(view.data)[offset]));
    case DType::f32:
      return static_cast<Number>(static_cast<const float*>(view.data)[offset]);
    case DType::f64:
      break;
  }
  return static_cast<Number>(static_cast<const double*>(view.data)[offset]);
}

template <class Number>
std::vector<Number> loop_over_labels(const Spec& spec, const std::vector<RawView>& operands) {
  std::size_t out_size = 1;
  for (const LabelId label : spec.output) {
    out_size *= static_cast<std::size_t>(spec.sizes[static_cast<std::size_t>(label)]);
  }
  std::vector<Number> out(out_size, Number{0});
  for (const std::int64_t size : spec.sizes) {
    if (size == 0) return out;
  }
  std::vector<std::int64_t> index(spec.sizes.size(), 0);
  while (true) {
    Number product = 1;
    for (std::size_t p = 0; p < operands.size(); ++p) {
      std::int64_t offset = 0;
      for (std::size_t axis = 0; axis < spec.inputs[p].size(); ++axis) {
        if (operands[p].shape[axis] == 1) continue;  // one element, whatever the label's size
        offset += index[static_cast<std::size_t>(spec.inputs[p][axis])] * operands[p].strides[axis];
      }
      product *= element<Number>(operands[p], offset);
    }
    std::size_t position = 0;
    for (const LabelId label : spec.output) {
      const auto l = static_cast<std::size_t>(label);
      position =
          position * static_cast<std::size_t>(spec.sizes[l]) + static_cast<std::size_t>(index[l]);
    }
    out[position] += product;
    std::size_t label = 0;
    for (; label < index.size(); ++label) {
      if (++index[label] < spec.sizes[label]) break;
      index[label] = 0;
    }
    if (label == index.size()) return out;
  }
}

}  // namespace

std::vector<double> oracle_einsum(const Spec& spec, const std::vector<RawView>& operands) {
  return loop_over_labels<double>(spec, operands);
}

std::vector<std::int64_t> oracle_einsum_exact(const Spec& spec,
                                              const std::vector<RawView>& operands) {
  std::vector<std::int64_t> result;
  for (const Wide value : loop_over_labels<Wide>(spec, operands)) {
    if (value > INT64_MAX || value < INT64_MIN) throw std::overflow_error("oracle: beyond 64 bits");
    result.push_back(static_cast<std::int64_t>(value));
  }
  return result;
}

}  // namespace einkern::test
