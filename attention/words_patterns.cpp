// SPDX-License-Identifier: Apache-2.0
// Patterns of visibility and biases by distance as rows for programs.
#include "../engine/base/error.h"
#include "../ops/words.h"
#include "alibi.h"
#include "linear.h"
#include "patterns.h"
#include "relative.h"
#include "words_options.h"

namespace einkern {
namespace {

using namespace parameters;
using A = Arguments;

std::vector<Parameter> bucketing() {
  return {integer("count").standard("32").by_name(),
          integer("max_distance").standard("128").by_name(),
          flag("bidirectional").standard("true").by_name()};
}
Buckets buckets_of(const A& a) {
  return {.count = a.integer("count"),
          .max_distance = a.integer("max_distance"),
          .bidirectional = a.flag("bidirectional")};
}

/// One number for each head: how many, and the dtype.
std::vector<Parameter> per_head() {
  return {integer("heads"), choice("dtype", {"f16", "bf16", "f32", "f64"}).standard("f32")};
}
template <Tensor (*F)(std::int64_t, DType)>
Expr made_per_head(const A& a, const char* function) {
  static constexpr DType kDTypes[] = {f16, bf16, f32, f64};
  return F(a.integer("heads"),
           kDTypes[chosen(a, function, "dtype", {"f16", "bf16", "f32", "f64"})]);
}

Value local_global_word(const A& a) {
  const std::int64_t left = a.integer("left"), right = a.integer("right");
  if (a.has("globals") && !a.has("global_q") && !a.has("global_k")) {
    return local_global(left, right, a.integer("globals"));
  }
  if (a.has("globals") || !a.has("global_q") || !a.has("global_k")) {
    fail<ValueError>("local_global: takes globals, or both of global_q and global_k");
  }
  return local_global(left, right, a.tensor("global_q"), a.tensor("global_k"));
}

}  // namespace

WordTable pattern_words() {
  return {
      // patterns.h
      {"prefix_lm",
       "visible where k <= q or k < prefix",
       {tensor("prefix")},
       [](const A& a) -> Value { return prefix_lm(a.tensor("prefix")); }},
      {"dilated",
       "visible at every step-th position; -1 is open",
       {integer("left"), integer("right"), integer("step")},
       [](const A& a) -> Value {
         return dilated(a.integer("left"), a.integer("right"), a.integer("step"));
       }},
      {"local_global",
       "a window, and global positions that see and are seen by all",
       {integer("left"), integer("right"), integer("globals").optional(),
        tensor("global_q").optional().by_name(), tensor("global_k").optional().by_name()},
       local_global_word},
      {"block_local",
       "blocks of positions that see themselves and blocks before them",
       {integer("size"), integer("before").standard("0")},
       [](const A& a) -> Value { return block_local(a.integer("size"), a.integer("before")); }},
      {"block_sparse",
       "block q / size sees block k / size where blocks is true",
       {tensor("blocks"), integer("size")},
       [](const A& a) -> Value { return block_sparse(a.tensor("blocks"), a.integer("size")); }},
      // alibi.h, linear.h
      {"alibi_slopes", "one slope of alibi_attention for each head", per_head(),
       [](const A& a) -> Value { return made_per_head<alibi_slopes>(a, "alibi_slopes"); }},
      {"retention_decays", "one decay of retention for each head", per_head(),
       [](const A& a) -> Value { return made_per_head<retention_decays>(a, "retention_decays"); }},
      // relative.h
      {"relative_buckets", "the bucket of every difference k - q",
       with({integer("queries"), integer("keys")}, bucketing()),
       [](const A& a) -> Value {
         return Expr(relative_buckets(a.integer("queries"), a.integer("keys"), buckets_of(a)));
       }},
      {"relative_bias",
       "a bias by distance, one number for every difference k - q",
       {tensor("differences"), size("queries")},
       [](const A& a) -> Value {
         return relative_bias(a.tensor("differences"), a.integer("queries"));
       }},
      {"bucketed_bias", "a bias by distance, from a table with a row for every bucket",
       with({tensor("table"), integer("queries"), integer("keys")}, bucketing()),
       [](const A& a) -> Value {
         return bucketed_bias(a.tensor("table"), a.integer("queries"), a.integer("keys"),
                              buckets_of(a));
       }},
  };
}

}  // namespace einkern
