// SPDX-License-Identifier: Apache-2.0
// Arrays for kernels that ask for aligned data.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <new>
#include <random>

namespace einkern::test {

/// Elements that begin on a cache line, and one more than asked, so that a kernel may be given a
/// misaligned start.
template <class T>
class AlignedArray {
 public:
  explicit AlignedArray(std::int64_t n, T value = T(0))
      : data_(static_cast<T*>(
            ::operator new (static_cast<std::size_t>(n + 1) * sizeof(T), std::align_val_t{64}))),
        size_(n) {
    std::fill_n(data_.get(), n, value);
  }
  /// Uniform values of at most this size.
  void randomise(std::mt19937& random, double most = 1) {
    std::uniform_real_distribution<double> uniform(-most, most);
    for (std::int64_t i = 0; i < size_; ++i) data_.get()[i] = static_cast<T>(uniform(random));
  }
  std::int64_t size() const { return size_; }
  T* data() { return data_.get(); }
  T& operator[](std::int64_t i) { return data_.get()[i]; }

 private:
  struct Release {
    void operator()(T* data) const { ::operator delete (data, std::align_val_t{64}); }
  };
  std::unique_ptr<T, Release> data_;
  std::int64_t size_;
};

}  // namespace einkern::test
