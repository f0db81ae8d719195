// SPDX-License-Identifier: Apache-2.0
// Contractions of a few rows or columns with a large operand that is best read where it lies.
#pragma once

#include <cstdint>

#include "../base/machine.h"
#include "step.h"

namespace einkern::plan {

/// How rows of the larger operand of a contraction run in memory: along the sum, so that products
/// are dots of them, or along the result, so that they are weighted sums of them.
enum class SkinnyForm : std::uint8_t { none, dots, sums };

/// Is it b that is larger (and `m` that has few positions)?
bool few_rows(const Contract& contract) noexcept;

/// A matter of strides alone; `none` where the larger operand would have to be packed.
SkinnyForm skinny_form(const Contract& contract) noexcept;

/// Does reading the larger operand where it lies pay? A matter of sizes and strides.
bool is_skinny(const Contract& contract, const Target& target) noexcept;

}  // namespace einkern::plan
