// SPDX-License-Identifier: Apache-2.0
// Texts of options to numbers, shapes and dtypes.
#include "values.h"

#include <fmt/format.h>

#include <charconv>
#include <cmath>
#include <limits>
#include <optional>

#include "../engine/base/error.h"
#include "exit_code.h"

namespace einkern::tools {
namespace {

template <class T>
std::optional<T> number_from(std::string_view text) {
  T value = {};
  const char* const end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, value);
  if (error != std::errc{} || stop != end) return {};
  return value;
}

}  // namespace

std::vector<std::string_view> split_at(std::string_view text, char separator) {
  std::vector<std::string_view> parts;
  while (true) {
    const std::size_t end = text.find(separator);
    parts.push_back(text.substr(0, end));
    if (end == text.npos) return parts;
    text.remove_prefix(end + 1);
  }
}

std::int64_t parse_integer(const std::string& option, std::string_view text, std::int64_t least) {
  const auto value = number_from<std::int64_t>(text);
  if (!value || *value < least) {
    const std::string range =
        least == std::numeric_limits<std::int64_t>::min() ? "" : fmt::format(" from {} up", least);
    throw UsageError(fmt::format("{}: '{}' is no whole number{}", option, text, range));
  }
  return *value;
}

double parse_number(const std::string& option, std::string_view text) {
  const auto value = number_from<double>(text);
  if (!value || !std::isfinite(*value)) {
    throw UsageError(fmt::format("{}: '{}' is no finite number", option, text));
  }
  return *value;
}

std::vector<Shape> parse_shapes(const std::string& option, std::string_view text) {
  std::vector<Shape> shapes;
  for (const std::string_view part : split_at(text, ',')) {
    Shape shape;
    if (part != "-") {
      for (const std::string_view size : split_at(part, 'x')) {
        const auto value = number_from<std::int64_t>(size);
        if (!value || *value < 0) {
          throw UsageError(fmt::format(
              "{}: '{}' is no shape; shapes look like 2x3,3x4 and a scalar is -", option, part));
        }
        shape.push_back(*value);
      }
    }
    shapes.push_back(shape);
  }
  return shapes;
}

std::string shape_text(const Shape& shape) {
  return shape.empty() ? "-" : fmt::format("{}", fmt::join(shape, "x"));
}

DType parse_dtype(const std::string& option, std::string_view text) {
  for (const DType dtype : {f16, bf16, f32, f64, i64}) {
    if (text == name_of(dtype)) return dtype;
  }
  throw UsageError(
      fmt::format("{}: unknown dtype '{}'; choices: f16, bf16, f32, f64, i64", option, text));
}

DType parse_any_dtype(const std::string& option, std::string_view text) {
  std::string choices;
  for (const DType dtype : {boolean, i8, i16, i32, i64, f16, bf16, f32, f64}) {
    if (text == name_of(dtype)) return dtype;
    choices += fmt::format("{}{}", choices.empty() ? "" : ", ", name_of(dtype));
  }
  throw UsageError(fmt::format("{}: unknown dtype '{}'; choices: {}", option, text, choices));
}

PathChoice parse_path_option(const std::string& option, std::string_view text) {
  try {
    return parse_path(text);
  } catch (const ValueError&) {
    throw UsageError(fmt::format(
        "{}: unknown path '{}'; choices: auto, optimal, greedy, or positions such as 0,1;0,1",
        option, text));
  }
}

int parse_threads(const std::string& option, std::string_view text) {
  const auto value = number_from<int>(text);
  if (!value || *value < 1 || *value > 4096) {
    throw UsageError(fmt::format("{}: '{}' is no number from 1 to 4096", option, text));
  }
  return *value;
}

std::int64_t parse_bytes(const std::string& option, std::string_view text) {
  int shift = 0;
  std::string_view digits = text;
  if (!digits.empty()) {
    const std::size_t unit = std::string_view("KMGT").find(digits.back());
    if (unit != std::string_view::npos) {
      shift = 10 * (static_cast<int>(unit) + 1);
      digits.remove_suffix(1);
    }
  }
  const auto value = number_from<std::int64_t>(digits);
  if (!value || *value < 0 || *value > (std::numeric_limits<std::int64_t>::max() >> shift)) {
    throw UsageError(fmt::format("{}: '{}' is no number of bytes; they look like 4096, 512M or 2G",
                                 option, text));
  }
  return *value << shift;
}

}  // namespace einkern::tools
