// SPDX-License-Identifier: Apache-2.0
// New tensors from shapes and numbers.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <span>

#include "tensor.h"

namespace einkern {

/// A contiguous tensor whose elements are not set; `labels` name its axes.
Tensor empty(const Shape& shape, DType dtype = f32, Labels labels = {});
Tensor zeros(const Shape& shape, DType dtype = f32);
Tensor ones(const Shape& shape, DType dtype = f32);
/// Every element `value`, converted to `dtype`.
Tensor full(const Shape& shape, double value, DType dtype = f32);
/// 0, 1, ..., n-1.
Tensor arange(std::int64_t n, DType dtype = i64);
/// start, start+step, ... before stop (ceil((stop-start)/step) elements).
Tensor arange(double start, double stop, double step, DType dtype);
/// Uniform in [0, 1), a function of (seed, flat index) only: the same for any thread count.
/// Counter-based (Philox 4x32-10: Salmon et al., "Parallel random numbers: as easy as 1, 2, 3",
/// 2011).
Tensor random(const Shape& shape, std::uint64_t seed, DType dtype = f32);
/// A tensor holding a copy of `values` in C order; ShapeError when the count does not fit.
template <Element T>
Tensor from_values(std::span<const T> values, const Shape& shape);
template <Element T>
Tensor tensor(std::initializer_list<T> values) {
  return from_values(std::span<const T>(values.begin(), values.size()),
                     {static_cast<std::int64_t>(values.size())});
}
template <Element T>
Tensor tensor(std::initializer_list<T> values, const Shape& shape) {
  return from_values(std::span<const T>(values.begin(), values.size()), shape);
}

}  // namespace einkern
