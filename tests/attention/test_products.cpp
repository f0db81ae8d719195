// SPDX-License-Identifier: Apache-2.0
// Variants without one softmax of one product: latent, differential, talking heads, sigmoid, and
// merged parts.
#include <doctest/doctest.h>

#include <cmath>

#include "../../engine/base/error.h"
#include "../../ops/ops.h"
#include "variants.h"

using namespace einkern;
using namespace einkern::test;

namespace {

using I = std::int64_t;

/// x (..., n) of one axis after another: [x, y] along the last.
Array beside(const Array& x, const Array& y) {
  Sizes shape = x.shape;
  shape.back() += y.shape.back();
  Array z(shape);
  for_each_index(shape, [&](const Sizes& i) {
    Sizes at = i;
    const bool first = i.back() < x.shape.back();
    if (!first) at.back() -= x.shape.back();
    z.at(i) = first ? x.at(at) : y.at(at);
  });
  return z;
}

/// c (b, k, c) through w (h, c, d): (b, h, k, d).
Array unpacked(const Array& c, const Array& w) {
  Array out({c.shape[0], w.shape[0], c.shape[1], w.shape[2]});
  for_each_index(out.shape, [&](const Sizes& i) {
    for (I j = 0; j < c.shape[2]; ++j) {
      out.at(i) += c.at({i[0], i[2], j}) * w.at({i[1], j, i[3]});
    }
  });
  return out;
}

}  // namespace

