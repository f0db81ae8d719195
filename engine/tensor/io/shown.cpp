// SPDX-License-Identifier: Apache-2.0
// Text from files, fit for a message: no control characters, no end of it.
#include "shown.h"

#include <fmt/format.h>

#include <algorithm>

namespace einkern::io {

std::string shown(std::string_view text) {
  text = text.substr(0, text.find_last_not_of(" \n") + 1);
  std::string result(text.substr(0, 100));
  std::replace_if(
      result.begin(), result.end(), [](char c) { return c < 0x20 || c > 0x7e; }, '?');
  return text.size() > 100 ? result + "..." : result;
}

std::string shown_list(std::span<const std::string_view> names) {
  constexpr std::size_t kMost = 20;
  std::string list;
  for (std::size_t i = 0; i < std::min(names.size(), kMost); ++i) {
    list += fmt::format("{}'{}'", i == 0 ? "" : ", ", shown(names[i]));
  }
  if (names.size() > kMost) list += fmt::format(", ... ({} in all)", names.size());
  return list;
}

}  // namespace einkern::io
