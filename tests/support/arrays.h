// SPDX-License-Identifier: Apache-2.0
// Plain row-major arrays of doubles for naive references, and their conversion from and to tensors.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <random>
#include <span>
#include <utility>
#include <vector>

#include "../../engine/tensor/create.h"
#include "../../engine/tensor/tensor.h"
#include "close.h"

namespace einkern::test {

using Sizes = std::vector<std::int64_t>;

/// A row-major array; an index of an axis of size 1 is read as 0, so operands broadcast from the
/// right.
struct Array {
  Sizes shape;
  std::vector<double> data;

  explicit Array(Sizes sizes = {}, double value = 0) : shape(std::move(sizes)) {
    std::int64_t count = 1;
    for (const std::int64_t size : shape) count *= size;
    data.assign(static_cast<std::size_t>(count), value);
  }
  Array(Sizes sizes, std::vector<double> values)
      : shape(std::move(sizes)), data(std::move(values)) {}

  /// Element at the last `shape.size()` of the indices.
  double& at(const Sizes& index) { return data[offset(index)]; }
  double at(const Sizes& index) const { return data[offset(index)]; }

 private:
  std::size_t offset(const Sizes& index) const {
    const std::size_t skip = index.size() - shape.size();
    std::int64_t result = 0;
    for (std::size_t d = 0; d < shape.size(); ++d) {
      result = result * shape[d] + (shape[d] == 1 ? 0 : index[skip + d]);
    }
    return static_cast<std::size_t>(result);
  }
};

/// Calls `f(index)` for every index of a shape, in row-major order.
template <class F>
void for_each_index(const Sizes& shape, F&& f) {
  Sizes index(shape.size(), 0);
  for (const std::int64_t size : shape) {
    if (size == 0) return;
  }
  while (true) {
    f(std::as_const(index));
    std::size_t d = shape.size();
    while (d > 0 && ++index[d - 1] == shape[d - 1]) index[--d] = 0;
    if (d == 0) return;
  }
}

inline Tensor to_tensor(const Array& array, DType dtype = f64) {
  return from_values(std::span<const double>(array.data), Shape(array.shape)).astype(dtype);
}

inline Array to_array(const Tensor& tensor) {
  return {Sizes(tensor.shape().begin(), tensor.shape().end()),
          tensor.astype(f64).to_vector<double>()};
}

/// Numbers in [-1, 1), a function of the seed.
inline Array noise(Sizes shape, unsigned seed) {
  Array result(std::move(shape));
  std::mt19937 engine(seed);
  for (double& x : result.data) x = static_cast<double>(engine()) / 2147483648.0 - 1.0;
  return result;
}

/// Largest |got - want| / max(1, |want|); infinite when the shapes differ.
inline double worst_error(const Array& got, const Array& want) {
  if (got.shape != want.shape) return INFINITY;
  return worst_error(std::span<const double>(got.data), std::span<const double>(want.data));
}
inline double worst_error(const Tensor& got, const Array& want) {
  return worst_error(to_array(got), want);
}

/// Tolerance of a few operations in this dtype.
inline double tolerance(DType dtype) { return dtype == f32 ? 2e-6 : 1e-13; }

}  // namespace einkern::test
