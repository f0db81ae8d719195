// SPDX-License-Identifier: Apache-2.0
// What rows of attention share: parameters for AttentionOptions, and the tables by family.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "../engine/program/words.h"
#include "../ops/norm.h"
#include "options.h"

namespace einkern {

/// The one list behind the other.
std::vector<Parameter> with(std::vector<Parameter> first, std::vector<Parameter> more);

/// `causal` of the forms that take no other option.
Parameter placed();

/// Members of AttentionOptions that say what is visible and how scores are made, all of them by
/// name; `prefix` in front of the names.
std::vector<Parameter> options_of_scores(const std::string& prefix = "");
AttentionOptions scores_of(const Arguments& arguments, const char* function,
                           const std::string& prefix = "");
/// The same behind the numbers of heads.
std::vector<Parameter> options_of_attention();
/// Those members as they are given. Errors: ValueError, beginning with `function`, for segments, a
/// window or a placement that is none.
AttentionOptions options_of(const Arguments& arguments, const char* function);

/// The weight and the bias of a norm under these names, and `eps`.
NormOptions norm_of(const Arguments& arguments, const std::string& weight, const std::string& bias);

/// Weights and biases of projections, all by name; `prefix` in front of the names.
std::vector<Parameter> weights_of_projections(const std::string& prefix = "");
/// Puts them into options.
void take_weights(const Arguments& arguments, AttentionOptions& options,
                  const std::string& prefix = "");

/// `.output`, `.weights`, `.logsumexp`.
Value record(const AttentionResult& result);

/// Which of the names a parameter with choices has. Errors: ValueError that lists them.
std::size_t chosen(const Arguments& arguments, const char* function, const char* name,
                   const std::vector<const char*>& names);

/// Rows of functions that attend in another way than dot_product_attention.
WordTable variant_words();
/// Rows of feed-forward layers and blocks.
WordTable module_words();
/// Rows of predicates and biases over positions.
WordTable pattern_words();

}  // namespace einkern
