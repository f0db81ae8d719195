// SPDX-License-Identifier: Apache-2.0
// Label names to numbers, in order of first appearance.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>

namespace einkern {

/// Numbers for names; the caller says which number a new name gets. Names must outlive the map.
class LabelIds {
 public:
  static constexpr std::int32_t kNone = -1;

  LabelIds() { letters_.fill(kNone); }

  /// The number of a name, `kNone` when it has none. Assignable through the reference.
  std::int32_t& operator[](std::string_view name) {
    // Equations of single letters, nearly all there are, never allocate here.
    if (name.size() == 1) return letters_[static_cast<unsigned char>(name[0]) & 127];
    return others_.try_emplace(name, kNone).first->second;
  }

 private:
  std::array<std::int32_t, 128> letters_;  // one byte of UTF-8 is ASCII
  std::unordered_map<std::string_view, std::int32_t> others_;
};

}  // namespace einkern
