// SPDX-License-Identifier: Apache-2.0
// Random strided views with memory of their own, and steps run over them.
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <numeric>
#include <random>
#include <type_traits>
#include <vector>

#include "../../../engine/exec/frame.h"

namespace einkern::test {

/// Memory of a view: bool as bytes, so that it can be pointed to.
template <class T>
using Stored = std::conditional_t<std::is_same_v<T, bool>, std::uint8_t, T>;

/// A view of `shape` in memory with a guard element on either side of it.
template <class T>
struct View {
  Layout layout;
  std::vector<Stored<T>> memory;

  static constexpr Stored<T> kUntouched = static_cast<Stored<T>>(85);

  /// C order without gaps.
  explicit View(const Dims& shape) : layout(contiguous(shape)) { allocate(); }
  /// Axes in random order, some reversed, gaps between some; with `broadcast` some strides are 0.
  View(const Dims& shape, std::mt19937& random, bool broadcast) : layout(contiguous(shape)) {
    std::vector<std::size_t> order(shape.size());
    std::iota(order.begin(), order.end(), std::size_t{0});
    if (random() % 4 != 0) std::shuffle(order.begin(), order.end(), random);
    std::int64_t stride = random() % 4 == 0 ? 2 : 1;
    for (const std::size_t axis : order) {
      if (broadcast && random() % 4 == 0) {
        layout.strides[axis] = 0;
        continue;
      }
      layout.strides[axis] = random() % 5 == 0 ? -stride : stride;
      stride *= std::max<std::int64_t>(shape[axis], 1);
      if (random() % 4 == 0) stride += 3;
    }
    allocate();
  }

  /// Element of a C-order position.
  Stored<T>& operator[](std::int64_t position) {
    std::int64_t at = layout.offset;
    for (std::size_t axis = layout.rank(); axis-- > 0;) {
      at += position % layout.shape[axis] * layout.strides[axis];
      position /= layout.shape[axis];
    }
    return memory[static_cast<std::size_t>(at)];
  }
  std::int64_t size() const { return element_count(layout.shape); }
  plan::Operand operand(plan::ValueId value) const { return {value, dtype_of<T>, layout}; }
  std::byte* bytes() { return reinterpret_cast<std::byte*>(memory.data()); }
  std::vector<T> elements() {
    std::vector<T> all;
    for (std::int64_t i = 0; i < size(); ++i) all.push_back(static_cast<T>((*this)[i]));
    return all;
  }
  /// Was nothing between and around the elements written?
  bool gaps_untouched() {
    std::vector<Stored<T>> rest = memory;
    rest.swap(memory);
    for (std::int64_t i = 0; i < size(); ++i) (*this)[i] = kUntouched;
    rest.swap(memory);
    return std::all_of(rest.begin(), rest.end(), [](auto x) { return x == kUntouched; });
  }
  template <class Make>
  View& fill(Make&& make) {
    for (auto& element : memory) element = static_cast<Stored<T>>(make());
    return *this;
  }

 private:
  void allocate() {
    const Range range = touched(layout);
    layout.offset = 2 - range.first;
    memory.assign(static_cast<std::size_t>(range.last - range.first + 5), kUntouched);
  }
};

/// Runs a step over values given by their first elements.
template <class Step>
void run_step(const Step& step, const std::vector<std::byte*>& values,
              const kernel::Kernels& kernels, std::vector<map::Scalar> scalars = {}) {
  exec::run(step, exec::Frame{values, scalars, kernels});
}

template <class T>
bool same_bits(const std::vector<T>& a, const std::vector<T>& b) {
  return a.size() == b.size() && std::memcmp(a.data(), b.data(), a.size() * sizeof(T)) == 0;
}

/// A shape of up to `rank` axes; sizes of 0 and 1 occur.
inline Dims random_shape(std::mt19937& random, std::size_t rank, std::int64_t most) {
  Dims shape(random() % (rank + 1), 1);
  for (std::int64_t& size : shape) {
    size = random() % 12 == 0 ? static_cast<std::int64_t>(random() % 2)
                              : 1 + static_cast<std::int64_t>(random()) % most;
  }
  return shape;
}

inline double uniform(std::mt19937& random, double from, double to) {
  return std::uniform_real_distribution<double>(from, to)(random);
}

}  // namespace einkern::test
