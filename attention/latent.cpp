// SPDX-License-Identifier: Apache-2.0
// Multi-head latent attention in both orders, as its formulas.
#include "latent.h"

#include <fmt/format.h>

#include <cmath>
#include <string>

#include "../engine/base/error.h"
#include "../engine/graph/build.h"
#include "../ops/ops.h"
#include "attend.h"
#include "visibility.h"

namespace einkern {
namespace {

constexpr const char* kLatent = "latent_attention";

void check(const Latent& x) {
  const std::size_t rank = x.q_nope.rank();
  const auto fits = [](bool holds, const char* first, const Expr& a, const char* second,
                       const Expr& b) {
    if (!holds) {
      fail<ShapeError>(fmt::format("{}: {} {} and {} {} disagree", kLatent, first,
                                   to_string(a.shape()), second, to_string(b.shape())));
    }
  };
  const auto size = [](const Expr& e, std::size_t from_right) {
    return e.shape()[e.rank() - from_right];
  };
  if (rank < 3) {
    fail<ShapeError>(fmt::format("{}: q_nope {} needs heads, positions and features", kLatent,
                                 to_string(x.q_nope.shape())));
  }
  fits(x.q_rope.rank() == rank && size(x.q_rope, 3) == size(x.q_nope, 3) &&
           size(x.q_rope, 2) == size(x.q_nope, 2),
       "q_nope", x.q_nope, "q_rope", x.q_rope);
  fits(x.c.rank() + 1 == rank, "q_nope", x.q_nope, "c", x.c);
  fits(x.k_rope.rank() == x.c.rank() && size(x.k_rope, 2) == size(x.c, 2), "c", x.c, "k_rope",
       x.k_rope);
  fits(size(x.k_rope, 1) == size(x.q_rope, 1), "q_rope", x.q_rope, "k_rope", x.k_rope);
  fits(x.w_uk.rank() == 3 && x.w_uk.shape()[0] == size(x.q_nope, 3) &&
           x.w_uk.shape()[2] == size(x.q_nope, 1),
       "q_nope", x.q_nope, "w_uk", x.w_uk);
  fits(x.w_uk.shape()[1] == size(x.c, 1), "c", x.c, "w_uk", x.w_uk);
  fits(x.w_uv.rank() == 3 && x.w_uv.shape()[0] == size(x.q_nope, 3) &&
           x.w_uv.shape()[1] == size(x.c, 1),
       "c", x.c, "w_uv", x.w_uv);
}

/// One key or value for all heads: (..., k, c) as (..., 1, k, c).
Expr shared(const Expr& x) { return graph::expand(kLatent, x, x.rank() - 2, "", 1); }

}  // namespace

AttentionResult latent_attention(const Latent& given, LatentOrder order,
                                 const AttentionOptions& options) {
  refuse_weights(kLatent, options);
  check(given);
  const Latent x{unnamed(given.q_nope), unnamed(given.q_rope), unnamed(given.c),
                 unnamed(given.k_rope), unnamed(given.w_uk),   unnamed(given.w_uv)};
  AttentionOptions scaled = options;
  if (!options.scale) {
    scaled.scale =
        1 / std::sqrt(static_cast<double>(x.q_nope.shape().back() + x.q_rope.shape().back()));
  }
  if (order == LatentOrder::absorbed) {
    const Expr q = concat({einsum("...hqd,hcd->...hqc", x.q_nope, x.w_uk), x.q_rope}, -1);
    const Expr k = shared(concat({x.c, x.k_rope}, -1));
    const AttentionResult r = attend(kLatent, q, k, shared(x.c), scaled);
    return {einsum("...hqc,hce->...hqe", r.output, x.w_uv), r.weights, r.logsumexp};
  }
  const std::int64_t heads = x.w_uk.shape()[0];
  const Expr turned = graph::expand(kLatent, x.k_rope, x.k_rope.rank() - 2, "", heads);
  const Expr k = concat({einsum("...kc,hcd->...hkd", x.c, x.w_uk), turned}, -1);
  const Expr v = einsum("...kc,hce->...hke", x.c, x.w_uv);
  return attend(kLatent, concat({x.q_nope, x.q_rope}, -1), k, v, scaled);
}

}  // namespace einkern
