// SPDX-License-Identifier: Apache-2.0
// Names of axes: one per axis, empty where an axis has none. Cheap to copy and to share.
#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace einkern {

/// The labels of a tensor's axes, outermost first; a default-constructed one names no axis.
class Labels {
 public:
  Labels() = default;
  Labels(std::vector<std::string> names) {
    for (const std::string& name : names) {
      if (name.empty()) continue;
      names_ = std::make_shared<const std::vector<std::string>>(std::move(names));
      break;
    }
  }

  /// Is no axis named?
  bool empty() const noexcept { return names_ == nullptr; }
  /// Name of an axis, empty when it has none.
  const std::string& operator[](std::size_t axis) const noexcept {
    static const std::string kNone;
    return names_ && axis < names_->size() ? (*names_)[axis] : kNone;
  }
  /// All names for a given rank.
  std::vector<std::string> to_vector(std::size_t rank) const {
    std::vector<std::string> names(rank);
    for (std::size_t i = 0; i < rank; ++i) names[i] = (*this)[i];
    return names;
  }

 private:
  std::shared_ptr<const std::vector<std::string>> names_;
};

}  // namespace einkern
