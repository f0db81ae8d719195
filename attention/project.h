// SPDX-License-Identifier: Apache-2.0
// Steps that all attention forms share: a checked projection, and the labels of a result.
#pragma once

#include <optional>
#include <string>

#include "../engine/graph/expr.h"

namespace einkern {

/// linear(x, w, bias), with an error that names the weight `name` of `function`.
Expr project(const char* function, const std::string& name, const Expr& x, const Expr& w,
             const std::optional<Expr>& bias = {});

/// `y` under the labels of `x`, except for the last axis, which is labelled `last`. The labels that
/// a formula uses inside do not leave it.
Expr labelled_as(const Expr& y, const Expr& x, const std::string& last);

}  // namespace einkern
