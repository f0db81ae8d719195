// SPDX-License-Identifier: Apache-2.0
// Multi-head self-attention from one fused weight, as its formula.
#include "multihead_vec.h"

#include <fmt/format.h>

#include "../engine/base/error.h"
#include "../ops/shape.h"
#include "project.h"
#include "scaled.h"

namespace einkern {

Expr multihead_attention_vec(const Expr& x, const Expr& wqkv, const Expr& wp, std::int64_t heads,
                             const std::optional<Causal>& placed) {
  constexpr const char* kName = "multihead_attention_vec";
  const Expr qkv = unnamed(project(kName, "wqkv", x, wqkv));
  const std::int64_t m = wqkv.shape()[1] / 3;
  if (wqkv.shape()[1] % 3 != 0) {
    fail<ShapeError>(fmt::format("{}: wqkv {} does not hold three weights of one width", kName,
                                 to_string(wqkv.shape())));
  }
  if (heads < 1 || m % heads != 0) {
    fail<ValueError>(fmt::format("{}: {} heads do not divide a width of {}", kName, heads, m));
  }
  const auto part = [&](std::int64_t i) {  // (..., n, m) to (..., h, n, d)
    const Expr whole = slice(qkv, -1, i * m, (i + 1) * m);
    return permute(split(whole, -1, {"h", "d"}, {heads, m / heads}), "...nhd->...hnd");
  };
  const Expr z = scaled_attention(part(0), part(1), part(2), placed);
  const Expr merged = merge(permute(z, "...hqd->...qhd"), {-2, -1});
  return labelled_as(project(kName, "wp", merged, wp), x, wp.labels()[1]);
}

}  // namespace einkern
