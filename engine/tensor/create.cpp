// SPDX-License-Identifier: Apache-2.0
// Shapes and numbers into new tensors.
#include "create.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>

#include "../base/error.h"
#include "../base/philox.h"
#include "convert.h"
#include "storage.h"

namespace einkern {
namespace {

// Blocks of four words: elements 4i..4i+3 of up to 32 bits (as many leading bits of a word as the
// type holds: 24 of f32, 11 of f16, 8 of bf16) or 2i, 2i+1 of f64 (53 bits each).
std::array<std::uint32_t, 4> random_block(std::uint64_t seed, std::int64_t block) noexcept {
  const auto index = static_cast<std::uint64_t>(block);
  return philox4x32(
      {static_cast<std::uint32_t>(index), static_cast<std::uint32_t>(index >> 32), 0, 0},
      {static_cast<std::uint32_t>(seed), static_cast<std::uint32_t>(seed >> 32)});
}

template <class T>
void fill_random(T* out, std::int64_t count, std::uint64_t seed) noexcept {
  constexpr int kDigits = [] {
    if constexpr (is_half<T>) return T::kFractionBits + 1;
    return std::numeric_limits<Widened<T>>::digits;
  }();
  constexpr float kPlace = 1.0F / (1 << kDigits);
  for (std::int64_t i = 0; i < count; i += 4) {
    const auto words = random_block(seed, i / 4);
    for (std::int64_t j = 0; j < std::min<std::int64_t>(4, count - i); ++j) {
      const std::uint32_t number = words[static_cast<std::size_t>(j)] >> (32 - kDigits);
      out[i + j] = static_cast<T>(static_cast<float>(number) * kPlace);
    }
  }
}

void fill_random(double* out, std::int64_t count, std::uint64_t seed) noexcept {
  for (std::int64_t i = 0; i < count; i += 2) {
    const auto words = random_block(seed, i / 2);
    for (std::int64_t j = 0; j < std::min<std::int64_t>(2, count - i); ++j) {
      const auto w = static_cast<std::size_t>(2 * j);
      const std::uint64_t bits = std::uint64_t{words[w + 1]} << 32 | words[w];
      out[i + j] = static_cast<double>(bits >> 11) * 0x1p-53;
    }
  }
}

void refuse_bool_range(DType dtype) {
  if (dtype == boolean) fail<TypeError>("arange: dtype bool does not count");
}

}  // namespace

Tensor empty(const Shape& shape, DType dtype, Labels labels) {
  // element_count bounds the product by 2^60, so the bytes fit.
  const auto count = static_cast<std::size_t>(element_count(shape, "empty"));
  std::shared_ptr<Storage> storage = Storage::allocate(count * size_of(dtype));
  void* const data = storage->data();
  return {std::move(storage), data, dtype, contiguous(shape), false, std::move(labels)};
}

Tensor zeros(const Shape& shape, DType dtype) {
  Tensor result = empty(shape, dtype);
  std::memset(result.mutable_bytes("zeros"), 0,
              static_cast<std::size_t>(result.size()) * size_of(dtype));
  return result;
}

Tensor ones(const Shape& shape, DType dtype) { return full(shape, 1, dtype); }

Tensor full(const Shape& shape, double value, DType dtype) {
  dispatch(dtype, [&]<class T>(std::type_identity<T>) { convert<T>(value, "full"); });
  Tensor result = empty(shape, dtype);
  result.fill(value);
  return result;
}

Tensor arange(std::int64_t n, DType dtype) {
  refuse_bool_range(dtype);
  n = std::max<std::int64_t>(n, 0);
  return dispatch(dtype, [&]<class T>(std::type_identity<T>) {
    if (n > 0) convert<T>(n - 1, "arange");
    Tensor result = empty({n}, dtype);
    T* const out = static_cast<T*>(result.mutable_bytes("arange"));
    for (std::int64_t i = 0; i < n; ++i) out[i] = convert<T>(i, "arange");
    return result;
  });
}

Tensor arange(double start, double stop, double step, DType dtype) {
  refuse_bool_range(dtype);
  if (step == 0) fail<ValueError>("arange: step is 0");
  const double steps = std::ceil((stop - start) / step);
  if (!std::isfinite(steps) || !std::isfinite(step)) {
    fail<ValueError>(fmt::format("arange: no range from {} to {} by {}", start, stop, step));
  }
  const auto n = static_cast<std::int64_t>(std::clamp(steps, 0.0, 0x1p62));
  return dispatch(dtype, [&]<class T>(std::type_identity<T>) {
    element_count({n}, "arange");
    Tensor result = empty({n}, dtype);
    T* const out = static_cast<T*>(result.mutable_bytes("arange"));
    for (std::int64_t i = 0; i < n; ++i) {
      out[i] = convert<T>(start + static_cast<double>(i) * step, "arange");
    }
    return result;
  });
}

Tensor random(const Shape& shape, std::uint64_t seed, DType dtype) {
  if (!is_float(dtype)) {
    fail<TypeError>(
        fmt::format("random: dtype is {} but must be f16, bf16, f32 or f64", name_of(dtype)));
  }
  Tensor result = empty(shape, dtype);
  void* const out = result.mutable_bytes("random");
  dispatch(dtype, [&]<class T>(std::type_identity<T>) {
    if constexpr (is_float(dtype_of<T>)) fill_random(static_cast<T*>(out), result.size(), seed);
  });
  return result;
}

template <Element T>
Tensor from_values(std::span<const T> values, const Shape& shape) {
  const std::int64_t count = element_count(shape, "from_values");
  if (static_cast<std::size_t>(count) != values.size()) {
    fail<ShapeError>(fmt::format("from_values: {} values for shape {} of {} elements",
                                 values.size(), to_string(shape), count));
  }
  Tensor result = empty(shape, dtype_of<T>);
  if (count > 0)
    std::memcpy(result.mutable_bytes("from_values"), values.data(), values.size_bytes());
  return result;
}

template Tensor from_values(std::span<const bool>, const Shape&);
template Tensor from_values(std::span<const char>, const Shape&);
template Tensor from_values(std::span<const signed char>, const Shape&);
template Tensor from_values(std::span<const short>, const Shape&);
template Tensor from_values(std::span<const int>, const Shape&);
template Tensor from_values(std::span<const long>, const Shape&);
template Tensor from_values(std::span<const long long>, const Shape&);
template Tensor from_values(std::span<const Float16>, const Shape&);
template Tensor from_values(std::span<const BFloat16>, const Shape&);
template Tensor from_values(std::span<const float>, const Shape&);
template Tensor from_values(std::span<const double>, const Shape&);

}  // namespace einkern
