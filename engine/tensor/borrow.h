// SPDX-License-Identifier: Apache-2.0
// Somebody else's memory as a tensor, no element copied: pointers, spans, and by concept whatever
// has the shape of mdspan, Eigen or xtensor. None of them is included.
//
// The lender must live as long as the tensor and its views. Owners that would die at the end of the
// statement, and expressions of other libraries that have not been evaluated, do not compile.
// Memory lent as const is read-only.
#pragma once

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <ranges>
#include <type_traits>
#include <utility>

#include "tensor.h"

namespace einkern {
namespace lending {

/// The checks and the tensor behind every `borrow`.
Tensor borrow_memory(const void* data, DType dtype, const Shape& shape, const Strides& strides,
                     bool read_only, std::shared_ptr<const void> keep_alive = {});
/// C-order sizes over exactly `count` elements.
Tensor borrow_elements(const void* data, DType dtype, std::size_t count, const Shape& shape,
                       bool read_only);

template <class P>
concept ElementPointer =
    std::is_pointer_v<P> && Element<std::remove_cv_t<std::remove_pointer_t<P>>> &&
    !std::is_volatile_v<std::remove_pointer_t<P>>;

/// An mdspan: a view whose elements are plain references (scaled or conjugated accessors are not).
template <class S>
concept MdspanLike = requires(const S& s) {
  { s.rank() } -> std::convertible_to<std::size_t>;
  { s.extent(0) } -> std::convertible_to<std::int64_t>;
  { s.stride(0) } -> std::convertible_to<std::int64_t>;
  { s.data_handle() } -> ElementPointer;
}
&&(
    !requires { typename S::reference; } ||
    requires(const S& s) {
      requires std::same_as<typename S::reference, decltype(*s.data_handle())>;
    });

/// A dense Eigen object with memory behind it: Matrix, Array, Map, Ref, Block, Transpose.
template <class S>
concept EigenLike = requires(S& s) {
  typename std::remove_cv_t<S>::PlainObject;
  { s.rows() } -> std::convertible_to<std::int64_t>;
  { s.cols() } -> std::convertible_to<std::int64_t>;
  { s.rowStride() } -> std::convertible_to<std::int64_t>;
  { s.colStride() } -> std::convertible_to<std::int64_t>;
  { s.innerStride() } -> std::convertible_to<std::int64_t>;
  { s.data() } -> ElementPointer;
  { S::IsVectorAtCompileTime } -> std::convertible_to<bool>;
};

/// An Eigen object that holds elements of its own: what can be made from a sum can. This includes
/// Ref<const Matrix>, which keeps a temporary when it is made from an expression.
template <class S, class Plain = typename std::remove_cv_t<S>::PlainObject>
concept EigenOwner = std::constructible_from<std::remove_cv_t<S>, Plain> ||
                     std::constructible_from < std::remove_cv_t<S>,
decltype(std::declval<const Plain&>() + std::declval<const Plain&>()) > ;

/// An xtensor container, adaptor or strided view. Its views may own what they look at.
template <class S>
concept XtensorLike = requires(S& s) {
  { s.dimension() } -> std::convertible_to<std::size_t>;
  { *std::begin(s.shape()) } -> std::convertible_to<std::int64_t>;
  { *std::begin(s.strides()) } -> std::convertible_to<std::int64_t>;
  { s.data() } -> ElementPointer;
  { s.data_offset() } -> std::convertible_to<std::size_t>;
};

/// Elements side by side: std::span, std::vector, std::array, a C array. Rvalues only when they are
/// views, as std::ranges tells them apart.
template <class S>
concept RowLike = std::ranges::contiguous_range<S> && std::ranges::sized_range<S> &&
    std::ranges::borrowed_range<S> && Element<std::ranges::range_value_t<S>>;

template <class S, class Bare = std::remove_reference_t<S>>
concept Lender = MdspanLike<Bare> ||
                 (EigenLike<Bare> && (std::is_lvalue_reference_v<S> || !EigenOwner<Bare>)) ||
                 (XtensorLike<Bare> && std::is_lvalue_reference_v<S>) ||
                 (RowLike<S> && !EigenLike<Bare> && !XtensorLike<Bare>);

}  // namespace lending

/// Elements at `data` with these signed strides, counted in elements from the first one; the memory
/// they reach must exist. A pointer to const gives a read-only tensor. `keep_alive` is released
/// when the last view is gone. ShapeError for strides of another rank or beyond 64-bit offsets,
/// ValueError for null.
template <Element T>
Tensor borrow(T* data, const Shape& shape, const Strides& strides,
              // It is moved, which clang-tidy 14 does not see inside a template.
              // NOLINTNEXTLINE(performance-unnecessary-value-param)
              std::shared_ptr<const void> keep_alive = {}) {
  return lending::borrow_memory(data, dtype_of<T>, shape, strides, std::is_const_v<T>,
                                std::move(keep_alive));
}
/// The same in C order.
template <Element T>
Tensor borrow(T* data, const Shape& shape) {
  return borrow(data, shape, contiguous_strides(shape));
}

/// The memory of a span or contiguous container (1-d), an mdspan, an Eigen object (2-d; vectors
/// 1-d) or an xtensor object, under the strides it has.
template <class S>
requires lending::Lender<S> Tensor borrow(S&& source) {
  using Bare = std::remove_reference_t<S>;
  Shape shape;
  Strides strides;
  const auto lend = [&](auto* data) { return borrow(data, shape, strides); };
  if constexpr (lending::MdspanLike<Bare>) {
    for (std::size_t axis = 0; axis < static_cast<std::size_t>(source.rank()); ++axis) {
      shape.push_back(static_cast<std::int64_t>(source.extent(axis)));
      strides.push_back(static_cast<std::int64_t>(source.stride(axis)));
    }
    return lend(source.data_handle());
  } else if constexpr (lending::EigenLike<Bare>) {
    if constexpr (static_cast<bool>(Bare::IsVectorAtCompileTime)) {
      shape = {static_cast<std::int64_t>(source.rows()) * static_cast<std::int64_t>(source.cols())};
      strides = {static_cast<std::int64_t>(source.innerStride())};
    } else {
      shape = {static_cast<std::int64_t>(source.rows()), static_cast<std::int64_t>(source.cols())};
      strides = {static_cast<std::int64_t>(source.rowStride()),
                 static_cast<std::int64_t>(source.colStride())};
    }
    return lend(source.data());
  } else if constexpr (lending::XtensorLike<Bare>) {
    for (const auto size : source.shape()) shape.push_back(static_cast<std::int64_t>(size));
    for (const auto stride : source.strides()) strides.push_back(static_cast<std::int64_t>(stride));
    return lend(source.data() + source.data_offset());
  } else {
    shape = {static_cast<std::int64_t>(std::ranges::size(source))};
    strides = {1};
    return lend(std::ranges::data(source));
  }
}

/// A span or contiguous container as a C-order tensor of this shape; ShapeError when the number of
/// elements differs.
template <class S>
requires lending::RowLike<S> Tensor borrow(S&& source, const Shape& shape) {
  auto* const data = std::ranges::data(source);
  using T = std::remove_pointer_t<decltype(data)>;
  return lending::borrow_elements(data, dtype_of<std::remove_const_t<T>>, std::ranges::size(source),
                                  shape, std::is_const_v<T>);
}

}  // namespace einkern
