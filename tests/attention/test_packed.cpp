// SPDX-License-Identifier: Apache-2.0
// Packed sequences with offsets, and pages behind a table.
#include <doctest/doctest.h>

#include <cmath>

#include "../../engine/base/error.h"
#include "../../ops/ops.h"
#include "variants.h"

using namespace einkern;
using namespace einkern::test;

namespace {

using I = std::int64_t;

/// Which sequence a position belongs to, by offsets, and where it begins and ends; -1: padding.
struct Sequence {
  I number = -1, begin = 0, end = 0;
};
Sequence sequence_at(const std::vector<I>& offsets, I position) {
  for (std::size_t i = 0; i + 1 < offsets.size(); ++i) {
    if (position >= offsets[i] && position < offsets[i + 1]) {
      return {static_cast<I>(i), offsets[i], offsets[i + 1]};
    }
  }
  return {};
}

Tensor integers_of(const std::vector<I>& numbers) {
  return from_values(std::span<const I>(numbers), {static_cast<I>(numbers.size())});
}

}  // namespace

TEST_SUITE("attention") {
  TEST_CASE("packed sequences: own offsets for keys, causal either way, windows, padding") {
    const VariantSizes n{.batch = 1, .groups = 2};
    const VariantArrays x(n);
    // An empty sequence, and padding behind the last.
    const std::vector<I> at_q{0, 5, 5, 20, 33}, at_k{0, 11, 14, 30, 50};
    struct Mode {
      const char* name;
      AttentionOptions options;
      std::function<bool(I place, I key, I queries, I keys)> sees;
    };
    const std::vector<Mode> modes{
        {"all", {}, [](I, I, I, I) { return true; }},
        {"causal", {.causal = top_left}, [](I q, I k, I, I) { return k <= q; }},
        {"bottom right",
         {.causal = bottom_right},
         [](I q, I k, I nq, I nk) { return k <= q + nk - nq; }},
        {"window and offset",
         {.window = Window{4, -1}, .causal = 2},
         [](I q, I k, I, I) { return k >= q - 4 && k <= q + 2; }},
    };
    for (const Mode& mode : modes) {
      OracleOptions oracle;
      oracle.mask = dense(n, [&](const ScoreAt& at) {
        const Sequence q = sequence_at(at_q, at.q), k = sequence_at(at_k, at.k);
        return q.number >= 0 && q.number == k.number &&
                       mode.sees(at.q - q.begin, at.k - k.begin, q.end - q.begin, k.end - k.begin)
                   ? 1
                   : 0;
      });
      check_variant(
          mode.name, x,
          [&](const VariantOperands& o) {
            return varlen_attention(o.q, o.k, o.v, {integers_of(at_q), integers_of(at_k)},
                                    mode.options);
          },
          attention_oracle(x.q, x.k, x.v, oracle));
    }
  }

  TEST_CASE("packed sequences refuse offsets that do not fit") {
    const Tensor x = zeros({2, 8, 4});
    CHECK_THROWS_WITH_AS(varlen_attention(x, x, x, zeros({3})),
                         "varlen_attention: offsets of q are f32, not integers", TypeError);
    CHECK_THROWS_WITH_AS(
        varlen_attention(x, x, x, zeros({1}, i64)),
        "varlen_attention: offsets of q have shape (1,); (sequences + 1) are needed", ShapeError);
    CHECK_THROWS_WITH_AS(varlen_attention(x, x, x, {zeros({3}, i64), zeros({4}, i64)}),
                         "varlen_attention: offsets of q (3,) and of k (4,) disagree", ShapeError);
    CHECK_THROWS_WITH_AS(
        varlen_attention(x, x, x, zeros({3}, i64), {.lengths = full({1}, 3, i64)}),
        "varlen_attention: option lengths is given, but offsets say where sequences are",
        ValueError);
    CHECK_THROWS_WITH_AS(
        Tensor(varlen_attention(x, x, x, {integers_of({0, 9}), integers_of({0, 8})}).output),
        "varlen_attention: an offset of q is 9, but there are 8", ValueError);
  }

  TEST_CASE("pages: lengths, tables with anything behind them, NaN where nothing was written") {
    const VariantSizes n{.groups = 2, .queries = 3, .keys = 24};
    const VariantArrays x(n);
    const std::vector<I> lengths{23, 9};
    const I size = 4;
    // Tokens in pages that are scattered; entries behind a length are no pages at all.
    Array keys({14, 2, size, 10}, NAN), values({14, 2, size, 7}, NAN), table({2, 6}, -7);
    for (I b = 0; b < 2; ++b) {
      for (I t = 0; t * size < lengths[static_cast<std::size_t>(b)]; ++t) {
        const I page = (5 * (b * 6 + t) + 3) % 14;
        table.at({b, t}) = static_cast<double>(page);
        for_each_index({2, size}, [&](const Sizes& i) {
          const I token = t * size + i[1];
          if (token >= lengths[static_cast<std::size_t>(b)]) return;
          for (I d = 0; d < 10; ++d) keys.at({page, i[0], i[1], d}) = x.k.at({b, i[0], token, d});
          for (I e = 0; e < 7; ++e) values.at({page, i[0], i[1], e}) = x.v.at({b, i[0], token, e});
        });
      }
    }
    OracleOptions oracle;
    oracle.lengths = Array({2}, {23, 9});
    oracle.bottom_right = true;
    const OracleResult want = attention_oracle(x.q, x.k, x.v, oracle);
    for (const DType dtype : {f32, f64}) {
      const Pages pages{to_tensor(keys, dtype), to_tensor(values, dtype), to_tensor(table, i32),
                        integers_of(lengths)};
      const AttentionResult r =
          paged_attention(to_tensor(x.q, dtype), pages, {.causal = bottom_right});
      CHECK(streaming_fault({r.output}, I{2} * 6 * 3 * 24 * 100).empty());
      for (const bool fuse : {true, false}) {
        CHECK(worst_error(eval(r.output, {.fuse = fuse}), want.output) <=
              (dtype == f32 ? 4e-6 : 1e-13));
      }
    }
    const Tensor q = zeros({1, 1, 1, 2}), p = zeros({3, 1, 4, 2});
    CHECK_THROWS_WITH_AS(
        Tensor(paged_attention(q, {p, p, full({1, 2}, 3, i64), full({1}, 5, i64)}).output),
        "take: index 3 is out of range for axis 1 of size 3", ValueError);
    CHECK_THROWS_WITH_AS(paged_attention(q, {p, p, zeros({2, 2}, i64), zeros({1}, i64)}),
                         "paged_attention: q (1, 1, 1, 2) and table (2, 2) disagree", ShapeError);
  }
}
