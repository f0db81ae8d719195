// SPDX-License-Identifier: Apache-2.0
// The seed forms, dot products with options, and a block.
#include "program_forms.h"

#include <cmath>
#include <optional>

namespace einkern::test {
namespace {

using T = const Tensors&;

/// Weights of two heads, and of their projection.
Tensors two_heads() {
  Tensors inputs = {{"wp", noise({10, 7}, 9)}};
  for (int i = 0; i < 2; ++i) {
    const auto name = [&](const char* prefix) { return prefix + std::to_string(i); };
    inputs.emplace(name("wq"), noise({12, 6}, 10 + i));
    inputs.emplace(name("wk"), noise({12, 6}, 20 + i));
    inputs.emplace(name("wv"), noise({12, 5}, 30 + i));
  }
  return inputs;
}

std::vector<Expr> pair_of(const Tensors& t, const std::string& prefix) {
  return {t.at(prefix + "0"), t.at(prefix + "1")};
}

Expr normalised(const Expr& x) {
  const Expr centred = x - mean(x, -1, {.keep = true});
  return centred * rsqrt(mean(centred * centred, -1, {.keep = true}) + 1e-5);
}

}  // namespace

Tensor noise(const Shape& shape, std::uint64_t seed) {
  return Expr(random(shape, seed)) * 2.0 - 1.0;
}

Tensors with(Tensors inputs, const Tensors& more) {
  inputs.insert(more.begin(), more.end());
  return inputs;
}

Tensors qkv(std::int64_t keys, std::int64_t kv_heads) {
  return {{"q", noise({2, 4, 40, 16}, 1)},
          {"k", noise({2, kv_heads, keys, 16}, 2)},
          {"v", noise({2, kv_heads, keys, 16}, 3)}};
}

std::vector<ProgramForm> seed_forms() {
  const Tensor x = noise({2, 33, 12}, 5), one = noise({33, 12}, 6);
  const Tensors single = {
      {"wq", noise({12, 8}, 1)}, {"wk", noise({12, 8}, 2)}, {"wv", noise({12, 5}, 3)}};
  const Tensors fused = {{"wqkv", noise({12, 36}, 7)}, {"wp", noise({12, 9}, 8)}};
  const auto self = [](T t, const std::optional<Causal>& placed) {
    return std::vector{self_attention(t.at("x"), t.at("wq"), t.at("wk"), t.at("wv"), placed)};
  };
  const auto list = [](T t, const std::optional<Causal>& placed) {
    return std::vector{multihead_attention_list(t.at("x"), pair_of(t, "wq"), pair_of(t, "wk"),
                                                pair_of(t, "wv"), t.at("wp"), placed)};
  };
  return {
      {"softmax", {{"x", x}}, [](T t) { return std::vector{softmax(t.at("x"))}; }},
      {"self_attention", with(single, {{"x", x}}), [=](T t) { return self(t, {}); }},
      {"self_attention", with(single, {{"x", one}}), [=](T t) { return self(t, {}); }},
      {"self_attention_causal", with(single, {{"x", x}}), [=](T t) { return self(t, top_left); }},
      {"self_attention_causal", with(single, {{"x", one}}), [=](T t) { return self(t, top_left); }},
      {"multihead_attention_list", with(two_heads(), {{"x", x}}), [=](T t) { return list(t, {}); }},
      {"multihead_attention_list_causal", with(two_heads(), {{"x", x}}),
       [=](T t) { return list(t, top_left); }},
      {"multihead_cross_attention_list",
       with(two_heads(), {{"xq", x}, {"xv", noise({2, 21, 12}, 4)}}),
       [](T t) {
         return std::vector{multihead_cross_attention_list(t.at("xq"), t.at("xv"), pair_of(t, "wq"),
                                                           pair_of(t, "wk"), pair_of(t, "wv"),
                                                           t.at("wp"))};
       }},
      {"multihead_attention_vec", with(fused, {{"x", x}}),
       [](T t) {
         return std::vector{multihead_attention_vec(t.at("x"), t.at("wqkv"), t.at("wp"), 4)};
       }},
      {"multihead_attention_vec_causal", with(fused, {{"x", one}}),
       [](T t) {
         return std::vector{
             multihead_attention_vec(t.at("x"), t.at("wqkv"), t.at("wp"), 4, top_left)};
       }},
      {"multihead_module",
       {{"query", x},
        {"key", noise({2, 21, 12}, 2)},
        {"value", noise({2, 21, 12}, 3)},
        {"wq", noise({12, 16}, 4)},
        {"wk", noise({12, 16}, 5)},
        {"wv", noise({12, 8}, 6)},
        {"wo", noise({8, 12}, 7)},
        {"bq", noise({16}, 8)},
        {"bk", noise({16}, 9)},
        {"bv", noise({8}, 10)},
        {"bo", noise({12}, 11)}},
       [](T t) {
         const MultiheadAttention module({.q = t.at("wq"),
                                          .k = t.at("wk"),
                                          .v = t.at("wv"),
                                          .out = t.at("wo"),
                                          .q_bias = t.at("bq"),
                                          .k_bias = t.at("bk"),
                                          .v_bias = t.at("bv"),
                                          .out_bias = t.at("bo"),
                                          .heads = 4});
         const AttentionResult r = module(t.at("query"), t.at("key"), t.at("value"));
         return std::vector{r.output, r.weights};
       }},
  };
}

std::vector<ProgramForm> attention_forms() {
  return {
      {"multihead_attention",
       {{"x", noise({2, 40, 32}, 1)}, {"w", noise({32, 64}, 2)}, {"wp", noise({32, 32}, 3)}},
       [](T t) {
         return std::vector{multihead_attention(
             t.at("x"),
             {.qkv = t.at("w"), .out = t.at("wp"), .heads = 4, .kv_heads = 2, .causal = top_left})};
       }},
      {"dot_product_attention", qkv(),
       [](T t) {
         return std::vector{dot_product_attention(t.at("q"), t.at("k"), t.at("v")).output};
       }},
      {"dot_product_attention", qkv(33, 2),
       [](T t) {
         return std::vector{dot_product_attention(t.at("q"), t.at("k"), t.at("v")).output};
       }},
      {"dot_product_options",
       with(qkv(50), {{"slope", noise({4}, 4)},
                      {"sinks", noise({4}, 5)},
                      {"n", tensor<std::int64_t>({50, 41})}}),
       [](T t) {
         const Expr alibi = t.at("slope")["h"] * (index("k") - index("q"));
         const AttentionResult r = dot_product_attention(t.at("q"), t.at("k"), t.at("v"),
                                                         {.bias = alibi,
                                                          .lengths = t.at("n"),
                                                          .window = Window{4, 0},
                                                          .scale = 0.25,
                                                          .softcap = 20,
                                                          .sinks = t.at("sinks"),
                                                          .causal = bottom_right});
         return std::vector{r.output, r.logsumexp};
       }},
      {"segments", with(qkv(), {{"ids", Tensor(floordiv(arange(40), 13))}}),
       [](T t) {
         return std::vector{dot_product_attention(t.at("q"), t.at("k"), t.at("v"),
                                                  {.segments = t.at("ids"), .causal = top_left})
                                .output};
       }},
      {"window", with(qkv(300), {{"slope", noise({4}, 4)}}),
       [](T t) {
         Expr s = einsum("bhqd,bhkd->bhqk", t.at("q"), t.at("k")) / std::sqrt(16.0);
         s = s + t.at("slope")["h"] * (index("k") - index("q"));
         s = where(index("q") >= index("k") && index("q") - index("k") < 128, s, -inf);
         return std::vector{einsum("bhqk,bhkd->bhqd", softmax(s, "k"), t.at("v"))};
       }},
      {"softmax_by_hand", qkv(),
       [](T t) {
         const Expr s = einsum("bhqd,bhkd->bhqk", t.at("q"), t.at("k")) * 0.5;
         const Expr e = exp(s - max(s, "k", {.keep = true}));
         return std::vector{einsum("bhqk,bhkd->bhqd", e / sum(e, "k", {.keep = true}), t.at("v"))};
       }},
      {"block",
       {{"x", noise({2, 19, 16}, 1)},
        {"wqkv", noise({16, 48}, 2)},
        {"wo", noise({16, 16}, 3)},
        {"w1", noise({16, 64}, 4)},
        {"b1", noise({64}, 5)},
        {"w2", noise({64, 16}, 6)},
        {"b2", noise({16}, 7)}},
       [](T t) {
         const Expr x = t.at("x");
         const Expr a =
             x + multihead_attention(
                     normalised(x),
                     {.qkv = t.at("wqkv"), .out = t.at("wo"), .heads = 4, .causal = top_left});
         const Expr inner = gelu(linear(normalised(a), t.at("w1"), t.at("b1")), Gelu::tanh);
         return std::vector{a + linear(inner, t.at("w2"), t.at("b2"))};
       }},
  };
}

}  // namespace einkern::test
