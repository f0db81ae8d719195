// SPDX-License-Identifier: Apache-2.0
// Memory that begins on a cache line, as results of the engine do: only whole lines go around the
// caches.
#pragma once

#include <cstddef>
#include <new>

namespace einkern::test {

template <class T>
struct OnLines {
  using value_type = T;
  static constexpr std::align_val_t kLine{64};

  OnLines() = default;
  template <class U>
  explicit OnLines(const OnLines<U>& /*other*/) {}

  T* allocate(std::size_t n) { return static_cast<T*>(::operator new(n * sizeof(T), kLine)); }
  void deallocate(T* memory, std::size_t /*n*/) { ::operator delete(memory, kLine); }
  bool operator==(const OnLines& /*other*/) const { return true; }
};

}  // namespace einkern::test
