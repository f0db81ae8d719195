// SPDX-License-Identifier: Apache-2.0
// Texts of options to numbers, shapes and dtypes. Every function throws UsageError with the
// option's name in front.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "../engine/base/dtype.h"
#include "../engine/base/layout.h"
#include "../engine/plan/path.h"

namespace einkern::tools {

/// A whole number of at least `least`.
std::int64_t parse_integer(const std::string& option, std::string_view text, std::int64_t least);
/// A finite number.
double parse_number(const std::string& option, std::string_view text);
/// `2x3,3x4`; `-` is a scalar.
std::vector<Shape> parse_shapes(const std::string& option, std::string_view text);
/// `2x3`.
std::string shape_text(const Shape& shape);
/// f16, bf16, f32, f64 or i64.
DType parse_dtype(const std::string& option, std::string_view text);
/// Any dtype by its name.
DType parse_any_dtype(const std::string& option, std::string_view text);
/// auto, greedy, optimal or positions.
PathChoice parse_path_option(const std::string& option, std::string_view text);
/// 1 to 4096.
int parse_threads(const std::string& option, std::string_view text);
/// `4096`, `512K`, `64M`, `2G`, by powers of 1024.
std::int64_t parse_bytes(const std::string& option, std::string_view text);
/// The parts between separators; one empty part for an empty text.
std::vector<std::string_view> split_at(std::string_view text, char separator);

}  // namespace einkern::tools
