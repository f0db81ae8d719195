// SPDX-License-Identifier: Apache-2.0
// Scaled dot-product attention under the name of the function that the user called.
#pragma once

#include "options.h"

namespace einkern {

/// dot_product_attention; messages begin with `function`.
AttentionResult attend(const char* function, const Expr& q, const Expr& k, const Expr& v,
                       const AttentionOptions& options);

}  // namespace einkern
