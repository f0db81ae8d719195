// SPDX-License-Identifier: Apache-2.0
// Keys and values in 16-bit floats: the answer that f32 copies of them give, without the copies.
#include <doctest/doctest.h>

#include <cmath>
#include <limits>
#include <random>
#include <string>

#include "../../attention/attention.h"
#include "../../engine/tensor/create.h"
#include "../../ops/ops.h"
#include "fusion.h"
#include "oracle.h"

using namespace einkern;
using namespace einkern::test;

namespace {

using I = std::int64_t;

struct Sizes4 {
  I batch, heads, groups, queries, keys, width, values;
};

/// Where keys and values lie.
enum class Layout16 { heads_second, heads_third, transposed, reversed };

/// (b, g, k, d) in a memory of another order; what lies between is not a number.
Tensor laid_out(const Tensor& t, Layout16 layout) {
  const auto behind = [&](std::initializer_list<Axis> order) {
    return t.permute(order).copy().permute(order);  // each is its own inverse
  };
  switch (layout) {
    case Layout16::heads_third:
      return behind({0, 2, 1, 3});
    case Layout16::transposed:
      return behind({0, 1, 3, 2});
    case Layout16::reversed: {
      const Tensor wide =
          full({t.shape(0), t.shape(1), t.shape(2), 2 * t.shape(3)}, NAN, t.dtype());
      Tensor view = wide.slice(3, 0, t.shape(3)).slice(2, {}, {}, -1);
      view.assign(t);
      return view;
    }
    default:
      return t;
  }
}

bool streams_alone(const Expr& output) {
  const std::string plan = explain_json({output});
  const std::string kind = "\"kind\": ";
  const std::size_t first = plan.find(kind);
  return plan.find("\"kind\": \"attend\"") == first && plan.find(kind, first + 1) == plan.npos;
}

}  // namespace

TEST_SUITE("attention") {
  TEST_CASE("keys and values in f16 and bf16: fused, plain and by definition") {
    constexpr Sizes4 kSizes[] = {
        {2, 4, 4, 1, 37, 16, 16},   {1, 6, 2, 1, 200, 33, 7},  {3, 8, 1, 1, 70, 128, 64},
        {1, 5, 1, 1, 193, 40, 130}, {1, 3, 1, 2, 66, 1, 1},    {2, 2, 2, 70, 90, 19, 23},
        {1, 4, 2, 300, 45, 64, 65}, {1, 2, 1, 17, 400, 8, 48}, {1, 1, 1, 3, 1500, 16, 16}};
    unsigned seed = 1;
    int few = 0, many = 0;
    for (const Sizes4& n : kSizes) {
      (n.queries * n.heads / n.groups <= 8 ? few : many) += 1;
      for (const auto& stored : {std::pair(f16, f16), std::pair(bf16, bf16), std::pair(f16, bf16),
                                 std::pair(f32, bf16)}) {
        for (const Layout16 layout : {Layout16::heads_second, Layout16::heads_third,
                                      Layout16::transposed, Layout16::reversed}) {
          const Tensor q = to_tensor(noise({n.batch, n.heads, n.queries, n.width}, seed++), f32);
          const Tensor k = laid_out(
              to_tensor(noise({n.batch, n.groups, n.keys, n.width}, seed++), stored.first), layout);
          const Tensor v = laid_out(
              to_tensor(noise({n.batch, n.groups, n.keys, n.values}, seed++), stored.second),
              layout);
          AttentionOptions options;
          OracleOptions by_definition;
          if (seed % 2 == 0) {
            options.causal = bottom_right;
            by_definition.bottom_right = true;
          }
          if (seed % 3 == 0) options.softcap = by_definition.softcap = 3.0;
          const Expr output = dot_product_attention(q, k, v, options).output;
          CAPTURE(n.keys);
          CAPTURE(n.queries);
          CAPTURE(static_cast<int>(layout));
          CHECK(output.dtype() == f32);
          CHECK_MESSAGE(streams_alone(output), explain({output}));
          const Array want =
              attention_oracle(to_array(q), to_array(k), to_array(v), by_definition).output;
          CHECK(worst_error(Tensor(output), want) <= 1e-6);
          CHECK(worst_error(eval(output, {.fuse = false}), want) <= 1e-6);
        }
      }
    }
    CHECK(few >= 4);
    CHECK(many >= 3);
  }

  TEST_CASE("f64 queries meet keys and values in 16 bits") {
    for (const I queries : {1, 40}) {
      const Tensor q = to_tensor(noise({1, 2, queries, 16}, 1));
      const Tensor k = to_tensor(noise({1, 2, 50, 16}, 2), f16);
      const Tensor v = to_tensor(noise({1, 2, 50, 9}, 3), bf16);
      const Expr output = dot_product_attention(q, k, v).output;
      CHECK(output.dtype() == f64);
      CHECK_MESSAGE(streams_alone(output), explain({output}));
      const Array want = attention_oracle(to_array(q), to_array(k), to_array(v)).output;
      CHECK(worst_error(Tensor(output), want) <= 1e-14);
    }
  }

  TEST_CASE("hidden 16-bit values may hold anything, visible ones count as they are") {
    for (const DType stored : {f16, bf16}) {
      for (const I queries : {1, 60}) {
        const Tensor q = to_tensor(noise({1, 2, queries, 24}, 4), f32);
        const Tensor k = to_tensor(noise({1, 2, 70, 24}, 5), stored);
        const Tensor v = to_tensor(noise({1, 2, 70, 12}, 6), stored);
        Array mask({70}, 1);
        for (const I key : {3, 20, 69}) {
          mask.at({key}) = 0;
          v.slice(2, key, key + 1).fill(key == 20 ? NAN : INFINITY);
          k.slice(2, key, key + 1).fill(NAN);
        }
        AttentionOptions options;
        options.mask = to_tensor(mask, boolean);
        const Expr output = dot_product_attention(q, k, v, options).output;
        Array clean_k = to_array(k), clean_v = to_array(v);
        for (Array* array : {&clean_k, &clean_v}) {
          for (double& x : array->data) x = std::isfinite(x) ? x : 0;
        }
        const Array want = attention_oracle(to_array(q), clean_k, clean_v, {.mask = mask}).output;
        CHECK(worst_error(Tensor(output), want) <= 1e-6);
        CHECK(worst_error(eval(output, {.fuse = false}), want) <= 1e-6);

        // A visible infinity reaches its column of every row, and that one only.
        v.slice(2, 7, 8).slice(3, 5, 6).fill(-INFINITY);
        const Tensor seen = output;
        for (I row = 0; row < queries; ++row) {
          CHECK(seen(0, 1, row, 5).item<float>() == -INFINITY);
          CHECK(std::isfinite(seen(0, 1, row, 4).item<float>()));
        }
      }
    }
  }

  TEST_CASE("the smallest f16 values are not flushed") {
    const Tensor q = ones({1, 1, 1, 32}), k = zeros({1, 1, 40, 32}, f16);
    const double tiny = 0x1p-24;  // the least denormal; a sum of equal weights keeps it
    const Tensor v = full({1, 1, 40, 20}, tiny, f16);
    for (const I rows : {1, 50}) {
      const Tensor many = q.broadcast({1, 1, rows, 32}).copy();
      const Tensor out = dot_product_attention(many, k, v).output;
      for (const double x : out.to_vector<double>()) CHECK(std::abs(x / tiny - 1) <= 1e-6);
    }
  }
}
