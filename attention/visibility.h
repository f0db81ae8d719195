// SPDX-License-Identifier: Apache-2.0
// Options of attention as masks and sinks over scores labelled b, h, q, k.
#pragma once

#include <optional>
#include <vector>

#include "options.h"

namespace einkern {

/// What hides keys from queries, and the bias, as arguments of `mask(s, ...)`; checked against `s`.
/// ShapeError or TypeError naming the option, `function` and both shapes.
std::vector<Mask> visibility(const char* function, const Expr& s, const AttentionOptions& options);

/// The sink logits as a term that aligns with the rows of `s`.
std::optional<Expr> sink_term(const char* function, const Expr& s, const AttentionOptions& options);

/// ValueError when an option that only the multihead forms can use is given.
void refuse_weights(const char* function, const AttentionOptions& options);
/// ValueError when an option is given that says how scores are made or what is visible.
void refuse_scoring(const char* function, const AttentionOptions& options);

}  // namespace einkern
