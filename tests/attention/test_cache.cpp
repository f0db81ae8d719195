// SPDX-License-Identifier: Apache-2.0
// The key-value cache: chunks of any size, lengths, rolling windows, one plan.
#include <doctest/doctest.h>

#include <cmath>

#include "../../engine/base/error.h"
#include "../../ops/ops.h"
#include "../support/sanitizer.h"
#include "variants.h"

using namespace einkern;
using namespace einkern::test;

namespace {

using I = std::int64_t;

/// Output and logsumexp of all queries, token by token through a cache in chunks of `chunk`.
OracleResult through(KeyValueCache& cache, const VariantArrays& x, DType dtype, I chunk, bool fuse,
                     const AttentionOptions& options = {}) {
  const VariantSizes& n = x.n;
  OracleResult got{Array({n.batch, n.heads, n.queries, n.values}), Array(),
                   Array({n.batch, n.heads, n.queries})};
  const Tensor q = to_tensor(x.q, dtype), k = to_tensor(x.k, dtype), v = to_tensor(x.v, dtype);
  for (I first = 0; first < n.queries; first += chunk) {
    const I last = std::min(n.queries, first + chunk);
    cache.append(k.slice(2, first, last), v.slice(2, first, last));
    const AttentionResult r = cache.attend(q.slice(2, first, last), options);
    const auto both = eval({r.output, r.logsumexp}, {.fuse = fuse});
    const Array o = to_array(both[0]), l = to_array(both[1]);
    for_each_index(l.shape, [&](const Sizes& i) {
      got.logsumexp.at({i[0], i[1], first + i[2]}) = l.at(i);
      for (I e = 0; e < n.values; ++e) {
        got.output.at({i[0], i[1], first + i[2], e}) = o.at({i[0], i[1], i[2], e});
      }
    });
  }
  return got;
}

CacheShape shape_of(const VariantSizes& n, I capacity, DType dtype, I window = 0) {
  return {.batch = n.batch,
          .heads = n.groups,
          .capacity = capacity,
          .key_dim = n.width,
          .value_dim = n.values,
          .window = window,
          .dtype = dtype};
}

}  // namespace

