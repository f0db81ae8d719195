// SPDX-License-Identifier: Apache-2.0
// Variants that change scores: linear and relative biases, rotary positions, normalised queries and
// keys, caps and sinks.
#include <doctest/doctest.h>

#include <cmath>

#include "../../engine/base/error.h"
#include "../../ops/ops.h"
#include "variants.h"

using namespace einkern;
using namespace einkern::test;

namespace {

using I = std::int64_t;

/// Rows (..., n, d) turned by their positions: pairs (j, j + d / 2), or neighbours.
Array rotated(const Array& x, I first, bool neighbours) {
  Array y = x;
  const I pairs = x.shape.back() / 2;
  for_each_index(x.shape, [&](const Sizes& i) {
    const I j = neighbours ? i[3] / 2 : i[3] % pairs;
    const bool second = neighbours ? i[3] % 2 == 1 : i[3] >= pairs;
    Sizes other = i;
    other[3] += (second ? -1 : 1) * (neighbours ? 1 : pairs);
    const double angle = static_cast<double>(first + i[2]) *
                         std::pow(100.0, -static_cast<double>(j) / static_cast<double>(pairs));
    y.at(i) = x.at(i) * std::cos(angle) + (second ? 1 : -1) * x.at(other) * std::sin(angle);
  });
  return y;
}

/// Every row by its root mean square, or by its length.
Array by_size(const Array& x, bool mean, const Array& weight) {
  Array y = x;
  const I width = x.shape.back();
  for_each_index(x.shape, [&](const Sizes& i) {
    double square = 0;
    for (I d = 0; d < width; ++d) square += std::pow(x.at({i[0], i[1], i[2], d}), 2);
    if (mean) square = square / static_cast<double>(width) + 1e-5;
    y.at(i) = x.at(i) / std::sqrt(square) * weight.at(i);
  });
  return y;
}

/// The rule of the published implementation, for small tables, with powers instead of logarithms:
/// the step s of the upper half begins at small (max / small)^(s / steps).
I bucket(I difference, I count, I furthest, bool both_ways) {
  I base = 0, distance = both_ways ? std::abs(difference) : std::max<I>(0, -difference);
  if (both_ways) {
    count /= 2;
    if (difference > 0) base = count;
  }
  const I small = count / 2;
  if (distance < small) return base + distance;
  I step = 0;
  const auto begins = [&](I s) {
    return static_cast<double>(small) *
           std::pow(static_cast<double>(furthest) / static_cast<double>(small),
                    static_cast<double>(s) / static_cast<double>(count - small));
  };
  while (step + 1 < count - small &&
         static_cast<double>(distance) >= begins(step + 1) * (1 - 1e-9)) {
    ++step;
  }
  return base + small + step;
}

}  // namespace

