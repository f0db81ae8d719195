// SPDX-License-Identifier: Apache-2.0
// Linear attention, retention and gated recurrences against their sums in double.
#include <doctest/doctest.h>

#include <cmath>
#include <functional>

#include "../../engine/base/error.h"
#include "../../ops/ops.h"
#include "variants.h"

using namespace einkern;
using namespace einkern::test;

namespace {

using I = std::int64_t;

double elu(double x) { return x > 0 ? x + 1 : std::exp(x); }

/// sum_k weight(b, h, q, k) v[k] over every pair, divided by the sum of weights where asked.
Array weighted(const Array& v, I queries, const std::function<double(const ScoreAt&)>& weight,
               bool normalise) {
  Array out({v.shape[0], v.shape[1], queries, v.shape[3]});
  for_each_index({v.shape[0], v.shape[1], queries}, [&](const Sizes& row) {
    double total = normalise ? 1e-6 : 0;
    for (I k = 0; k < v.shape[2]; ++k) {
      const double w = weight({row[0], row[1], row[2], k});
      total += w;
      for (I e = 0; e < v.shape[3]; ++e) {
        out.at({row[0], row[1], row[2], e}) += w * v.at({row[0], row[1], k, e});
      }
    }
    for (I e = 0; normalise && e < v.shape[3]; ++e) out.at({row[0], row[1], row[2], e}) /= total;
  });
  return out;
}

double product(const Array& q, const Array& k, const ScoreAt& at,
               const std::function<double(double)>& f) {
  double s = 0;
  for (I d = 0; d < q.shape[3]; ++d)
    s += f(q.at({at.b, at.h, at.q, d})) * f(k.at({at.b, at.h, at.k, d}));
  return s;
}

}  // namespace

