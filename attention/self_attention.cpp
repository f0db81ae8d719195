// SPDX-License-Identifier: Apache-2.0
// Single-head self-attention, as its formula.
#include "self_attention.h"

#include <fmt/format.h>

#include "../engine/base/error.h"
#include "project.h"
#include "scaled.h"

namespace einkern {

Expr self_attention(const Expr& x, const Expr& wq, const Expr& wk, const Expr& wv,
                    const std::optional<Causal>& placed) {
  constexpr const char* kName = "self_attention";
  const Expr q = project(kName, "wq", x, wq);
  const Expr k = project(kName, "wk", x, wk);
  const Expr v = project(kName, "wv", x, wv);
  if (wq.shape()[1] != wk.shape()[1]) {
    fail<ShapeError>(fmt::format("{}: wq {} and wk {} project to different widths", kName,
                                 to_string(wq.shape()), to_string(wk.shape())));
  }
  return labelled_as(scaled_attention(q, k, v, placed), x, wv.labels()[1]);
}

}  // namespace einkern
