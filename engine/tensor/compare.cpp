// SPDX-License-Identifier: Apache-2.0
// Two tensors into one answer: are they close?
#include <cmath>
#include <cstdint>

#include "convert.h"
#include "nest.h"
#include "tensor.h"

namespace einkern {
namespace {

bool close(double a, double b, double rtol, double atol) noexcept {
  if (a == b) return true;  // equal infinities too
  if (std::isnan(a) || std::isnan(b)) return std::isnan(a) && std::isnan(b);
  if (std::isinf(a) || std::isinf(b)) return false;
  return std::abs(a - b) <= atol + rtol * std::abs(b);
}

// Integers beyond 2^53 differ even where their doubles do not.
bool close(std::int64_t a, std::int64_t b, double rtol, double atol) noexcept {
  const auto x = static_cast<std::uint64_t>(a), y = static_cast<std::uint64_t>(b);
  const auto difference = static_cast<double>(a > b ? x - y : y - x);
  return difference <= atol + rtol * std::abs(static_cast<double>(b));
}

}  // namespace

bool allclose(const Tensor& a, const Tensor& b, double rtol, double atol) {
  if (a.shape() != b.shape()) return false;
  bool all = true;
  const Nest<2> nest(a.shape(), {&a.strides(), &b.strides()});
  dispatch(a.dtype(), [&]<class A>(std::type_identity<A>) {
    dispatch(b.dtype(), [&]<class B>(std::type_identity<B>) {
      constexpr bool kFloat = is_float(dtype_of<A>) || is_float(dtype_of<B>);
      using Common = std::conditional_t<kFloat, double, std::int64_t>;
      const auto* const x = static_cast<const A*>(a.bytes());
      const auto* const y = static_cast<const B*>(b.bytes());
      nest.for_each_row([&](std::int64_t count, const auto& offsets, const auto& steps) {
        for (std::int64_t i = 0; all && i < count; ++i) {
          all = close(static_cast<Common>(load(x + offsets[0] + i * steps[0])),
                      static_cast<Common>(load(y + offsets[1] + i * steps[1])), rtol, atol);
        }
      });
    });
  });
  return all;
}

}  // namespace einkern