TEST_SUITE("attention") {
  TEST_CASE("linear attention: every feature map, causal in chunks of any size, and not") {
    const VariantSizes n{.heads = 3, .groups = 3, .queries = 41, .keys = 41};
    const VariantArrays x(n);
    struct Map {
      FeatureMap map;
      std::function<double(double)> f;
    };
    for (const Map& m :
         {Map{FeatureMap::identity, [](double v) { return v; }}, Map{FeatureMap::elu, elu},
          Map{FeatureMap::relu, [](double v) { return std::max(v, 0.0); }}}) {
      for (const bool causal : {false, true}) {
        const bool normalise = m.map != FeatureMap::identity;
        const Array want = weighted(
            x.v, 41,
            [&](const ScoreAt& at) {
              return causal && at.k > at.q ? 0 : product(x.q, x.k, at, m.f);
            },
            normalise);
        for (const DType dtype : {f32, f64}) {
          for (const I chunk : {1, 8, 41, 100}) {
            const Expr o = linear_attention(
                to_tensor(x.q, dtype), to_tensor(x.k, dtype), to_tensor(x.v, dtype),
                {.features = m.map, .causal = causal, .normalise = normalise, .chunk = chunk});
            const double bound = dtype == f32 ? 2e-5 : 1e-12;
            CHECK(worst_error(Tensor(o), want) <= bound);
            CHECK(worst_error(eval(o, {.fuse = false}), want) <= bound);
          }
        }
      }
    }
    // Masked products within chunks are streamed: no step writes as much as they have.
    const Expr o = linear_attention(to_tensor(x.q), to_tensor(x.k), to_tensor(x.v),
                                    {.causal = true, .chunk = 41});
    const std::string fault = streaming_fault({o}, std::int64_t{2} * 3 * 41 * 41 * 8);
    CHECK_MESSAGE(fault.empty(), fault, "\n", explain({o}));
  }

  TEST_CASE("linear attention: other numbers of keys, no keys, no queries") {
    const VariantSizes n{.heads = 3, .groups = 3};
    const VariantArrays x(n);
    const Array want = weighted(
        x.v, 37, [&](const ScoreAt& at) { return product(x.q, x.k, at, elu); }, true);
    CHECK(worst_error(Tensor(linear_attention(to_tensor(x.q), to_tensor(x.k), to_tensor(x.v))),
                      want) <= 1e-12);
    CHECK(Tensor(linear_attention(ones({3, 2}), zeros({0, 2}), zeros({0, 4}))).to_vector<float>() ==
          std::vector<float>(12, 0));
    CHECK(Tensor(linear_attention(zeros({0, 2}), zeros({0, 2}), zeros({0, 4}), {.causal = true}))
              .size() == 0);
  }

  TEST_CASE("retention: a decay for each head, chunks of any size") {
    const VariantSizes n{.heads = 3, .groups = 3, .queries = 29, .keys = 29};
    const VariantArrays x(n);
    const Array decays({3}, {0.5, 0.96875, 1});
    const Array want = weighted(
        x.v, 29,
        [&](const ScoreAt& at) {
          if (at.k > at.q) return 0.0;
          return std::pow(decays.at({at.h}), at.q - at.k) * 0.3 *
                 product(x.q, x.k, at, [](double v) { return v; });
        },
        false);
    for (const DType dtype : {f32, f64}) {
      for (const I chunk : {1, 4, 7, 29}) {
        const Expr o = retention(to_tensor(x.q, dtype), to_tensor(x.k, dtype),
                                 to_tensor(x.v, dtype), to_tensor(decays, dtype), 0.3, chunk);
        const double bound = dtype == f32 ? 1e-5 : 1e-13;
        CHECK(worst_error(Tensor(o), want) <= bound);
        CHECK(worst_error(eval(o, {.fuse = false}), want) <= bound);
      }
    }
    const Tensor q = random({9, 4}, 1, f64), k = random({9, 4}, 2, f64), v = random({9, 3}, 3, f64);
    CHECK(worst_error(
              Tensor(retention(q, k, v, 1.0, {}, 2)),
              to_array(Tensor(linear_attention(
                  q * 0.5, k, v,
                  {.features = FeatureMap::identity, .causal = true, .normalise = false})))) <=
          1e-13);
    CHECK(retention_decays(3, f64).to_vector<double>() ==
          std::vector<double>{1 - 0x1p-5, 1 - 0x1p-6, 1 - 0x1p-7});
    CHECK_THROWS_WITH_AS(
        retention(q, k, v, zeros({2})),
        "retention: decay (2,) is neither a number nor one for each head of q (9, 4)", ShapeError);
    CHECK_THROWS_WITH_AS(retention(q, k, v, 1.0, {}, 0),
                         "retention: chunk is 0; it must be at least 1", ValueError);
  }

  TEST_CASE("gated linear attention: a gate for each feature, and one for all") {
    const VariantSizes n{.heads = 3, .groups = 3, .queries = 23, .keys = 23};
    const VariantArrays x(n);
    for (const Sizes& shape : {Sizes{2, 3, 23, 10}, Sizes{23, 1}}) {
      Array gate = short_noise(shape, 8);
      for (double& g : gate.data) g = (g + 1) / 2;
      Array want({2, 3, 23, 7});
      for_each_index({2, 3, 10, 7}, [&](const Sizes& i) {
        double state = 0;
        for (I t = 0; t < 23; ++t) {
          state = gate.at({i[0], i[1], t, i[2]}) * state +
                  x.k.at({i[0], i[1], t, i[2]}) * x.v.at({i[0], i[1], t, i[3]});
          want.at({i[0], i[1], t, i[3]}) += x.q.at({i[0], i[1], t, i[2]}) * state / std::sqrt(10.0);
        }
      });
      for (const DType dtype : {f32, f64}) {
        const Expr o = gated_linear_attention(to_tensor(x.q, dtype), to_tensor(x.k, dtype),
                                              to_tensor(x.v, dtype), to_tensor(gate, dtype));
        for (const bool fuse : {true, false}) {
          CHECK(worst_error(eval(o, {.fuse = fuse}), want) <= (dtype == f32 ? 4e-6 : 1e-13));
        }
      }
    }
    CHECK_THROWS_WITH_AS(gated_linear_attention(zeros({3, 4}), zeros({3, 5}), zeros({3, 2}), 1.0),
                         "gated_linear_attention: features of q (3, 4) and k (3, 5) disagree",
                         ShapeError);
    CHECK_THROWS_AS(
        gated_linear_attention(zeros({3, 4}), zeros({3, 4}), zeros({3, 2}), zeros({2, 3, 4})),
        ShapeError);
  }
}
