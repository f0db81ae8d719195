// SPDX-License-Identifier: Apache-2.0
// Talking heads, as their formula.
#include "talking_heads.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "../engine/base/error.h"
#include "../engine/graph/build.h"
#include "../ops/ops.h"
#include "project.h"
#include "visibility.h"

namespace einkern {
namespace {

constexpr const char* kTalkingHeads = "talking_heads_attention";

void check(const Expr& q, const Expr& k, const Expr& v, const Expr& w_scores,
           const Expr& w_weights) {
  const auto refuse = [](const char* first, const Expr& a, const char* second, const Expr& b) {
    fail<ShapeError>(fmt::format("{}: {} {} and {} {} disagree", kTalkingHeads, first,
                                 to_string(a.shape()), second, to_string(b.shape())));
  };
  const auto size = [](const Expr& e, std::size_t from_right) {
    return e.shape()[e.rank() - from_right];
  };
  if (q.rank() < 3) {
    fail<ShapeError>(fmt::format("{}: q {} needs heads, positions and features", kTalkingHeads,
                                 to_string(q.shape())));
  }
  if (k.rank() != q.rank() || size(k, 3) != size(q, 3) || size(k, 1) != size(q, 1)) {
    refuse("q", q, "k", k);
  }
  if (v.rank() != q.rank() || size(v, 2) != size(k, 2)) refuse("k", k, "v", v);
  if (w_scores.rank() != 2 || w_scores.shape()[0] != size(q, 3))
    refuse("q", q, "w_scores", w_scores);
  if (w_weights.rank() != 2 || w_weights.shape()[0] != w_scores.shape()[1]) {
    refuse("w_scores", w_scores, "w_weights", w_weights);
  }
  if (w_weights.shape()[1] != size(v, 3)) refuse("w_weights", w_weights, "v", v);
}

}  // namespace

AttentionResult talking_heads_attention(const Expr& q, const Expr& k, const Expr& v,
                                        const Expr& w_scores, const Expr& w_weights,
                                        const AttentionOptions& options) {
  refuse_weights(kTalkingHeads, options);
  check(q, k, v, w_scores, w_weights);
  if (options.sinks || options.heads != 0 || options.kv_heads != 0 || options.head_dim != 0) {
    fail<ValueError>(
        fmt::format("{}: sinks, heads, kv_heads and head_dim cannot be used here", kTalkingHeads));
  }
  const auto width = static_cast<double>(std::max<std::int64_t>(1, q.shape().back()));
  const Expr dot =
      einsum("...hqd,...hkd->...hqk", q, k) * options.scale.value_or(1 / std::sqrt(width));
  Expr s = einsum("...hqk,hg->...gqk", dot, w_scores);
  if (options.softcap) s = *options.softcap * tanh(s / *options.softcap);
  std::vector<std::string> labels(s.rank());
  static constexpr const char* kLabels[] = {"k", "q", "h", "b"};  // from the right
  for (std::size_t i = 0; i < std::min<std::size_t>(4, s.rank()); ++i) {
    labels[s.rank() - 1 - i] = kLabels[i];
  }
  s = graph::relabel(kTalkingHeads, s, labels, false);
  s = mask(s, visibility(kTalkingHeads, s, options));
  const Expr p = einsum("...gqk,gf->...fqk", softmax(s, "k"), w_weights);
  const Expr output = einsum("...fqk,...fke->...fqe", p, v);
  return {labelled_as(output, q, v.labels()[v.rank() - 1]), p, logsumexp(s, "k")};
}

}  // namespace einkern