TEST_SUITE("attention") {
  TEST_CASE("latent attention: decompressed and absorbed, masked, at odd sizes") {
    const VariantSizes n{.heads = 3, .groups = 3, .width = 5};
    const VariantArrays x(n);
    const I rope = 4, latent = 9;
    const Array q_rope = short_noise({2, 3, 37, rope}, 1), c = short_noise({2, 53, latent}, 2);
    const Array k_rope = short_noise({2, 53, rope}, 3), w_uk = short_noise({3, latent, 5}, 4);
    const Array w_uv = short_noise({3, latent, 7}, 5);
    Array keys_rope({2, 3, 53, rope});
    for_each_index(keys_rope.shape, [&](const Sizes& i) {
      keys_rope.at(i) = k_rope.at({i[0], i[2], i[3]});
    });
    OracleOptions oracle;
    oracle.lengths = Array({2}, {53, 17});
    oracle.bottom_right = true;
    const OracleResult want = attention_oracle(
        beside(x.q, q_rope), beside(unpacked(c, w_uk), keys_rope), unpacked(c, w_uv), oracle);
    for (const LatentOrder order : {LatentOrder::decompressed, LatentOrder::absorbed}) {
      check_variant(
          order == LatentOrder::absorbed ? "absorbed" : "decompressed", x,
          [&](const VariantOperands& o) {
            return latent_attention(
                {o.q, o.tensor(q_rope), o.tensor(c), o.tensor(k_rope), o.tensor(w_uk),
                 o.tensor(w_uv)},
                order, {.lengths = to_tensor(*oracle.lengths, i64), .causal = bottom_right});
          },
          want);
    }
    const Tensor z = zeros({3, 4, 2});
    CHECK_THROWS_WITH_AS(
        latent_attention({z, z, zeros({5, 6}), zeros({4, 2}), zeros({3, 6, 2}), zeros({3, 6, 2})},
                         LatentOrder::absorbed),
        "latent_attention: c (5, 6) and k_rope (4, 2) disagree", ShapeError);
    CHECK_THROWS_WITH_AS(
        latent_attention({z, z, zeros({5, 6}), zeros({5, 2}), zeros({3, 7, 2}), zeros({3, 6, 2})},
                         LatentOrder::absorbed),
        "latent_attention: c (5, 6) and w_uk (3, 7, 2) disagree", ShapeError);
  }

  TEST_CASE("differential attention: two streamed passes, a lambda for each head") {
    const VariantSizes n{.groups = 2};
    const VariantArrays x(n, 1), y(n, 2);
    const Array lambda = short_noise({6}, 3);
    const OracleResult first = attention_oracle(x.q, x.k, x.v, {.offset = 0});
    const OracleResult second = attention_oracle(y.q, y.k, x.v, {.offset = 0});
    Array want = first.output, weights = first.weights;
    for_each_index(want.shape,
                   [&](const Sizes& i) { want.at(i) -= lambda.at({i[1]}) * second.output.at(i); });
    for_each_index(weights.shape, [&](const Sizes& i) {
      weights.at(i) -= lambda.at({i[1]}) * second.weights.at(i);
    });
    for (const DType dtype : {f32, f64}) {
      const auto t = [&](const Array& array) { return to_tensor(array, dtype); };
      const DifferentialResult got = differential_attention(t(x.q), t(x.k), t(y.q), t(y.k), t(x.v),
                                                            t(lambda), {.causal = top_left});
      const I scores = I{2} * 6 * 37 * 53 * (dtype == f32 ? 4 : 8);
      CHECK(streaming_fault({got.output}, scores).empty());
      const double bound = dtype == f32 ? 4e-6 : 1e-13;
      CHECK(worst_error(Tensor(got.output), want) <= bound);
      CHECK(worst_error(eval(got.output, {.fuse = false}), want) <= bound);
      CHECK(worst_error(Tensor(got.weights), weights) <= bound);
    }
    const Tensor a = to_tensor(short_noise({6, 4}, 4)), b = to_tensor(short_noise({6, 4}, 5));
    const Array l = to_array(Tensor(differential_lambda(a, b, b, a, 0.8)));
    CHECK(worst_error(l, Array({6}, 0.8)) <= 1e-15);  // both products are the same
    CHECK_THROWS_AS(differential_attention(a, b, a, b, b, zeros({6})), ShapeError);
  }

  TEST_CASE("talking heads: nothing is streamed, and the plan says what that takes") {
    const VariantSizes n{.heads = 4, .groups = 4};
    const VariantArrays x(n);
    const Array ws = short_noise({4, 5}, 6), ww = short_noise({5, 4}, 7);
    Array dots({2, 4, 37, 53}), mixed({2, 5, 37, 53}), want({2, 4, 37, 7});
    for_each_index(dots.shape, [&](const Sizes& i) {
      for (I d = 0; d < 10; ++d) {
        dots.at(i) += x.q.at({i[0], i[1], i[2], d}) * x.k.at({i[0], i[1], i[3], d});
      }
      dots.at(i) /= std::sqrt(10.0);
    });
    for_each_index({2, 5, 37}, [&](const Sizes& row) {
      double total = 0;
      for (I k = 0; k < 53; ++k) {
        double s = 0;
        for (I h = 0; h < 4; ++h) s += dots.at({row[0], h, row[2], k}) * ws.at({h, row[1]});
        total += mixed.at({row[0], row[1], row[2], k}) = k <= row[2] ? std::exp(s) : 0;
      }
      for (I k = 0; k < 53; ++k) mixed.at({row[0], row[1], row[2], k}) /= total;
    });
    for_each_index(want.shape, [&](const Sizes& i) {
      for (I k = 0; k < 53; ++k) {
        for (I g = 0; g < 5; ++g) {
          want.at(i) +=
              mixed.at({i[0], g, i[2], k}) * ww.at({g, i[1]}) * x.v.at({i[0], i[1], k, i[3]});
        }
      }
    });
    for (const DType dtype : {f32, f64}) {
      const auto t = [&](const Array& array) { return to_tensor(array, dtype); };
      const AttentionResult got =
          talking_heads_attention(t(x.q), t(x.k), t(x.v), t(ws), t(ww), {.causal = top_left});
      for (const bool fuse : {true, false}) {
        CHECK(worst_error(eval(got.output, {.fuse = fuse}), want) <= (dtype == f32 ? 4e-6 : 1e-13));
      }
      const std::string plan = explain({got.output});
      CHECK_MESSAGE(plan.find("not fused: ") != std::string::npos, plan);
    }
    CHECK_THROWS_WITH_AS(talking_heads_attention(zeros({4, 3, 2}), zeros({4, 3, 2}),
                                                 zeros({4, 3, 2}), zeros({3, 4}), zeros({4, 4})),
                         "talking_heads_attention: q (4, 3, 2) and w_scores (3, 4) disagree",
                         ShapeError);
  }

  TEST_CASE("sigmoid attention: weights by themselves, hidden keys 0, streamed") {
    const VariantSizes n{.groups = 3};
    const VariantArrays x(n);
    Array want({2, 6, 37, 7});
    for_each_index({2, 6, 37, 53}, [&](const Sizes& i) {
      if (i[3] > i[2] + 5) return;
      double s = 0;
      for (I d = 0; d < 10; ++d)
        s += x.q.at({i[0], i[1], i[2], d}) * x.k.at({i[0], i[1] / 2, i[3], d});
      const double p = 1 / (1 + std::exp(-(s / std::sqrt(10.0) - std::log(53.0))));
      for (I e = 0; e < 7; ++e)
        want.at({i[0], i[1], i[2], e}) += p * x.v.at({i[0], i[1] / 2, i[3], e});
    });
    for (const DType dtype : {f32, f64}) {
      const auto t = [&](const Array& array) { return to_tensor(array, dtype); };
      const SigmoidResult got = sigmoid_attention(t(x.q), t(x.k), t(x.v), {.causal = 5});
      const std::string fault =
          streaming_fault({got.output}, I{2} * 6 * 37 * 53 * (dtype == f32 ? 4 : 8));
      CHECK_MESSAGE(fault.empty(), fault, "\n", explain({got.output}));
      for (const bool fuse : {true, false}) {
        CHECK(worst_error(eval(got.output, {.fuse = fuse}), want) <= (dtype == f32 ? 4e-6 : 1e-13));
      }
    }
    CHECK_THROWS_WITH_AS(
        sigmoid_attention(zeros({3, 4}), zeros({3, 4}), zeros({3, 4}), {.sinks = 1.0}),
        "sigmoid_attention: option sinks needs a softmax", ValueError);
  }

  TEST_CASE("merged parts of the keys are attention over all of them, whatever sees nothing") {
    const VariantSizes n{.groups = 2};
    const VariantArrays x(n);
    const OracleResult want = attention_oracle(x.q, x.k, x.v, {.window = std::pair<I, I>{6, 0}});
    for (const DType dtype : {f32, f64}) {
      const Expr q = to_tensor(x.q, dtype), k = to_tensor(x.k, dtype), v = to_tensor(x.v, dtype);
      const auto part = [&](I first, I last) {
        // A window that counts from the query's place among all keys.
        const Expr back = index("q") - index("k") - first;
        const AttentionResult r =
            dot_product_attention(q, slice(k, -2, first, last), slice(v, -2, first, last),
                                  {.mask = back >= 0 && back <= 6});
        return PartialAttention{r.output, r.logsumexp};
      };
      const double bound = dtype == f32 ? 4e-6 : 1e-13;
      const PartialAttention left =
          merge_attention(merge_attention(part(0, 9), part(9, 30)), part(30, 53));
      const PartialAttention right =
          merge_attention(part(0, 9), merge_attention(part(30, 53), part(9, 30)));
      for (const PartialAttention& merged : {left, right}) {
        CHECK(worst_error(Tensor(merged.output), want.output) <= bound);
        CHECK(worst_error(Tensor(merged.logsumexp), want.logsumexp) <= bound);
      }
    }
    const PartialAttention nothing{full({2, 3}, NAN), full({2}, -INFINITY)};
    const PartialAttention both = merge_attention(nothing, nothing);
    CHECK(Tensor(both.output).to_vector<float>() == std::vector<float>(6, 0));
    CHECK(Tensor(both.logsumexp).to_vector<float>() == std::vector<float>(2, -INFINITY));
    const PartialAttention one = merge_attention(nothing, {full({2, 3}, 5), full({2}, 100)});
    CHECK(Tensor(one.output).to_vector<float>() == std::vector<float>(6, 5));
    CHECK_THROWS_AS(merge_attention(nothing, {zeros({2, 3}), zeros({3})}), ShapeError);
  }
}
