// SPDX-License-Identifier: Apache-2.0
// What rows of attention share: parameters for AttentionOptions, and the tables by family.
#pragma once

#include <cstddef>
#include <vector>

#include "../engine/program/words.h"
#include "options.h"

namespace einkern {

/// The one list behind the other.
std::vector<Parameter> with(std::vector<Parameter> first, std::vector<Parameter> more);

/// `causal` of the forms that take no other option.
Parameter placed();

/// Members of AttentionOptions but for weights, all of them by name: numbers of heads, what is
/// visible, how scores are made.
std::vector<Parameter> options_of_attention();
/// Those members as they are given. Errors: ValueError, beginning with `function`, for segments, a
/// window or a placement that is none.
AttentionOptions options_of(const Arguments& arguments, const char* function);

/// `.output`, `.weights`, `.logsumexp`.
Value record(const AttentionResult& result);

/// Which of the names a parameter with choices has. Errors: ValueError that lists them.
std::size_t chosen(const Arguments& arguments, const char* function, const char* name,
                   const std::vector<const char*>& names);

/// Rows of functions that attend in another way than dot_product_attention.
WordTable variant_words();
/// Rows of predicates and biases over positions.
WordTable pattern_words();

}  // namespace einkern