TEST_SUITE("attention") {
  TEST_CASE("ALiBi: slopes of any number of heads") {
    const auto slopes = [](I heads) { return alibi_slopes(heads, f64).to_vector<double>(); };
    CHECK(slopes(1) == std::vector<double>{1.0 / 256});
    CHECK(slopes(8) ==
          std::vector<double>{0.5, 0.25, 0.125, 0.0625, 0x1p-5, 0x1p-6, 0x1p-7, 0x1p-8});
    CHECK(slopes(6) == std::vector<double>{0.25, 0.0625, 0.015625, 0.00390625, 0.5, 0.125});
    // Twelve: those of eight, then every other one of sixteen.
    for (I i = 0; i < 12; ++i) {
      const double exponent =
          i < 8 ? -static_cast<double>(i + 1) : -0.5 * static_cast<double>(2 * (i - 8) + 1);
      CHECK(slopes(12)[static_cast<std::size_t>(i)] ==
            doctest::Approx(std::exp2(exponent)).epsilon(1e-15));
    }
    CHECK(alibi_slopes(40).size() == 40);
    CHECK_THROWS_WITH_AS(alibi_slopes(0), "alibi_slopes: 0 heads", ValueError);
    // Refused before a number is computed.
    CHECK_THROWS_AS(alibi_slopes(INT64_MAX), ShapeError);
    CHECK_THROWS_AS(retention_decays(INT64_MAX), ShapeError);
    CHECK_THROWS_WITH_AS(relative_buckets(2, INT64_MAX),
                         "relative_buckets: 2 queries and 9223372036854775807 keys", ShapeError);
  }

  TEST_CASE("ALiBi: grouped heads, causal with either alignment, beside another bias") {
    for (const I groups : {6, 2}) {
      const VariantSizes n{.groups = groups};
      const VariantArrays x(n);
      const Array slopes = to_array(alibi_slopes(6)), more = short_noise({37, 53}, 5);
      OracleOptions oracle;
      oracle.bias = dense(n, [&](const ScoreAt& at) {
        return slopes.at({at.h}) * static_cast<double>(at.k - at.q) + more.at({at.q, at.k});
      });
      oracle.bottom_right = true;
      check_variant(
          "alibi", x,
          [&](const VariantOperands& o) {
            return alibi_attention(o.q, o.k, o.v, alibi_slopes(6, o.dtype),
                                   {.bias = o.tensor(more), .causal = bottom_right});
          },
          attention_oracle(x.q, x.k, x.v, oracle));
    }
    CHECK_THROWS_WITH_AS(
        alibi_attention(zeros({2, 3, 4}), zeros({2, 5, 4}), zeros({2, 5, 4}), alibi_slopes(3)),
        "alibi_attention: slopes (3,) for 2 heads of q (2, 3, 4)", ShapeError);
  }

  TEST_CASE("relative positions: buckets as published, and a bias that is a view of distances") {
    for (const Buckets& b :
         {Buckets{}, Buckets{8, 20, true}, Buckets{32, 128, false}, Buckets{6, 11, false}}) {
      const auto got = relative_buckets(150, 200, b).to_vector<std::int64_t>();
      REQUIRE(got.size() == 349);
      for (I difference = -149; difference < 200; ++difference) {
        CAPTURE(difference);
        CHECK(got[static_cast<std::size_t>(difference + 149)] ==
              bucket(difference, b.count, b.max_distance, b.bidirectional));
      }
    }
    // A few of the published ones: 32 buckets, to a distance of 128, both ways.
    const auto published = relative_buckets(200, 1).to_vector<std::int64_t>();
    for (const auto& [distance, want] : {std::pair<I, I>{0, 0},
                                         {7, 7},
                                         {8, 8},
                                         {11, 8},
                                         {12, 9},
                                         {16, 10},
                                         {64, 14},
                                         {127, 15},
                                         {128, 15},
                                         {199, 15}}) {
      CHECK(published[static_cast<std::size_t>(199 - distance)] == want);
    }
    const VariantSizes n{.groups = 3};
    const VariantArrays x(n);
    const Array table = short_noise({8, 6}, 9);
    OracleOptions oracle;
    oracle.bias = dense(n, [&](const ScoreAt& at) {
      return table.at({bucket(at.k - at.q, 8, 20, true), at.h});
    });
    oracle.lengths = Array({2}, {53, 20});
    check_variant(
        "bucketed bias", x,
        [&](const VariantOperands& o) {
          return dot_product_attention(
              o.q, o.k, o.v,
              {.bias = bucketed_bias(o.tensor(table), 37, 53, {8, 20, true}),
               .lengths = to_tensor(*oracle.lengths, i64)});
        },
        attention_oracle(x.q, x.k, x.v, oracle));
    CHECK_THROWS_WITH_AS(bucketed_bias(zeros({9, 6}), 3, 3, {8, 20, true}),
                         "bucketed_bias: table (9, 6) for 8 buckets; it is (buckets, h)",
                         ShapeError);
    CHECK_THROWS_AS(relative_buckets(3, 3, {7, 20, true}), ValueError);
    CHECK_THROWS_AS(relative_buckets(3, 3, {32, 8, true}), ValueError);
    CHECK_THROWS_AS(relative_bias(zeros({2, 3, 5}), 3), ShapeError);
  }

  TEST_CASE("rotary: both pairings, the last query at the last key") {
    const VariantSizes n{.groups = 2};
    const VariantArrays x(n);
    for (const bool neighbours : {false, true}) {
      OracleOptions oracle;
      oracle.bottom_right = true;
      check_variant(
          "rotary", x,
          [&](const VariantOperands& o) {
            const RopeOptions keys{.base = 100, .interleaved = neighbours};
            RopeOptions queries = keys;
            queries.positions = 53 - 37;
            return rotary_attention(o.q, o.k, o.v, queries, keys, {.causal = bottom_right});
          },
          attention_oracle(rotated(x.q, 16, neighbours), rotated(x.k, 0, neighbours), x.v, oracle));
    }
  }

  TEST_CASE("normalised queries and keys, and vectors of length 1") {
    const VariantSizes n{.groups = 3};
    const VariantArrays x(n);
    const Array w = short_noise({10}, 21), one({1}, 1);
    check_variant(
        "rms", x,
        [&](const VariantOperands& o) {
          return qk_norm_attention(o.q, o.k, o.v, {.weight = o.tensor(w)}, {}, {.softcap = 3});
        },
        attention_oracle(by_size(x.q, true, w), by_size(x.k, true, one), x.v, {.softcap = 3}));
    check_variant(
        "cosine", x,
        [&](const VariantOperands& o) {
          return cosine_attention(o.q, o.k, o.v, {.scale = 7, .causal = top_left});
        },
        attention_oracle(by_size(x.q, false, one), by_size(x.k, false, one), x.v,
                         {.scale = 7, .offset = 0}));
    const Tensor zero = zeros({3, 4});
    CHECK(Tensor(cosine_attention(zero, zero, ones({3, 2}), {.scale = 1}).output)
              .to_vector<float>() == std::vector<float>(6, 1));
    CHECK_THROWS_WITH_AS(cosine_attention(zero, zero, zero, {}),
                         "cosine_attention: scale is missing; it is learned", ValueError);
  }

  TEST_CASE("a cap and sinks, at odd sizes") {
    const VariantSizes n{.groups = 2};
    const VariantArrays x(n);
    OracleOptions oracle;
    oracle.softcap = 1.5;
    oracle.sinks = short_noise({6}, 31);
    oracle.offset = -3;
    check_variant(
        "cap and sinks", x,
        [&](const VariantOperands& o) {
          return dot_product_attention(
              o.q, o.k, o.v, {.softcap = 1.5, .sinks = o.tensor(*oracle.sinks), .causal = -3});
        },
        attention_oracle(x.q, x.k, x.v, oracle));
  }
}
