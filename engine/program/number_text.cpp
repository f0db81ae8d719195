// SPDX-License-Identifier: Apache-2.0
// Numbers of a program as text and back.
#include "number_text.h"

#include <fmt/format.h>

#include <charconv>
#include <limits>

namespace einkern::program {

bool read_number(std::string_view text, std::int64_t& integer, double& number) {
  const char* const end = text.data() + text.size();
  const auto whole = std::from_chars(text.data(), end, integer);
  if (whole.ec == std::errc{} && whole.ptr == end) return true;
  integer = 0;
  const auto real = std::from_chars(text.data(), end, number);
  if (real.ec == std::errc::result_out_of_range) {
    // Too small is 0, too large infinite: the exponent's sign tells.
    const auto mark = text.find_first_of("eE");
    const bool small = mark != text.npos && mark + 1 < text.size() && text[mark + 1] == '-';
    number = small ? 0 : std::numeric_limits<double>::infinity();
  }
  return false;
}

std::string number_text(double number) {
  std::string text = fmt::format("{}", number);
  if (text.find_first_not_of("0123456789-") == text.npos) text += ".0";
  // `1e-05` and `1e+20` as people write them.
  if (const auto mark = text.find('e'); mark != text.npos) {
    if (text[mark + 1] == '+') text.erase(mark + 1, 1);
    const std::size_t digits = mark + 1 + (text[mark + 1] == '-' ? 1 : 0);
    while (text[digits] == '0' && digits + 1 < text.size()) text.erase(digits, 1);
  }
  return text;
}

}  // namespace einkern::program
