// SPDX-License-Identifier: Apache-2.0
// The result of an einsum against plain loops in double, at sampled elements.
#include "bench_check.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <random>

#include "exit_code.h"

namespace einkern::tools {
namespace {

constexpr double kMostProducts = 1e8;  // about a second
constexpr std::int64_t kMostSamples = 256;

using Index = std::vector<std::int64_t>;  // by label

/// A tensor addressed by labels.
class Labelled {
 public:
  Labelled(const Tensor& tensor, const std::vector<LabelId>& labels, std::size_t label_count)
      : tensor_(tensor), strides_(label_count) {
    for (std::size_t axis = 0; axis < labels.size(); ++axis) {
      if (tensor.shape()[axis] == 1) continue;  // broadcasts
      strides_[static_cast<std::size_t>(labels[axis])] += tensor.strides()[axis];
    }
  }

  double at(const Index& index) const {
    std::int64_t offset = 0;
    for (std::size_t label = 0; label < index.size(); ++label)
      offset += index[label] * strides_[label];
    return dispatch(tensor_.dtype(), [&]<class T>(std::type_identity<T>) {
      return static_cast<double>(widen(static_cast<const T*>(tensor_.bytes())[offset]));
    });
  }

 private:
  Tensor tensor_;
  Index strides_;
};

struct Sum {
  double value = 0, magnitude = 0;
};

/// Sum over all values of the labels in `summed`; the others stay as they are in `index`.
Sum sum_of_products(const Spec& spec, const std::vector<Labelled>& operands,
                    const std::vector<std::size_t>& summed, Index& index) {
  Sum sum;
  for (const std::size_t label : summed) {
    if (spec.sizes[label] == 0) return sum;
    index[label] = 0;
  }
  while (true) {
    double product = 1;
    for (const Labelled& operand : operands) product *= operand.at(index);
    sum.value += product;
    sum.magnitude += std::fabs(product);
    std::size_t at = summed.size();
    while (at > 0 && ++index[summed[at - 1]] == spec.sizes[summed[at - 1]]) {
      index[summed[at - 1]] = 0;
      --at;
    }
    if (at == 0) return sum;
  }
}

}  // namespace

Samples check_samples(const std::string& what, const Spec& spec,
                      const std::vector<Tensor>& operands, const Tensor& result) {
  Samples samples;
  if (result.size() == 0) return samples;
  const std::size_t label_count = spec.sizes.size();
  std::vector<std::size_t> summed;
  double products = 1;
  for (std::size_t label = 0; label < label_count; ++label) {
    if (std::count(spec.output.begin(), spec.output.end(), label) > 0) continue;
    summed.push_back(label);
    products *= static_cast<double>(spec.sizes[label]);
  }
  std::vector<Labelled> inputs;
  for (std::size_t i = 0; i < operands.size(); ++i) {
    inputs.emplace_back(operands[i], spec.inputs[i], label_count);
  }
  const Labelled output(result, spec.output, label_count);
  const double epsilon = result.dtype() == f32 ? std::numeric_limits<float>::epsilon()
                                               : std::numeric_limits<double>::epsilon();
  const auto count = static_cast<std::int64_t>(kMostProducts / std::max(1.0, products));
  samples.elements = std::clamp<std::int64_t>(count, 1, kMostSamples);
  std::mt19937_64 draw(7);
  for (std::int64_t sample = 0; sample < samples.elements; ++sample) {
    Index index(label_count);
    for (const LabelId label : spec.output) {
      const auto l = static_cast<std::size_t>(label);
      index[l] = static_cast<std::int64_t>(draw() % static_cast<std::uint64_t>(spec.sizes[l]));
    }
    const Sum want = sum_of_products(spec, inputs, summed, index);
    for (const std::size_t label : summed) index[label] = 0;
    const double got = output.at(index);
    const double error = std::fabs(got - want.value);
    const double bound = epsilon * (8 + std::sqrt(products)) * want.magnitude;
    if (!(error <= bound)) {
      throw CheckFailed(
          fmt::format("bench: {}: an element is {:.9g} but a float64 loop gives {:.9g}", what, got,
                      want.value));
    }
    samples.largest_error = std::max(samples.largest_error, error);
  }
  return samples;
}

}  // namespace einkern::tools
