// SPDX-License-Identifier: Apache-2.0
// How these tests write down an expected message: the fact, the text and the carets.
#pragma once

#include <string>
#include <string_view>

namespace einkern::test {

/// `einsum: <fact>`, the text as shown and the line of carets.
inline std::string message(std::string_view fact, std::string_view shown, std::string_view carets,
                           std::string_view function = "einsum") {
  std::string text(function);
  text += ": ";
  text += fact;
  text += "\n    ";
  text += shown;
  text += "\n    ";
  text += carets;
  return text;
}

}  // namespace einkern::test
