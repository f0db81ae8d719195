// SPDX-License-Identifier: Apache-2.0
// Prefill by chunks of whole row tiles has the bits of the whole prefill.
#include <doctest/doctest.h>

#include <cstring>
#include <string>

#include "../../ops/ops.h"
#include "../support/sanitizer.h"
#include "variants.h"

using namespace einkern;
using namespace einkern::test;

namespace {

using I = std::int64_t;

/// Rows of a tile are a divisor of this for every instruction set and dtype.
constexpr I kWholeTiles = 64;

struct ChunkSizes {
  I heads, groups, queries, keys;
};

/// What may meet a score besides the causal mask.
enum class Besides { nothing, no_mask, window, alibi, cap_and_sinks };

/// Output and logsumexp of queries that stand at tokens `first`, `first` + 1, ...
std::vector<Tensor> attend_from(I first, const Tensor& q, const Tensor& k, const Tensor& v,
                                Besides besides) {
  AttentionOptions options;
  const Expr distance = index("q") + full({}, static_cast<double>(first), i64) - index("k");
  if (besides != Besides::no_mask) options.causal = first;
  if (besides == Besides::window) options.mask = distance < 150;
  if (besides == Besides::alibi) options.bias = distance * full({}, -0.0625, q.dtype());
  if (besides == Besides::cap_and_sinks) {
    options.softcap = 3;
    options.sinks = 0.5;
  }
  const AttentionResult r = dot_product_attention(q, k, v, options);
  return eval({r.output, r.logsumexp});
}

/// Do the rows of `whole` along `axis` from `first` on have the bits of `chunk`?
bool same_rows(const Tensor& whole, int axis, I first, const Tensor& chunk) {
  const I last = first + chunk.shape()[static_cast<std::size_t>(axis)];
  const Tensor rows = whole.slice(axis, first, last).copy();
  const std::size_t bytes = static_cast<std::size_t>(rows.size()) * size_of(rows.dtype());
  return rows.shape() == chunk.shape() && std::memcmp(rows.bytes(), chunk.bytes(), bytes) == 0;
}

void check_chunks(const ChunkSizes& n, DType dtype, Besides besides) {
  const Tensor q = random({n.heads, n.queries, 8}, 4, dtype) * 6 - 3,
               k = random({n.groups, n.keys, 8}, 5, dtype) * 2 - 1,
               v = random({n.groups, n.keys, 5}, 6, dtype) - 0.5;
  const I start = n.keys - n.queries;  // the last queries, as behind what a cache holds
  const std::vector<Tensor> whole = attend_from(start, q, k, v, besides);
  for (const I length : {kWholeTiles, 3 * kWholeTiles}) {
    for (I first = 0; first + length <= n.queries; first += length) {
      CAPTURE(length);
      CAPTURE(first);
      const std::vector<Tensor> chunk =
          attend_from(start + first, q.slice(1, first, first + length), k, v, besides);
      CHECK(same_rows(whole[0], 1, first, chunk[0]));
      CHECK(same_rows(whole[1], 1, first, chunk[1]));
    }
  }
}

/// All queries through a cache, `length` tokens at a time.
std::vector<Tensor> through_cache(const Tensor& q, const Tensor& k, const Tensor& v, I length) {
  KeyValueCache cache({.batch = q.shape()[0],
                       .heads = k.shape()[1],
                       .capacity = 700,
                       .key_dim = k.shape()[3],
                       .value_dim = v.shape()[3]});
  std::vector<Tensor> outputs;
  for (I first = 0; first < q.shape()[2]; first += length) {
    const I last = std::min(q.shape()[2], first + length);
    cache.append(k.slice(2, first, last), v.slice(2, first, last));
    outputs.push_back(cache.attend(q.slice(2, first, last)).output);
  }
  return outputs;
}

}  // namespace

TEST_SUITE("attention") {
  TEST_CASE("chunks of whole row tiles have the bits of all rows at once") {
    // Heads alone and in groups, more heads than rows of a chunk, rows that end within a tile, and
    // enough keys for few heads to be cut in pieces.
    const ChunkSizes all[] = {{2, 2, 384, 384},  {8, 2, 384, 384},   {8, 2, 500, 512},
                              {6, 1, 250, 2000}, {2, 2, 449, 2900},  {1, 1, 2100, 6200},
                              {2, 1, 320, 9300}, {70, 1, 200, 200},  {3, 1, 193, 193},
                              {40, 4, 250, 300}, {130, 1, 192, 1000}};
    for (const ChunkSizes& n : all) {
      for (const DType dtype : {f32, f64}) {
        for (const Besides besides : {Besides::nothing, Besides::no_mask, Besides::window,
                                      Besides::alibi, Besides::cap_and_sinks}) {
          if (kSanitized && (n.keys > 1000 || dtype == f64)) continue;
          CAPTURE(n.heads);
          CAPTURE(n.groups);
          CAPTURE(n.queries);
          CAPTURE(n.keys);
          CAPTURE(static_cast<int>(besides));
          check_chunks(n, dtype, besides);
        }
      }
    }
  }

  TEST_CASE("prompts through a cache by chunks of whole row tiles have the bits of one append") {
    const I tokens = 500;
    for (const I heads : {3, 6, 12}) {
      const Tensor q = random({1, heads, tokens, 8}, 7) * 6 - 3,
                   k = random({1, 3, tokens, 8}, 8) * 2 - 1, v = random({1, 3, tokens, 5}, 9) - 0.5;
      const Tensor whole = through_cache(q, k, v, tokens)[0];
      for (const I length : {kWholeTiles, 2 * kWholeTiles}) {
        const std::vector<Tensor> chunks = through_cache(q, k, v, length);
        REQUIRE(std::ssize(chunks) == (tokens + length - 1) / length);
        for (I c = 0; c < tokens / length; ++c) {  // the last chunk is no whole tile
          CAPTURE(heads);
          CAPTURE(length);
          CAPTURE(c);
          CHECK(same_rows(whole, 2, c * length, chunks[static_cast<std::size_t>(c)]));
        }
      }
    }
  }
}
