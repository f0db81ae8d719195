// SPDX-License-Identifier: Apache-2.0
// A search in what a program printed.
#pragma once

#include <string>

namespace einkern::test {

inline bool contains(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

}  // namespace einkern::test
