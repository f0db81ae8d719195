// SPDX-License-Identifier: Apache-2.0
// Multi-head attention with its projections, and the module form, against loops in double.
#include <doctest/doctest.h>

#include "../../attention/attention.h"
#include "../../engine/base/error.h"
#include "../../engine/tensor/create.h"
#include "../../ops/ops.h"
#include "oracle.h"

using namespace einkern;
using namespace einkern::test;

namespace {

using I = std::int64_t;

/// Weights of heads that share keys and values, with biases.
struct Weights {
  I heads, kv_heads, width, values;
  Array q, k, v, out, q_bias, k_bias, v_bias, out_bias;

  Weights(I model, I h, I g, I d, I e, I to, unsigned seed)
      : heads(h),
        kv_heads(g),
        width(d),
        values(e),
        q(noise({model, h * d}, seed)),
        k(noise({model, g * d}, seed + 1)),
        v(noise({model, g * e}, seed + 2)),
        out(noise({h * e, to}, seed + 3)),
        q_bias(noise({h * d}, seed + 4)),
        k_bias(noise({g * d}, seed + 5)),
        v_bias(noise({g * e}, seed + 6)),
        out_bias(noise({to}, seed + 7)) {}

  AttentionOptions separate(DType dtype = f64) const {
    return {.q = to_tensor(q, dtype),
            .k = to_tensor(k, dtype),
            .v = to_tensor(v, dtype),
            .out = to_tensor(out, dtype),
            .q_bias = to_tensor(q_bias, dtype),
            .k_bias = to_tensor(k_bias, dtype),
            .v_bias = to_tensor(v_bias, dtype),
            .out_bias = to_tensor(out_bias, dtype),
            .heads = heads,
            .kv_heads = kv_heads};
  }
  /// Queries, then keys, then values, side by side (values as wide as keys).
  AttentionOptions packed(DType dtype = f64) const {
    return {.qkv = Tensor(concat({to_tensor(q), to_tensor(k), to_tensor(v)}, 1)).astype(dtype),
            .out = to_tensor(out, dtype),
            .qkv_bias = Tensor(concat({to_tensor(q_bias), to_tensor(k_bias), to_tensor(v_bias)}, 0))
                            .astype(dtype),
            .out_bias = to_tensor(out_bias, dtype),
            .heads = heads,
            .kv_heads = kv_heads};
  }
  OracleResult run(const Array& xq, const Array& xk, const Array& xv,
                   const OracleOptions& options = {}) const {
    OracleResult result =
        attention_oracle(heads_apart(linear_oracle(xq, q, q_bias), heads),
                         heads_apart(linear_oracle(xk, k, k_bias), kv_heads),
                         heads_apart(linear_oracle(xv, v, v_bias), kv_heads), options);
    result.output = linear_oracle(heads_together(result.output), out, out_bias);
    return result;
  }
};

}  // namespace

