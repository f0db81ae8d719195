// SPDX-License-Identifier: Apache-2.0
// Patterns of visibility against loops: prefix, dilated, local and global, blocks, documents,
// padding, windows, groups.
#include <doctest/doctest.h>

#include <cstdlib>

#include "../../engine/base/error.h"
#include "../../ops/ops.h"
#include "variants.h"

using namespace einkern;
using namespace einkern::test;

namespace {

using I = std::int64_t;

/// A pattern as the option `mask`, and whether it shows a key.
void check_pattern(const char* name, const VariantSizes& n, const Expr& pattern,
                   const std::function<bool(const ScoreAt&)>& sees,
                   const AttentionOptions& options = {}, OracleOptions oracle = {}) {
  const VariantArrays x(n);
  oracle.mask = dense(n, [&](const ScoreAt& at) { return sees(at) ? 1 : 0; });
  check_variant(
      name, x,
      [&](const VariantOperands& o) {
        AttentionOptions with = options;
        with.mask = pattern;
        return dot_product_attention(o.q, o.k, o.v, with);
      },
      attention_oracle(x.q, x.k, x.v, oracle));
}

}  // namespace

TEST_SUITE("attention") {
  TEST_CASE("prefix language models, dilated windows, local and global positions, blocks") {
    const VariantSizes n;
    check_pattern("prefix", n, prefix_lm(9),
                  [](const ScoreAt& at) { return at.k <= at.q || at.k < 9; });
    const Array prefixes({2}, {4, 30});
    check_pattern("prefix of each entry", n, prefix_lm(named(to_tensor(prefixes, i64), "b")),
                  [&](const ScoreAt& at) {
                    return at.k <= at.q || static_cast<double>(at.k) < prefixes.at({at.b});
                  });
    check_pattern("dilated", n, dilated(4, 2, 3), [](const ScoreAt& at) {
      const I back = at.q - at.k;
      return back % 3 == 0 && back <= 12 && back >= -6;
    });
    check_pattern("dilated, open", n, dilated(-1, 0, 2),
                  [](const ScoreAt& at) { return at.k <= at.q && (at.q - at.k) % 2 == 0; });
    // Positions times the step would be beyond 64 bits.
    check_pattern("dilated, as far as numbers go", n, dilated(I{1} << 62, 0, 4),
                  [](const ScoreAt& at) { return at.k <= at.q && (at.q - at.k) % 4 == 0; });
    check_pattern("local and global", n, local_global(3, 1, 2), [](const ScoreAt& at) {
      return (at.k >= at.q - 3 && at.k <= at.q + 1) || at.q < 2 || at.k < 2;
    });
    Array global_q({n.queries}), global_k({n.batch, n.keys});
    global_q.at({11}) = global_k.at({0, 50}) = global_k.at({1, 7}) = 1;
    check_pattern(
        "local and chosen global", n,
        local_global(5, -1, named(to_tensor(global_q, boolean), "q"),
                     named(to_tensor(global_k, boolean), "bk")),
        [&](const ScoreAt& at) {
          return at.k >= at.q - 5 || global_q.at({at.q}) != 0 || global_k.at({at.b, at.k}) != 0;
        });
    check_pattern("blocks of their own", n, block_local(8),
                  [](const ScoreAt& at) { return at.q / 8 == at.k / 8; });
    check_pattern(
        "blocks and the one before, causal", n, block_local(5, 1),
        [](const ScoreAt& at) { return at.q / 5 >= at.k / 5 && at.q / 5 - at.k / 5 <= 1; },
        {.causal = top_left}, {.offset = 0});
  }

  TEST_CASE("block-sparse layouts: of all heads, of each head, with other options") {
    const VariantSizes n{.queries = 36, .keys = 60};
    Array blocks({3, 5}), of_heads({6, 3, 5});
    for_each_index(of_heads.shape, [&](const Sizes& i) {
      of_heads.at(i) = (i[0] * 7 + i[1] * 3 + i[2] * 5) % 3 == 0 ? 1 : 0;
      blocks.at({i[1], i[2]}) = (i[1] + i[2]) % 2;
    });
    check_pattern("one layout", n, block_sparse(to_tensor(blocks, boolean), 12),
                  [&](const ScoreAt& at) {
                    return blocks.at({at.q / 12, at.k / 12}) != 0;
                  });
    check_pattern("a layout for each head, causal", n,
                  block_sparse(to_tensor(of_heads, boolean), 12),
                  [&](const ScoreAt& at) {
                    return of_heads.at({at.h, at.q / 12, at.k / 12}) != 0;
                  },
                  {.softcap = 2, .causal = bottom_right}, {.softcap = 2, .bottom_right = true});
  }

  TEST_CASE("documents, padding, windows and groups, at odd sizes") {
    for (const I groups : {6, 3, 2, 1}) {
      const VariantSizes n{.groups = groups};
      const VariantArrays x(n);
      OracleOptions oracle;
      oracle.window = {9, 0};
      oracle.lengths = Array({2}, {50, 31});
      oracle.bottom_right = true;
      check_variant(
          "grouped heads, lengths, window, bottom right", x,
          [&](const VariantOperands& o) {
            return dot_product_attention(o.q, o.k, o.v,
                                         {.lengths = to_tensor(*oracle.lengths, i64),
                                          .window = Window{9, 0},
                                          .causal = bottom_right});
          },
          attention_oracle(x.q, x.k, x.v, oracle));
    }
    const VariantSizes n{.queries = 41, .keys = 41};
    const VariantArrays x(n);
    Array documents({2, 41});
    for_each_index(documents.shape, [&](const Sizes& i) {
      const std::int64_t document = (i[1] + 3 * i[0]) / 11;
      documents.at(i) = static_cast<double>(document);
    });
    OracleOptions oracle;
    oracle.segments = {documents, documents};
    oracle.offset = 0;
    check_variant(
        "documents", x,
        [&](const VariantOperands& o) {
          const Tensor ids = to_tensor(documents, i32);
          return dot_product_attention(o.q, o.k, o.v,
                                       {.segments = Segments(ids), .causal = top_left});
        },
        attention_oracle(x.q, x.k, x.v, oracle));
  }

  TEST_CASE("an infinite window is causal, and as many key heads as heads are plain heads") {
    const VariantArrays x({.queries = 53});
    const Tensor q = to_tensor(x.q), k = to_tensor(x.k), v = to_tensor(x.v);
    const auto output = [&](const AttentionOptions& options) {
      return to_array(Tensor(dot_product_attention(q, k, v, options).output));
    };
    CHECK(worst_error(output({.window = Window{-1, 0}}), output({.causal = top_left})) <= 1e-15);
    CHECK(worst_error(output({.heads = 6, .kv_heads = 6}), output({})) == 0);
    const Expr repeated_k = repeat(slice(k, 1, 0, 2), 1, 3);
    const Expr repeated_v = repeat(slice(v, 1, 0, 2), 1, 3);
    const Tensor grouped(
        dot_product_attention(q, slice(k, 1, 0, 2), slice(v, 1, 0, 2), {.causal = top_left})
            .output);
    CHECK(worst_error(grouped, to_array(Tensor(dot_product_attention(q, Tensor(repeated_k),
                                                                     Tensor(repeated_v),
                                                                     {.causal = top_left})
                                                   .output))) <= 1e-15);
  }

  TEST_CASE("patterns refuse what they cannot use") {
    CHECK_THROWS_WITH_AS(prefix_lm(0.5), "prefix_lm: prefix is f64, not an integer", TypeError);
    CHECK_THROWS_WITH_AS(dilated(1, 1, 0), "dilated: step is 0; it must be at least 1", ValueError);
    CHECK_THROWS_WITH_AS(dilated(-2, 1, 1), "dilated: left is -2; it must be at least -1",
                         ValueError);
    CHECK_THROWS_AS(local_global(1, 1, -1), ValueError);
    CHECK_THROWS_WITH_AS(local_global(1, 1, zeros({3})["q"], zeros({3}, boolean)["k"]),
                         "local_global: global_q is f32, not bool", TypeError);
    CHECK_THROWS_AS(block_local(0), ValueError);
    CHECK_THROWS_WITH_AS(block_sparse(zeros({3, 3}), 4), "block_sparse: blocks is f32, not bool",
                         TypeError);
    CHECK_THROWS_WITH_AS(block_sparse(zeros({3}, boolean), 4),
                         "block_sparse: blocks (3,) need axes of queries and of keys", ShapeError);
    const VariantArrays x;
    CHECK_THROWS_WITH_AS(dot_product_attention(to_tensor(x.q), to_tensor(x.k), to_tensor(x.v),
                                               {.mask = block_sparse(ones({3, 3}, boolean), 12)}),
                         "dot_product_attention: mask of shape (36, 36) cannot broadcast to the "
                         "scores (2, 6, 37, 53)",
                         ShapeError);
  }
}
