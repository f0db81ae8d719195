// SPDX-License-Identifier: Apache-2.0
// A short sequence kept inside the object: shapes, strides and axis lists without an allocation.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <iterator>
#include <memory>
#include <span>
#include <type_traits>
#include <vector>

namespace einkern {

/// A vector of trivially copyable elements whose first `N` live in the object itself.
/// Ranks above `N` move to the heap; there is no upper bound on the size.
template <class T, std::size_t N>
class SmallVector {
  static_assert(std::is_trivially_copyable_v<T>);

 public:
  using value_type = T;
  using iterator = T*;
  using const_iterator = const T*;

  // Not `= default`: that would let `SmallVector{}` set every element of inline_.
  SmallVector() noexcept {}  // NOLINT(modernize-use-equals-default)
  SmallVector(std::initializer_list<T> values) { assign(values.begin(), values.end()); }
  SmallVector(std::span<const T> values) { assign(values.begin(), values.end()); }
  SmallVector(const std::vector<T>& values) { assign(values.begin(), values.end()); }
  explicit SmallVector(std::size_t size, T value = T{}) { resize(size, value); }
  template <std::forward_iterator It>
  SmallVector(It first, It last) {
    assign(first, last);
  }
  SmallVector(const SmallVector& other) { assign(other.begin(), other.end()); }
  SmallVector(SmallVector&& other) noexcept { take(other); }
  SmallVector& operator=(const SmallVector& other) {
    if (this != &other) assign(other.begin(), other.end());
    return *this;
  }
  SmallVector& operator=(SmallVector&& other) noexcept {
    if (this != &other) take(other);
    return *this;
  }
  ~SmallVector() = default;

  template <std::forward_iterator It>
  void assign(It first, It last) {
    clear();
    reserve(static_cast<std::size_t>(std::distance(first, last)));
    for (; first != last; ++first) data()[size_++] = *first;
  }

  std::size_t size() const noexcept { return size_; }
  bool empty() const noexcept { return size_ == 0; }
  T* data() noexcept { return heap_ ? heap_.get() : inline_; }
  const T* data() const noexcept { return heap_ ? heap_.get() : inline_; }
  T* begin() noexcept { return data(); }
  T* end() noexcept { return data() + size_; }
  const T* begin() const noexcept { return data(); }
  const T* end() const noexcept { return data() + size_; }
  std::reverse_iterator<T*> rbegin() noexcept { return std::reverse_iterator(end()); }
  std::reverse_iterator<T*> rend() noexcept { return std::reverse_iterator(begin()); }
  std::reverse_iterator<const T*> rbegin() const noexcept { return std::reverse_iterator(end()); }
  std::reverse_iterator<const T*> rend() const noexcept { return std::reverse_iterator(begin()); }
  T& operator[](std::size_t i) noexcept { return data()[i]; }
  const T& operator[](std::size_t i) const noexcept { return data()[i]; }
  T& front() noexcept { return data()[0]; }
  const T& front() const noexcept { return data()[0]; }
  T& back() noexcept { return data()[size_ - 1]; }
  const T& back() const noexcept { return data()[size_ - 1]; }

  void clear() noexcept { size_ = 0; }
  void reserve(std::size_t capacity) {
    if (capacity <= capacity_) return;
    capacity = std::max(capacity, capacity_ * 2);
    auto grown = std::make_unique<T[]>(capacity);
    std::copy(begin(), end(), grown.get());
    heap_ = std::move(grown);
    capacity_ = capacity;
  }
  void push_back(T value) {
    reserve(size_ + 1);
    data()[size_++] = value;
  }
  void pop_back() noexcept { --size_; }
  void resize(std::size_t size, T value = T{}) {
    reserve(size);
    for (std::size_t i = size_; i < size; ++i) data()[i] = value;
    size_ = size;
  }
  void insert(std::size_t at, T value) {
    push_back(value);
    std::rotate(begin() + at, end() - 1, end());
  }
  /// Adds a range before `at`.
  template <std::forward_iterator It>
  void insert(const T* at, It first, It last) {
    const auto place = at - begin();
    const std::size_t before = size_;
    for (; first != last; ++first) push_back(*first);
    std::rotate(begin() + place, begin() + before, end());
  }
  void erase(std::size_t at) noexcept {
    std::copy(begin() + at + 1, end(), begin() + at);
    --size_;
  }

  operator std::span<const T>() const noexcept { return {data(), size_}; }
  friend bool operator==(const SmallVector& a, const SmallVector& b) noexcept {
    return std::equal(a.begin(), a.end(), b.begin(), b.end());
  }

 private:
  void take(SmallVector& other) noexcept {
    heap_ = std::move(other.heap_);
    capacity_ = other.capacity_;
    size_ = other.size_;
    if (!heap_) std::copy(other.inline_, other.inline_ + size_, inline_);
    other.size_ = 0;
    other.capacity_ = N;
  }

  std::unique_ptr<T[]> heap_;
  std::size_t capacity_ = N;
  std::size_t size_ = 0;
  T inline_[N];
};

}  // namespace einkern