TEST_SUITE("attention") {
  TEST_CASE(
      "a cache in chunks of any size is causal attention, and never reads behind its length") {
    const VariantSizes n{.groups = 2, .queries = 45, .keys = 45};
    const VariantArrays x(n);
    const OracleResult want = attention_oracle(x.q, x.k, x.v, {.softcap = 2, .offset = 0});
    for (const DType dtype : {f32, f64}) {
      for (const I chunk : {1, 7, 16, 45}) {
        for (const bool fuse : {true, false}) {
          KeyValueCache cache(shape_of(n, 64, dtype));
          cache.keys().fill(NAN);
          cache.values().fill(NAN);
          const OracleResult got = through(cache, x, dtype, chunk, fuse, {.softcap = 2});
          const double bound = dtype == f32 ? 4e-6 : 1e-13;
          CHECK(worst_error(got.output, want.output) <= bound);
          CHECK(worst_error(got.logsumexp, want.logsumexp) <= bound);
          CHECK(cache.length() == 45);
        }
      }
    }
  }

  TEST_CASE("a rolling cache keeps a window of tokens in the places of the oldest") {
    const VariantSizes n{.groups = 3, .queries = 61, .keys = 61};
    const VariantArrays x(n);
    const OracleResult want =
        attention_oracle(x.q, x.k, x.v, {.window = std::pair<I, I>{9, 0}, .offset = 0});
    for (const I capacity : {10, 16, 40}) {
      for (const I chunk : {1, 5, 7}) {
        if (chunk > capacity - 10 + 1) continue;
        for (const bool fuse : {true, false}) {
          KeyValueCache cache(shape_of(n, capacity, f32, 10));
          cache.keys().fill(NAN);
          cache.values().fill(NAN);
          const OracleResult got = through(cache, x, f32, chunk, fuse);
          CHECK(worst_error(got.output, want.output) <= 4e-6);
          CHECK(worst_error(got.logsumexp, want.logsumexp) <= 4e-6);
        }
      }
    }
  }

  TEST_CASE("decoding streams, with one plan for every length") {
    const I most = fewer_if_sanitized(4096);
    KeyValueCache cache({.batch = 1, .heads = 2, .capacity = 4096, .key_dim = 8, .value_dim = 8});
    const VariantArrays x(
        {.batch = 1, .heads = 4, .groups = 2, .queries = 1, .keys = most, .width = 8, .values = 8});
    const Tensor q = to_tensor(x.q, f32), k = to_tensor(x.k, f32), v = to_tensor(x.v, f32);
    cache.append(k.slice(2, 0, 1), v.slice(2, 0, 1));  // the plan that appends
    const std::int64_t before = plans_made();
    Tensor last = q;
    for (I length = 1; length <= most; ++length) {
      if (length > 1) cache.append(k.slice(2, length - 1, length), v.slice(2, length - 1, length));
      last = cache.attend(q).output;
    }
    CHECK(plans_made() - before == 1);
    CHECK(worst_error(last, attention_oracle(x.q, x.k, x.v).output) <= 1e-6);
    CHECK(cache.length() == most);
    const std::string fault = streaming_fault({cache.attend(q).output}, I{4} * 4 * 4096);
    CHECK_MESSAGE(fault.empty(), fault, "\n", explain({cache.attend(q).output}));
  }

  TEST_CASE("expressions see what a cache holds when they are evaluated; 16-bit caches; clearing") {
    const VariantSizes n{.batch = 1, .heads = 2, .groups = 1, .queries = 5, .keys = 5};
    const VariantArrays x(n);
    KeyValueCache cache(shape_of(n, 8, f16));
    const Tensor k = to_tensor(x.k, f32), v = to_tensor(x.v, f32), q = to_tensor(x.q, f32);
    cache.append(k.slice(2, 0, 4), v.slice(2, 0, 4));
    const Expr pending = cache.attend(q.slice(2, 4, 5)).output;
    cache.append(k.slice(2, 4, 5), v.slice(2, 4, 5));
    const OracleResult want = attention_oracle(x.q, x.k, x.v, {.offset = 0});
    Array last({1, 2, 1, 7});
    for_each_index(last.shape, [&](const Sizes& i) {
      last.at(i) = want.output.at({0, i[1], 4, i[3]});
    });
    CHECK(worst_error(Tensor(pending), last) <= 4e-6);
    cache.clear();
    CHECK(cache.length() == 0);
    CHECK(Tensor(cache.attend(q.slice(2, 4, 5)).output).to_vector<float>() ==
          std::vector<float>(14, 0));
  }

  TEST_CASE("a cache refuses what does not fit, and stays as it was") {
    CHECK_THROWS_WITH_AS(KeyValueCache({.capacity = 4, .key_dim = 2, .value_dim = 2, .window = 5}),
                         "KeyValueCache: batch 1, heads 1, capacity 4, key_dim 2, value_dim 2 and "
                         "window 5 make no cache",
                         ValueError);
    KeyValueCache cache({.capacity = 4, .key_dim = 2, .value_dim = 3});
    const Tensor k = zeros({1, 1, 3, 2}), v = zeros({1, 1, 3, 3});
    cache.append(k, v);
    CHECK_THROWS_WITH_AS(cache.append(k, v),
                         "KeyValueCache: 3 more tokens do not fit a capacity of 4 that holds 3",
                         ValueError);
    CHECK_THROWS_WITH_AS(cache.append(v, k),
                         "KeyValueCache: k (1, 1, 3, 3) does not fit the cache (1, 1, 4, 2)",
                         ShapeError);
    CHECK_THROWS_AS(cache.append(k, zeros({1, 1, 2, 3})), ShapeError);
    CHECK(cache.length() == 3);
    CHECK_THROWS_WITH_AS(cache.attend(zeros({1, 1, 1, 2}), {.causal = top_left}),
                         "KeyValueCache: causal, window, lengths and segments are the cache's own",
                         ValueError);
    CHECK_THROWS_WITH_AS(cache.attend(zeros({1, 1, 2})),
                         "KeyValueCache: q (1, 1, 2) is not (b, h, tokens, d)", ShapeError);
    KeyValueCache rolling({.capacity = 4, .key_dim = 2, .value_dim = 3, .window = 3});
    CHECK_THROWS_WITH_AS(rolling.attend(zeros({1, 1, 3, 2})),
                         "KeyValueCache: of 3 tokens at once the first would miss keys of its "
                         "window: at most 2, capacity - window + 1",
                         ValueError);
  }
}
