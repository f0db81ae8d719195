// SPDX-License-Identifier: Apache-2.0
// Memory that ends where no memory is: a read behind it ends the test, in every build.
#pragma once

#include <sys/mman.h>

#include <cstddef>
#include <new>

namespace einkern::test {

template <class T>
struct Guarded {
  using value_type = T;

  Guarded() = default;
  template <class U>
  Guarded(const Guarded<U>&) noexcept {}

  T* allocate(std::size_t count) {
    const std::size_t size = pages(count);
    void* const memory = mmap(nullptr, size + kPage, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED) throw std::bad_alloc();
    if (size > 0 && mprotect(memory, size, PROT_READ | PROT_WRITE) != 0) throw std::bad_alloc();
    return reinterpret_cast<T*>(static_cast<std::byte*>(memory) + size) - count;
  }
  void deallocate(T* data, std::size_t count) noexcept {
    const std::size_t size = pages(count);
    munmap(reinterpret_cast<std::byte*>(data + count) - size, size + kPage);
  }
  template <class U>
  friend bool operator==(const Guarded&, const Guarded<U>&) noexcept {
    return true;
  }

 private:
  static constexpr std::size_t kPage = std::size_t{64} << 10;  // of any processor, and whole ones

  static std::size_t pages(std::size_t count) noexcept {
    return (count * sizeof(T) + kPage - 1) / kPage * kPage;
  }
};

}  // namespace einkern::test
