// SPDX-License-Identifier: Apache-2.0
// Checks what a lender says about its memory.
#include "borrow.h"

#include <fmt/format.h>

#include "../base/error.h"
#include "storage.h"

namespace einkern::lending {
namespace {

// Byte offsets of every element must fit i64; sums of products may not wrap on the way.
void check_reach(const Layout& layout) {
  constexpr std::int64_t kMost = std::int64_t{1} << 60;
  std::int64_t reach = 0;
  for (std::size_t axis = 0; axis < layout.rank(); ++axis) {
    std::int64_t step = 0;
    if (layout.shape[axis] > 1 &&
        (__builtin_mul_overflow(layout.shape[axis] - 1, layout.strides[axis], &step) ||
         step > kMost || step < -kMost || (reach += step < 0 ? -step : step) > kMost)) {
      fail<ShapeError>(fmt::format("borrow: shape {} with strides {} reaches beyond 64-bit offsets",
                                   to_string(layout.shape), to_string(layout.strides)));
    }
  }
}

}  // namespace

Tensor borrow_memory(const void* data, DType dtype, const Shape& shape, const Strides& strides,
                     bool read_only, std::shared_ptr<const void> keep_alive) {
  const std::int64_t count = element_count(shape, "borrow");
  if (shape.size() != strides.size()) {
    fail<ShapeError>(
        fmt::format("borrow: strides {} for shape {}", to_string(strides), to_string(shape)));
  }
  Layout layout{shape, strides, 0};
  if (count > 0) {
    if (data == nullptr)
      fail<ValueError>(fmt::format("borrow: null for shape {}", to_string(shape)));
    check_reach(layout);
  }
  const Range range = touched(layout);
  const auto element = static_cast<std::int64_t>(size_of(dtype));
  // Whether it may be written is a property of the tensor, not of the pointer.
  auto* const first = static_cast<std::byte*>(const_cast<void*>(data));
  auto storage = Storage::borrow(first + range.first * element,
                                 static_cast<std::size_t>((range.last - range.first + 1) * element),
                                 std::move(keep_alive));
  return {std::move(storage), first, dtype, std::move(layout), read_only};
}

Tensor borrow_elements(const void* data, DType dtype, std::size_t count, const Shape& shape,
                       bool read_only) {
  if (static_cast<std::size_t>(element_count(shape, "borrow")) != count) {
    fail<ShapeError>(fmt::format("borrow: {} elements for shape {}", count, to_string(shape)));
  }
  return borrow_memory(data, dtype, shape, contiguous_strides(shape), read_only);
}

}  // namespace einkern::lending
