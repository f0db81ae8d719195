// SPDX-License-Identifier: Apache-2.0
// Multi-head attention: projections, heads, attention, output, as its formula.
#include "multihead.h"

#include <fmt/format.h>

#include "../engine/base/error.h"
#include "../ops/ops.h"
#include "attend.h"
#include "project.h"

namespace einkern {
namespace {

constexpr const char* kMultihead = "multihead_attention";

/// Queries, keys and values with their heads side by side on the last axis.
struct Projected {
  Expr q, k, v;
};

void check_options(const AttentionOptions& options) {
  const bool separate = options.q || options.k || options.v;
  const bool separate_bias = options.q_bias || options.k_bias || options.v_bias;
  if (options.qkv && separate) {
    fail<ValueError>(fmt::format("{}: both qkv and q, k or v are given", kMultihead));
  }
  if (!options.qkv && !(options.q && options.k && options.v)) {
    fail<ValueError>(fmt::format("{}: weights are missing: qkv, or q, k and v", kMultihead));
  }
  if (options.qkv ? separate_bias : options.qkv_bias.has_value()) {
    fail<ValueError>(fmt::format("{}: {} is given without its weight", kMultihead,
                                 options.qkv ? "a bias of q, k or v" : "qkv_bias"));
  }
  if (options.out_bias && !options.out) {
    fail<ValueError>(fmt::format("{}: out_bias is given without its weight", kMultihead));
  }
  if (options.heads < 1 || options.kv_heads < 0 || options.head_dim < 0) {
    fail<ValueError>(fmt::format("{}: heads is {}, kv_heads {}, head_dim {}; heads is needed",
                                 kMultihead, options.heads, options.kv_heads, options.head_dim));
  }
  if (options.kv_heads > 0 && options.heads % options.kv_heads != 0) {
    fail<ValueError>(fmt::format("{}: heads is {}, no multiple of kv_heads {}", kMultihead,
                                 options.heads, options.kv_heads));
  }
}

/// Columns of a weight for each of `count` heads.
std::int64_t columns_per_head(const char* name, const Expr& w, std::int64_t count) {
  if (w.rank() != 2 || w.shape()[1] % count != 0) {
    fail<ShapeError>(fmt::format("{}: the columns of {} {} do not split into {} heads", kMultihead,
                                 name, to_string(w.shape()), count));
  }
  return w.shape()[1] / count;
}

Projected project_packed(const Expr& query, const Expr& key, const Expr& value,
                         const AttentionOptions& options, std::int64_t kv_heads) {
  const std::int64_t head_dim = columns_per_head("qkv", *options.qkv, options.heads + 2 * kv_heads);
  const std::int64_t to_k = options.heads * head_dim, to_v = to_k + kv_heads * head_dim;
  const std::int64_t end = to_v + kv_heads * head_dim;
  if (query.node() == key.node() && key.node() == value.node()) {
    const Expr all = project(kMultihead, "qkv", query, *options.qkv, options.qkv_bias);
    return {slice(all, -1, 0, to_k), slice(all, -1, to_k, to_v), slice(all, -1, to_v, end)};
  }
  const auto part = [&](const Expr& x, std::int64_t first, std::int64_t last) {
    std::optional<Expr> bias = options.qkv_bias;
    if (bias) bias = slice(*bias, -1, first, last);
    return project(kMultihead, "qkv", x, slice(*options.qkv, 1, first, last), bias);
  };
  return {part(query, 0, to_k), part(key, to_k, to_v), part(value, to_v, end)};
}

Projected project_separate(const Expr& query, const Expr& key, const Expr& value,
                           const AttentionOptions& options, std::int64_t kv_heads) {
  const std::int64_t query_dim = columns_per_head("q", *options.q, options.heads);
  const std::int64_t key_dim = columns_per_head("k", *options.k, kv_heads);
  columns_per_head("v", *options.v, kv_heads);
  if (query_dim != key_dim) {
    fail<ShapeError>(fmt::format("{}: a head has {} columns in q {} but {} in k {}", kMultihead,
                                 query_dim, to_string(options.q->shape()), key_dim,
                                 to_string(options.k->shape())));
  }
  return {project(kMultihead, "q", query, *options.q, options.q_bias),
          project(kMultihead, "k", key, *options.k, options.k_bias),
          project(kMultihead, "v", value, *options.v, options.v_bias)};
}

/// (..., n, h d) to (..., h, n, d).
Expr split_heads(const Expr& x, std::int64_t heads) {
  return permute(split(x, -1, {"h", "d"}, {heads, -1}), "...nhd->...hnd");
}

/// (..., h, n, d) to (..., n, h d).
Expr merge_heads(const Expr& x) { return merge(permute(x, "...hnd->...nhd"), {-2, -1}); }

}  // namespace

AttentionResult multihead_attention(const Expr& query, const Expr& key, const Expr& value,
                                    const AttentionOptions& options) {
  check_options(options);
  const std::int64_t kv_heads = options.kv_heads > 0 ? options.kv_heads : options.heads;
  const Projected x = options.qkv ? project_packed(query, key, value, options, kv_heads)
                                  : project_separate(query, key, value, options, kv_heads);
  const AttentionResult heads =
      attend(kMultihead, split_heads(x.q, options.heads), split_heads(x.k, kv_heads),
             split_heads(x.v, kv_heads), options);
  const Expr merged = unnamed(merge_heads(heads.output));
  const Expr y =
      options.out ? project(kMultihead, "out", merged, *options.out, options.out_bias) : merged;
  const std::string last = options.out ? options.out->labels()[1] : std::string();
  return {labelled_as(y, query, last), heads.weights, heads.logsumexp};
}

Expr multihead_attention(const Expr& x, const AttentionOptions& options) {
  return multihead_attention(x, x, x, options).output;
}

}  // namespace einkern