TEST_SUITE("attention") {
  TEST_CASE("separate and packed weights, shared heads, causal and not") {
    const Array x = noise({2, 7, 5}, 1);
    for (const I kv_heads : {6, 3, 1}) {
      const Weights w(5, 6, kv_heads, 4, 4, 3, 2);
      for (const DType dtype : {f64, f32}) {
        const double allowed = dtype == f32 ? 1e-5 : 1e-13;
        for (const bool causal : {false, true}) {
          CAPTURE(kv_heads);
          AttentionOptions separate = w.separate(dtype), packed = w.packed(dtype);
          if (causal) separate.causal = packed.causal = top_left;
          OracleOptions oracle;
          if (causal) oracle.offset = 0;
          const Array want = w.run(x, x, x, oracle).output;
          const Tensor t = to_tensor(x, dtype);
          CHECK(worst_error(Tensor(multihead_attention(t, separate)), want) <= allowed);
          CHECK(worst_error(Tensor(multihead_attention(t, packed)), want) <= allowed);
          packed.head_dim = 4;
          CHECK(worst_error(Tensor(multihead_attention(t, packed)), want) <= allowed);
        }
      }
    }
  }

  TEST_CASE("three sequences: cross-attention, packed or not; values of another width") {
    const Array xq = noise({2, 4, 5}, 3), xk = noise({2, 9, 5}, 4), xv = noise({2, 9, 5}, 5);
    const Weights same(5, 4, 2, 3, 3, 5, 6), wide(5, 4, 2, 3, 7, 5, 7);
    const Tensor tq = to_tensor(xq), tk = to_tensor(xk), tv = to_tensor(xv);
    for (const AttentionOptions& options : {same.separate(), same.packed()}) {
      const AttentionResult got = multihead_attention(tq, tk, tv, options);
      const OracleResult want = same.run(xq, xk, xv);
      CHECK(worst_error(Tensor(got.output), want.output) <= 1e-13);
      CHECK(worst_error(Tensor(got.weights), want.weights) <= 1e-13);
      CHECK(worst_error(Tensor(got.logsumexp), want.logsumexp) <= 1e-13);
    }
    CHECK(worst_error(Tensor(multihead_attention(tq, tk, tv, wide.separate()).output),
                      wide.run(xq, xk, xv).output) <= 1e-13);
  }

  TEST_CASE("options of the scores reach them") {
    const Array x = noise({3, 6, 4}, 8);
    const Weights w(4, 4, 2, 3, 3, 4, 9);
    AttentionOptions options = w.packed();
    OracleOptions oracle{.bias = noise({4, 6, 6}, 10),
                         .lengths = Array({3}, {6, 2, 4}),
                         .window = std::pair<I, I>{3, 1},
                         .scale = 0.4,
                         .softcap = 3.0,
                         .sinks = noise({4}, 11),
                         .bottom_right = true};
    options.bias = to_tensor(*oracle.bias);
    options.lengths = to_tensor(*oracle.lengths, i32);
    options.window = Window{3, 1};
    options.scale = 0.4;
    options.softcap = 3.0;
    options.sinks = to_tensor(*oracle.sinks);
    options.causal = bottom_right;
    const Array ids({3, 6}, {0, 0, 0, 1, 1, 1, 0, 0, 0, 0, 0, 0, 2, 2, 3, 3, 3, 3});
    oracle.segments = {ids, ids};
    options.segments = to_tensor(ids, i64);
    CHECK(worst_error(Tensor(multihead_attention(to_tensor(x), options)),
                      w.run(x, x, x, oracle).output) <= 1e-13);
  }

  TEST_CASE("one sequence without a batch axis; without an output projection") {
    const Array x = noise({1, 7, 5}, 12);
    const Weights w(5, 2, 2, 4, 4, 5, 13);
    const Tensor got = multihead_attention(to_tensor(x)(0), w.packed());
    CHECK(got.shape() == Shape{7, 5});
    CHECK(worst_error(Array({1, 7, 5}, to_array(got).data), w.run(x, x, x).output) <= 1e-13);
    AttentionOptions bare = w.packed();
    bare.out = {};
    bare.out_bias = {};
    const Array heads = attention_oracle(heads_apart(linear_oracle(x, w.q, w.q_bias), 2),
                                         heads_apart(linear_oracle(x, w.k, w.k_bias), 2),
                                         heads_apart(linear_oracle(x, w.v, w.v_bias), 2))
                            .output;
    CHECK(worst_error(Tensor(multihead_attention(to_tensor(x), bare)), heads_together(heads)) <=
          1e-13);
  }

  TEST_CASE("a residual connection aligns: the output reads as the input") {
    const Tensor x = to_tensor(noise({2, 4, 6}, 14)).with_labels(Labels({"b", "n", "m"}));
    const Weights w(6, 2, 2, 3, 3, 6, 15);
    AttentionOptions options = w.packed();
    const Expr y = multihead_attention(x, options);
    CHECK(y.labels().to_vector(3) == std::vector<std::string>{"b", "n", ""});
    CHECK(Tensor(x + y).labels().to_vector(3) == std::vector<std::string>{"b", "n", "m"});
    options.out = to_tensor(w.out).with_labels(Labels({"", "m"}));
    CHECK(multihead_attention(x, options).labels().to_vector(3) ==
          std::vector<std::string>{"b", "n", "m"});
  }

  TEST_CASE("the module holds weights; the call says what is visible") {
    const Array xq = noise({2, 4, 5}, 16), xv = noise({2, 6, 5}, 17);
    const Weights w(5, 4, 2, 3, 3, 5, 18);
    const MultiheadAttention separate(w.separate()), packed(w.packed());
    const Tensor tq = to_tensor(xq), tv = to_tensor(xv);
    Array mask = noise({4, 6}, 19);
    for (double& x : mask.data) x = x > -0.3 ? 1 : 0;
    const OracleResult plain = w.run(xq, xv, xv);
    const OracleResult masked = w.run(xq, xv, xv, {.mask = mask, .bottom_right = true});
    for (const MultiheadAttention& module : {separate, packed}) {
      const auto [output, weights, logsumexp] = module(tq, tv, tv);
      CHECK(worst_error(Tensor(output), plain.output) <= 1e-13);
      CHECK(worst_error(Tensor(weights), plain.weights) <= 1e-13);
      const AttentionResult hidden =
          module(tq, tv, tv, {.mask = to_tensor(mask, boolean), .causal = bottom_right});
      CHECK(worst_error(Tensor(hidden.output), masked.output) <= 1e-13);
      CHECK(worst_error(Tensor(hidden.weights), masked.weights) <= 1e-13);
      CHECK(worst_error(Tensor(hidden.logsumexp), masked.logsumexp) <= 1e-13);
    }
  }

  TEST_CASE("errors name the weight or the option, and the sizes") {
    const Tensor x = zeros({2, 4, 6}), w = zeros({6, 18}), square = zeros({6, 6});
    const auto message = [&](const AttentionOptions& options) {
      try {
        multihead_attention(x, options);
      } catch (const Error& error) {
        return std::string(error.what());
      }
      return std::string("no error");
    };
    CHECK(message({.heads = 2}) == "multihead_attention: weights are missing: qkv, or q, k and v");
    CHECK(message({.q = square, .k = square, .heads = 2}) ==
          "multihead_attention: weights are missing: qkv, or q, k and v");
    CHECK(message({.qkv = w, .q = square, .heads = 2}) ==
          "multihead_attention: both qkv and q, k or v are given");
    CHECK(message({.qkv = w}) ==
          "multihead_attention: heads is 0, kv_heads 0, head_dim 0; heads is needed");
    CHECK(message({.qkv = w, .heads = 4}) ==
          "multihead_attention: the columns of qkv (6, 18) do not split into 12 heads");
    CHECK(message({.qkv = w, .heads = 4, .kv_heads = 3}) ==
          "multihead_attention: heads is 4, no multiple of kv_heads 3");
    CHECK(message({.qkv = w, .k_bias = zeros({6}), .heads = 3}) ==
          "multihead_attention: a bias of q, k or v is given without its weight");
    CHECK(message({.q = square, .k = square, .v = square, .qkv_bias = zeros({18}), .heads = 3}) ==
          "multihead_attention: qkv_bias is given without its weight");
    CHECK(message({.qkv = w, .out_bias = zeros({6}), .heads = 3}) ==
          "multihead_attention: out_bias is given without its weight");
    CHECK(message({.qkv = zeros({5, 18}), .heads = 3}) ==
          "multihead_attention: qkv (5, 18) does not project (2, 4, 6); weights are (in, out)");
    CHECK(message({.qkv = w, .out = zeros({5, 6}), .heads = 3}) ==
          "multihead_attention: out (5, 6) does not project (2, 4, 6); weights are (in, out)");
    CHECK(message({.qkv = w, .qkv_bias = zeros({6}), .heads = 3}) ==
          "multihead_attention: qkv_bias (6,) does not fit qkv (6, 18)");
    CHECK(message({.qkv = w, .heads = 3, .head_dim = 4}) ==
          "multihead_attention: head_dim is 4 but q has 2");
    CHECK(message({.q = square, .k = w, .v = square, .heads = 3}) ==
          "multihead_attention: a head has 2 columns in q (6, 6) but 6 in k (6, 18)");
    CHECK(message({.qkv = w, .heads = 3, .mask = zeros({5, 4}, boolean)}) ==
          "multihead_attention: mask of shape (5, 4) cannot broadcast to the scores (2, 3, 4, 4)");

    const MultiheadAttention module({.qkv = w, .heads = 3});
    CHECK_THROWS_WITH_AS(module(x, x, x, {.qkv = w}),
                         "MultiheadAttention: option qkv is a weight; it cannot be used here",
                         ValueError);
    CHECK_THROWS_WITH_AS(module(x, x, x, {.heads = 3}),
                         "MultiheadAttention: heads, kv_heads and head_dim belong to the module",
                         ValueError);
    CHECK_THROWS_WITH_AS(MultiheadAttention({.qkv = w, .heads = 3, .causal = top_left}),
                         "MultiheadAttention: option causal belongs to the call", ValueError);
  }
}
