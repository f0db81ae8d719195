// SPDX-License-Identifier: Apache-2.0
// Shape and stride algebra: where the elements of a view lie, as pure functions of small vectors.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "small_vector.h"

namespace einkern {

using Dims = SmallVector<std::int64_t, 6>;
using Shape = Dims;    // sizes, outermost axis first
using Strides = Dims;  // signed counts of elements

/// Where the elements of a view lie: element (i0, i1, ...) is at offset + sum(i * stride).
struct Layout {
  Dims shape;
  Dims strides;
  std::int64_t offset = 0;

  std::size_t rank() const noexcept { return shape.size(); }
  friend bool operator==(const Layout&, const Layout&) = default;
};

/// Product of the sizes; ShapeError (naming `function`) for a negative size or a product whose
/// bytes (8 an element) do not fit i64. A size of 0 anywhere gives 0.
std::int64_t element_count(const Dims& shape, const char* function = "shape");

/// C-order strides of a shape; axes of size 0 count as size 1.
Dims contiguous_strides(const Dims& shape);

/// Layout of a new C-order tensor.
Layout contiguous(const Dims& shape);

/// Are the elements in C order without gaps (axes of size 1 have no stride to speak of)?
bool is_contiguous(const Layout& layout) noexcept;

/// Lowest and highest element offset that a view touches, inclusive; {0, -1} when it has no
/// element.
struct Range {
  std::int64_t first = 0, last = -1;
};
Range touched(const Layout& layout) noexcept;

/// Can two index tuples of the view name the same element (stride 0, or axes that overlap)?
/// Conservative: may say yes for exotic strides that do not collide.
bool may_self_overlap(const Layout& layout);

/// The elements start, start+step, ... before stop of an axis of this size: Python's rules
/// (negative bounds count from the end, both are clipped, `step` may be negative but not 0).
struct SliceRange {
  std::int64_t start = 0, size = 0;
};
SliceRange slice_range(std::int64_t size, std::optional<std::int64_t> start,
                       std::optional<std::int64_t> stop, std::int64_t step) noexcept;

/// The axes in another order; `order` is a permutation of 0..rank-1.
Layout permuted(const Layout& layout, const SmallVector<std::int64_t, 6>& order);

/// "(2, 3)", "(4,)", "()": shapes as messages and printing show them.
std::string to_string(const Dims& shape);

}  // namespace einkern
