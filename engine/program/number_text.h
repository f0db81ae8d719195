// SPDX-License-Identifier: Apache-2.0
// Numbers of a program as text and back, each the shortest that reads back to the same value.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace einkern::program {

/// Reads an unsigned number. True when it is an integer that 64 bits hold; else `number` is set
/// (infinite when no double holds it).
bool read_number(std::string_view text, std::int64_t& integer, double& number);

/// `0.5`, `1e-5`, `3.0`: never the text of an integer.
std::string number_text(double number);

}  // namespace einkern::program
