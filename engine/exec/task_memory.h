// SPDX-License-Identifier: Apache-2.0
// Memory that one task of a loop uses and gives back: aligned to a cache line, not initialised.
#pragma once

#include <cstddef>
#include <memory>
#include <new>

namespace einkern::exec {

class TaskMemory {
 public:
  explicit TaskMemory(std::size_t bytes)
      : data_(static_cast<std::byte*>(::operator new (bytes, std::align_val_t{kLine}))) {}

  std::byte* data() const noexcept { return data_.get(); }
  template <class T>
  T* as() const noexcept {
    return reinterpret_cast<T*>(data_.get());
  }

 private:
  static constexpr std::size_t kLine = 64;
  struct Release {
    void operator()(std::byte* data) const noexcept {
      ::operator delete (data, std::align_val_t{kLine});
    }
  };
  std::unique_ptr<std::byte, Release> data_;
};

}  // namespace einkern::exec
