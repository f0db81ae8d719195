// SPDX-License-Identifier: Apache-2.0
// Tensors under names: what archives of tensors hold.
#pragma once

#include <cstddef>
#include <functional>
#include <initializer_list>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "../tensor.h"

namespace einkern {

/// Tensors in the order they were added, each under a name of its own.
class NamedTensors {
 public:
  using Entry = std::pair<std::string, Tensor>;

  NamedTensors() = default;
  NamedTensors(std::initializer_list<Entry> entries);

  /// ValueError for a name that is there already.
  void add(std::string name, Tensor tensor);

  bool contains(std::string_view name) const { return places_.find(name) != places_.end(); }
  /// ValueError that lists the names when this one is not among them.
  const Tensor& operator[](std::string_view name) const;

  std::size_t size() const noexcept { return entries_.size(); }
  bool empty() const noexcept { return entries_.empty(); }
  std::vector<Entry>::const_iterator begin() const noexcept { return entries_.begin(); }
  std::vector<Entry>::const_iterator end() const noexcept { return entries_.end(); }

 private:
  std::vector<Entry> entries_;
  std::map<std::string, std::size_t, std::less<>> places_;
};

}  // namespace einkern
