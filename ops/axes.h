// SPDX-License-Identifier: Apache-2.0
// The axes a word works over: one label or number, or several in braces.
#pragma once

#include <concepts>
#include <initializer_list>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "../engine/tensor/tensor.h"

namespace einkern {

/// One axis (`"k"`, `-1`) or several (`{"q", "k"}`, `{0, 2}`), as arguments of words take them.
class Axes {
 public:
  template <class T>
  requires(!std::derived_from<T, Axes> && std::constructible_from<Axis, const T&>)
      Axes(const T& axis)
      : axes_{Axis(axis)} {}
  Axes(std::initializer_list<Axis> axes) : axes_(axes) {}
  Axes(std::vector<Axis> axes) : axes_(std::move(axes)) {}

  operator const std::vector<Axis>&() const noexcept { return axes_; }
  const std::vector<Axis>& get() const noexcept { return axes_; }

 private:
  std::vector<Axis> axes_;
};

}  // namespace einkern
