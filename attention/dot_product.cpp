// SPDX-License-Identifier: Apache-2.0
// Scaled dot-product attention, as its formula, for heads that may share keys and values.
#include "dot_product.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <string>

#include "../engine/base/error.h"
#include "../engine/graph/build.h"
#include "../ops/ops.h"
#include "attend.h"
#include "project.h"
#include "visibility.h"

namespace einkern {
namespace {

/// Number of heads of an operand; without a head axis, one.
std::int64_t head_count(const Expr& x) { return x.rank() < 3 ? 1 : x.shape()[x.rank() - 3]; }

[[noreturn]] void disagree(const char* function, const std::string& what, const Expr& first,
                           const char* first_name, const Expr& second, const char* second_name) {
  fail<ShapeError>(fmt::format("{}: {} of {} {} and {} {} disagree", function, what, first_name,
                               to_string(first.shape()), second_name, to_string(second.shape())));
}

void check_operands(const char* function, const Expr& q, const Expr& k, const Expr& v) {
  const std::size_t rank = q.rank();
  if (rank < 2) {
    fail<ShapeError>(fmt::format("{}: q {} needs a position and a feature axis", function,
                                 to_string(q.shape())));
  }
  if (k.rank() != rank) disagree(function, "ranks", q, "q", k, "k");
  if (v.rank() != rank) disagree(function, "ranks", q, "q", v, "v");
  if (q.shape()[rank - 1] != k.shape()[rank - 1]) disagree(function, "features", q, "q", k, "k");
  if (k.shape()[rank - 2] != v.shape()[rank - 2]) disagree(function, "positions", k, "k", v, "v");
  if (head_count(k) != head_count(v)) disagree(function, "heads", k, "k", v, "v");
  for (std::size_t d = 0; d + 3 < rank; ++d) {
    const auto meets = [&](const Expr& x) {
      return x.shape()[d] == q.shape()[d] || x.shape()[d] == 1 || q.shape()[d] == 1;
    };
    if (!meets(k)) disagree(function, fmt::format("batch axis {}", d), q, "q", k, "k");
    if (!meets(v)) disagree(function, fmt::format("batch axis {}", d), q, "q", v, "v");
  }
  const std::int64_t heads = head_count(q), kv_heads = head_count(k);
  if (heads != kv_heads && (kv_heads < 1 || heads % kv_heads != 0)) {
    fail<ShapeError>(fmt::format("{}: {} heads of q {} are no multiple of {} heads of k {}",
                                 function, heads, to_string(q.shape()), kv_heads,
                                 to_string(k.shape())));
  }
}

void check_count(const char* function, const char* option, std::int64_t given, const char* operand,
                 std::int64_t found) {
  if (given != 0 && given != found) {
    fail<ShapeError>(
        fmt::format("{}: {} is {} but {} has {}", function, option, given, operand, found));
  }
}

/// Must the head axis be taken apart? One shared head, or none, broadcasts by itself.
bool is_grouped(const Expr& q, const Expr& k) {
  return head_count(k) != 1 && head_count(k) != head_count(q);
}

/// The head axis as (group, head in group): query head h reads key head floor(h * kv_heads /
/// heads).
Expr in_groups(const Expr& x, std::int64_t groups) {
  return split(x, -3, {"g", "r"}, {groups, -1});
}

/// dot[..., h, q, k] = sum_d q[..., h, q, d] k[..., g, k, d], labelled b, h, q, k.
Expr dot(const Expr& q, const Expr& k) {
  Expr s = q;
  if (q.rank() == 2) {
    s = einsum("qd,kd->qk", q, k);
  } else if (is_grouped(q, k)) {
    s = merge(einsum("...grqd,...gkd->...grqk", in_groups(q, head_count(k)), k), {-4, -3}, "h");
  } else {
    s = einsum("...hqd,...hkd->...hqk", q, k);
  }
  std::vector<std::string> labels(s.rank());
  static constexpr const char* kLabels[] = {"k", "q", "h", "b"};  // from the right
  for (std::size_t i = 0; i < std::min<std::size_t>(4, s.rank()); ++i) {
    labels[s.rank() - 1 - i] = kLabels[i];
  }
  return graph::relabel("attention", s, labels, false);
}

double scale_of(const char* function, const Expr& q, const AttentionOptions& options) {
  if (options.scale) return *options.scale;
  const std::int64_t width = q.shape().back();
  if (width < 0) {
    fail<ValueError>(
        fmt::format("{}: without a known number of features, scale must be given", function));
  }
  return 1 / std::sqrt(static_cast<double>(std::max<std::int64_t>(1, width)));
}

}  // namespace

Expr weighted_sum(const Expr& p, const Expr& v) {
  if (p.rank() == 2) return einsum("qk,ke->qe", p, v);
  if (!is_grouped(p, v)) return einsum("...hqk,...hke->...hqe", p, v);
  return merge(einsum("...grqk,...gke->...grqe", in_groups(p, head_count(v)), v), {-4, -3});
}

Expr masked_scores(const char* function, const Expr& q, const Expr& k, const Expr& v,
                   const AttentionOptions& options, const std::vector<Mask>& more) {
  check_operands(function, q, k, v);
  check_count(function, "heads", options.heads, "q", head_count(q));
  check_count(function, "kv_heads", options.kv_heads, "k", head_count(k));
  check_count(function, "head_dim", options.head_dim, "q", q.shape().back());

  Expr s = dot(q, k) * scale_of(function, q, options);
  if (options.softcap) {
    const double cap = *options.softcap;
    if (!(cap > 0 && cap < inf)) {
      fail<ValueError>(fmt::format("{}: softcap is {}; it must be positive", function, cap));
    }
    s = cap * tanh(s / cap);
  }
  std::vector<Mask> masks = visibility(function, s, options);
  masks.insert(masks.end(), more.begin(), more.end());
  return mask(s, masks);
}

AttentionResult attend(const char* function, const Expr& q, const Expr& k, const Expr& v,
                       const AttentionOptions& options, const std::vector<Mask>& more) {
  const Expr s = masked_scores(function, q, k, v, options, more);
  const SoftmaxOptions with_sink{.sink = sink_term(function, s, options)};
  const Expr p = softmax(s, "k", with_sink);
  const Expr output = weighted_sum(p, v);
  return {labelled_as(output, q, v.labels()[v.rank() - 1]), p, logsumexp(s, "k", with_sink)};
}

AttentionResult dot_product_attention(const Expr& q, const Expr& k, const Expr& v,
                                      const AttentionOptions& options) {
  refuse_weights("dot_product_attention", options);
  return attend("dot_product_attention", q, k, v, options);
}

}  // namespace einkern
