// SPDX-License-Identifier: Apache-2.0
// Tensors under names: look-up, and what is said when a name is missing.
#include "named_tensors.h"

#include <fmt/format.h>

#include "../../base/error.h"
#include "shown.h"

namespace einkern {

NamedTensors::NamedTensors(std::initializer_list<Entry> entries) {
  for (const Entry& entry : entries) add(entry.first, entry.second);
}

void NamedTensors::add(std::string name, Tensor tensor) {
  if (!places_.emplace(name, entries_.size()).second) {
    fail<ValueError>(fmt::format("NamedTensors: '{}' is there already", io::shown(name)));
  }
  entries_.emplace_back(std::move(name), std::move(tensor));
}

const Tensor& NamedTensors::operator[](std::string_view name) const {
  const auto place = places_.find(name);
  if (place == places_.end()) {
    const std::vector<std::string_view> names = [&] {
      std::vector<std::string_view> all;
      for (const Entry& entry : entries_) all.emplace_back(entry.first);
      return all;
    }();
    fail<ValueError>(fmt::format(
        "NamedTensors: no '{}'; {}", io::shown(name),
        names.empty() ? "there are no tensors" : "the names are " + io::shown_list(names)));
  }
  return entries_[place->second].second;
}

}  // namespace einkern
