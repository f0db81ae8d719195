// SPDX-License-Identifier: Apache-2.0
// A strided view of memory with a dtype and axis labels.
#pragma once

#include <concepts>
#include <cstdint>
#include <initializer_list>
#include <iosfwd>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "../base/dtype.h"
#include "../base/labels.h"
#include "../base/layout.h"

namespace einkern {

class Expr;
class Storage;

/// A label name or a number (negative counts from the right) that picks one axis of a tensor.
class Axis {
 public:
  Axis(const char* label) : label_(label) {}
  Axis(std::string_view label) : label_(label) {}
  Axis(const std::string& label) : label_(label) {}
  template <std::integral T>
  requires(!std::same_as<T, char> && !std::same_as<T, bool>) Axis(T number)
      : number_(static_cast<std::int64_t>(number)) {}

  bool is_label() const noexcept { return label_.has_value(); }
  const std::string& label() const { return *label_; }
  std::int64_t number() const noexcept { return number_; }

  /// The axis as 0..rank-1; ShapeError naming `function` and listing the labels when there is none.
  std::size_t resolve(const char* function, std::size_t rank, const Labels& labels) const;

 private:
  std::optional<std::string> label_;
  std::int64_t number_ = 0;
};

/// A strided view of memory: dtype, sizes, signed strides in elements, and one label per axis.
/// Copying shares the storage; members that rearrange axes return views of the same storage.
class Tensor {
 public:
  /// A 0-d f32 tensor holding 0.
  Tensor();
  /// A view of `storage`; used by the library itself and by `borrow`.
  Tensor(std::shared_ptr<const Storage> storage, void* data, DType dtype, Layout layout,
         bool read_only = false, Labels labels = {});

  DType dtype() const noexcept { return dtype_; }
  std::size_t rank() const noexcept { return layout_.rank(); }
  const Shape& shape() const noexcept { return layout_.shape; }
  /// Size of one axis; ShapeError when there is no such axis.
  std::int64_t shape(const Axis& axis) const;
  /// Signed counts of elements, not bytes.
  const Strides& strides() const noexcept { return layout_.strides; }
  /// Number of elements.
  std::int64_t size() const;
  const Labels& labels() const noexcept { return labels_; }
  bool is_contiguous() const noexcept { return einkern::is_contiguous(layout_); }
  /// Is the memory borrowed as const or mapped for reading? Writing it is a ValueError.
  bool read_only() const noexcept { return read_only_; }

  /// Pointer to the first element. `T` must be the dtype's type (TypeError); asking for a mutable
  /// pointer into read-only memory is a ValueError: use `data<const T>()`.
  template <Element T>
  T* data() const {
    return static_cast<T*>(const_cast<void*>(raw_data(dtype_of<T>, !std::is_const_v<T>)));
  }
  /// First element without checks, for the library's own kernels.
  const void* bytes() const noexcept { return data_; }
  /// The same for writing; ValueError naming `function` for read-only memory.
  void* mutable_bytes(const char* function) const;
  const std::shared_ptr<const Storage>& storage() const noexcept { return storage_; }

  /// The element (or, with fewer indices than axes, the sub-view) at these indices. Negative
  /// indices count from the end; out of range is a ShapeError.
  template <std::integral... I>
  Tensor operator()(I... indices) const {
    return at({static_cast<std::int64_t>(indices)...});
  }
  Tensor at(std::initializer_list<std::int64_t> indices) const;
  /// Value of a tensor with exactly one element, converted to `T`.
  template <Element T>
  T item() const;
  /// Writes `value`, converted to the dtype, to every element.
  void fill(double value) const;

  // Views: no element is copied. Labels travel with their axes.
  /// Axes in the given order (all of them).
  Tensor permute(std::initializer_list<Axis> order) const;
  /// Elements start, start+step, ... before stop of one axis; negative bounds count from the end,
  /// both are clipped as Python clips them; `step` may be negative, never 0.
  Tensor slice(const Axis& axis, std::optional<std::int64_t> start,
               std::optional<std::int64_t> stop = {}, std::int64_t step = 1) const;
  /// Both axes replaced by their diagonal, which comes last; sizes must agree.
  Tensor diagonal(const Axis& first, const Axis& second) const;
  /// Broadcast as NumPy does: new axes in front, size 1 stretched (stride 0). The view is
  /// read-only.
  Tensor broadcast(const Shape& shape) const;
  /// One axis as several: sizes multiply to the axis; one may be -1. `labels` name the new axes.
  Tensor split(const Axis& axis, const std::vector<std::string>& labels, const Shape& sizes) const;
  /// The same elements under other labels, as an einsum term: `"bhqd"`, `"[batch head] q"`.
  /// Defined in graph; `t[0]` does not compile.
  template <class Text>
  requires(std::convertible_to<const Text&, std::string_view> && !std::integral<Text>) Expr
  operator[](const Text& term) const;
  /// The same view with other labels ({} for none).
  Tensor with_labels(Labels labels) const&;
  Tensor with_labels(Labels labels) &&;

  // Copies.
  /// A contiguous tensor of another dtype. Float to integer truncates toward zero and is a
  /// ValueError for values out of range; anything non-zero (NaN too) is true.
  Tensor astype(DType dtype) const;
  /// A new contiguous tensor with the same elements and labels.
  Tensor copy() const;
  /// The elements in C order.
  template <Element T>
  std::vector<T> to_vector() const;
  /// Writes the elements of `source` (same shape, any dtype) into this view.
  void assign(const Tensor& source) const;

  const Layout& layout() const noexcept { return layout_; }

 private:
  const void* raw_data(DType asked, bool writable) const;

  std::shared_ptr<const Storage> storage_;  // keeps the memory alive; its bytes are not const
  void* data_ = nullptr;                    // the first element
  DType dtype_ = DType::f32;
  bool read_only_ = false;
  Layout layout_;  // offset is always 0: data_ carries it
  Labels labels_;
};

/// |a - b| <= atol + rtol * |b| everywhere, shapes and NaN positions equal. Never throws for
/// values.
bool allclose(const Tensor& a, const Tensor& b, double rtol = 1e-5, double atol = 1e-8);

/// Do the address ranges of the two views meet? No means that they share no element.
bool may_share_memory(const Tensor& a, const Tensor& b) noexcept;

/// Prints as NumPy prints: brackets, aligned columns, `...` beyond 1000 elements, precision 8.
std::ostream& operator<<(std::ostream& out, const Tensor& tensor);
std::string to_string(const Tensor& tensor);

}  // namespace einkern
