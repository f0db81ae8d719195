// SPDX-License-Identifier: Apache-2.0
// Linear biases, as their formula.
#include "alibi.h"

#include <fmt/format.h>

#include <bit>
#include <cmath>

#include "../engine/base/error.h"
#include "../engine/tensor/create.h"
#include "../ops/ops.h"
#include "attend.h"
#include "visibility.h"

namespace einkern {

Tensor alibi_slopes(std::int64_t heads, DType dtype) {
  if (heads < 1) fail<ValueError>(fmt::format("alibi_slopes: {} heads", heads));
  const auto power = static_cast<std::int64_t>(std::bit_floor(static_cast<std::uint64_t>(heads)));
  const Tensor slopes = empty({heads}, f64);
  for (std::int64_t i = 0; i < heads; ++i) {
    const auto place = static_cast<double>(i < power ? 2 * (i + 1) : 2 * (i - power) + 1);
    slopes.data<double>()[i] = std::exp2(-4 * place / static_cast<double>(power));
  }
  return slopes.astype(dtype);
}

AttentionResult alibi_attention(const Expr& q, const Expr& k, const Expr& v, const Expr& slopes,
                                const AttentionOptions& options) {
  constexpr const char* kName = "alibi_attention";
  refuse_weights(kName, options);
  const std::int64_t heads = q.rank() < 3 ? 1 : q.shape()[q.rank() - 3];
  if (slopes.rank() != 1 || slopes.shape()[0] != heads) {
    fail<ShapeError>(fmt::format("{}: slopes {} for {} heads of q {}", kName,
                                 to_string(slopes.shape()), heads, to_string(q.shape())));
  }
  // Without a head axis there is one head, whose slope has no axis to meet.
  const Expr slope = q.rank() < 3 ? einsum("h->", slopes) : slopes["h"];
  return attend(kName, q, k, v, options, {bias(slope * (index("k") - index("q")))});
}

}  // namespace einkern
