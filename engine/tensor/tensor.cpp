// SPDX-License-Identifier: Apache-2.0
// A tensor's handle: axes looked up, elements read and written.
#include "tensor.h"

#include <fmt/format.h>

#include <cstddef>
#include <utility>

#include "../base/error.h"
#include "convert.h"
#include "create.h"
#include "nest.h"

namespace einkern {
namespace {

std::string quoted(const Labels& labels, std::size_t rank) {
  std::string list;
  for (std::size_t axis = 0; axis < rank; ++axis) {
    if (labels[axis].empty()) continue;
    list += fmt::format("{}'{}'", list.empty() ? "" : ", ", labels[axis]);
  }
  return list;
}

}  // namespace

std::size_t Axis::resolve(const char* function, std::size_t rank, const Labels& labels) const {
  if (!is_label()) {
    const auto signed_rank = static_cast<std::int64_t>(rank);
    if (number_ < -signed_rank || number_ >= signed_rank) {
      fail<ShapeError>(
          fmt::format("{}: axis {} is out of range for rank {}", function, number_, rank));
    }
    return static_cast<std::size_t>(number_ < 0 ? number_ + signed_rank : number_);
  }
  std::size_t found = rank;
  for (std::size_t axis = 0; axis < rank; ++axis) {
    if (labels[axis].empty() || labels[axis] != *label_) continue;
    if (found != rank) {
      fail<ShapeError>(fmt::format("{}: label '{}' names both axis {} and axis {}", function,
                                   *label_, found, axis));
    }
    found = axis;
  }
  if (found != rank) return found;
  const std::string known = quoted(labels, rank);
  if (known.empty()) {
    fail<ShapeError>(fmt::format("{}: no axis '{}': the axes have no labels", function, *label_));
  }
  fail<ShapeError>(fmt::format("{}: no axis '{}' among {}", function, *label_, known));
}

Tensor::Tensor() : Tensor(zeros({})) {}

Tensor::Tensor(std::shared_ptr<const Storage> storage, void* data, DType dtype, Layout layout,
               bool read_only, Labels labels)
    : storage_(std::move(storage)),
      data_(static_cast<std::byte*>(data) +
            layout.offset * static_cast<std::int64_t>(size_of(dtype))),
      dtype_(dtype),
      read_only_(read_only),
      layout_(std::move(layout)),
      labels_(std::move(labels)) {
  layout_.offset = 0;
}

std::int64_t Tensor::shape(const Axis& axis) const {
  return layout_.shape[axis.resolve("shape", rank(), labels_)];
}

std::int64_t Tensor::size() const { return element_count(layout_.shape, "size"); }

const void* Tensor::raw_data(DType asked, bool writable) const {
  if (asked != dtype_) {
    fail<TypeError>(
        fmt::format("data: asked for {} but the tensor holds {}", name_of(asked), name_of(dtype_)));
  }
  return writable ? mutable_bytes("data") : data_;
}

void* Tensor::mutable_bytes(const char* function) const {
  if (read_only_) fail<ValueError>(fmt::format("{}: the tensor is read-only", function));
  return data_;
}

template <Element T>
T Tensor::item() const {
  if (size() != 1) {
    fail<ShapeError>(
        fmt::format("item: shape {} has {} elements, not one", to_string(shape()), size()));
  }
  return dispatch(dtype_, [&]<class From>(std::type_identity<From>) {
    return convert<T>(load(static_cast<const From*>(data_)), "item");
  });
}

void Tensor::fill(double value) const {
  void* const data = mutable_bytes("fill");
  const Nest<1> nest(shape(), {&strides()});
  dispatch(dtype_, [&]<class T>(std::type_identity<T>) {
    const T element = convert<T>(value, "fill");
    nest.for_each_row([&](std::int64_t count, const auto& offsets, const auto& steps) {
      T* const row = static_cast<T*>(data) + offsets[0];
      if (steps[0] == 1) {
        std::fill_n(row, count, element);
      } else {
        for (std::int64_t i = 0; i < count; ++i) row[i * steps[0]] = element;
      }
    });
  });
}

Tensor Tensor::astype(DType dtype) const {
  Tensor result = empty(shape(), dtype);
  convert_elements("astype", shape(), {data_, dtype_, strides()},
                   {result.data_, dtype, result.strides()});
  return result.with_labels(labels_);
}

Tensor Tensor::copy() const { return astype(dtype_); }

template <Element T>
std::vector<T> Tensor::to_vector() const {
  std::vector<T> values(static_cast<std::size_t>(size()));
  const Dims order = contiguous_strides(shape());
  if constexpr (std::is_same_v<T, bool>) {
    // std::vector<bool> has no array of elements to write into.
    const Tensor bools = astype(boolean);
    std::copy_n(static_cast<const bool*>(bools.bytes()), values.size(), values.begin());
  } else {
    convert_elements("to_vector", shape(), {data_, dtype_, strides()},
                     {values.data(), dtype_of<T>, order});
  }
  return values;
}

void Tensor::assign(const Tensor& source) const {
  void* const data = mutable_bytes("assign");
  if (source.shape() != shape()) {
    fail<ShapeError>(fmt::format("assign: source has shape {} but the view has {}",
                                 to_string(source.shape()), to_string(shape())));
  }
  Tensor from = source;
  if (may_fail(source.dtype_, dtype_)) {
    // A value that does not fit must not leave the view half written.
    from = empty(shape(), dtype_);
    convert_elements("assign", shape(), {source.data_, source.dtype_, source.strides()},
                     {from.data_, dtype_, from.strides()});
  } else if (may_share_memory(*this, source)) {
    from = source.copy();
  }
  convert_elements("assign", shape(), {from.data_, from.dtype_, from.strides()},
                   {data, dtype_, strides()});
}

bool may_share_memory(const Tensor& a, const Tensor& b) noexcept {
  const auto extent = [](const Tensor& tensor) {
    const auto [first, last] = touched(tensor.layout());
    const auto* const origin = static_cast<const std::byte*>(tensor.bytes());
    const auto bytes = static_cast<std::int64_t>(size_of(tensor.dtype()));
    return std::pair(origin + first * bytes, origin + (last + 1) * bytes);
  };
  const auto [a_begin, a_end] = extent(a);
  const auto [b_begin, b_end] = extent(b);
  return a_begin < b_end && b_begin < a_end && a_begin < a_end && b_begin < b_end;
}

template bool Tensor::item() const;
template char Tensor::item() const;
template signed char Tensor::item() const;
template short Tensor::item() const;
template int Tensor::item() const;
template long Tensor::item() const;
template long long Tensor::item() const;
template Float16 Tensor::item() const;
template BFloat16 Tensor::item() const;
template float Tensor::item() const;
template double Tensor::item() const;

template std::vector<bool> Tensor::to_vector() const;
template std::vector<char> Tensor::to_vector() const;
template std::vector<signed char> Tensor::to_vector() const;
template std::vector<short> Tensor::to_vector() const;
template std::vector<int> Tensor::to_vector() const;
template std::vector<long> Tensor::to_vector() const;
template std::vector<long long> Tensor::to_vector() const;
template std::vector<Float16> Tensor::to_vector() const;
template std::vector<BFloat16> Tensor::to_vector() const;
template std::vector<float> Tensor::to_vector() const;
template std::vector<double> Tensor::to_vector() const;

}  // namespace einkern
