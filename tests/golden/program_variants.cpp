// SPDX-License-Identifier: Apache-2.0
// Variants of attention: masks by pattern, scores, order of products, and forms without a softmax.
#include <cmath>

#include "program_forms.h"

namespace einkern::test {
namespace {

using T = const Tensors&;
using I = std::int64_t;

/// Attention of q, k and v, the output alone.
std::vector<Expr> attended(T t, const AttentionOptions& options) {
  return {dot_product_attention(t.at("q"), t.at("k"), t.at("v"), options).output};
}

Tensors latent() {
  return {{"q_nope", noise({2, 4, 24, 8}, 1)}, {"q_rope", noise({2, 4, 24, 4}, 2)},
          {"c", noise({2, 24, 10}, 3)},        {"k_rope", noise({2, 24, 4}, 4)},
          {"w_uk", noise({4, 10, 8}, 5)},      {"w_uv", noise({4, 10, 6}, 6)}};
}
std::vector<Expr> latent_in(T t, LatentOrder order) {
  return {latent_attention({t.at("q_nope"), t.at("q_rope"), t.at("c"), t.at("k_rope"), t.at("w_uk"),
                            t.at("w_uv")},
                           order, {.causal = top_left})
              .output};
}

Tensors packed() {
  return {{"q", noise({4, 40, 16}, 1)}, {"k", noise({4, 40, 16}, 2)}, {"v", noise({4, 40, 16}, 3)}};
}

}  // namespace

std::vector<ProgramForm> variant_forms() {
  return {
      {"prefix_lm", with(qkv(), {{"n", tensor<I>({9, 30})}}),
       [](T t) { return attended(t, {.mask = prefix_lm(t.at("n")["b"])}); }},
      {"dilated", qkv(),
       [](T t) {
         const BoolExpr near = index("q") - index("k") < 2;
         const BoolExpr seen = index("k") <= index("q") && (near || dilated(8, 0, 3));
         return attended(t, {.mask = seen});
       }},
      {"local_global", with(qkv(), {{"g", Tensor(Expr(noise({2, 40}, 4)) > 0.8)}}),
       [](T t) {
         const Expr g = t.at("g");
         const BoolExpr marked = local_global(4, 0, g["bq"], g["bk"]);
         return std::vector{attended(t, {.mask = local_global(4, 4, 2)})[0],
                            attended(t, {.mask = marked})[0]};
       }},
      {"block_sparse", with(qkv(), {{"blocks", Tensor(Expr(noise({4, 5, 5}, 4)) > 0)}}),
       [](T t) {
         return std::vector{attended(t, {.mask = block_sparse(t.at("blocks"), 8)})[0],
                            attended(t, {.mask = block_local(8, 1), .causal = top_left})[0]};
       }},
      {"varlen", with(packed(), {{"offsets", tensor<I>({0, 13, 13, 36})}}),
       [](T t) {
         const AttentionResult r = varlen_attention(t.at("q"), t.at("k"), t.at("v"),
                                                    t.at("offsets"), {.causal = top_left});
         return std::vector{r.output, r.logsumexp};
       }},
      {"varlen_cross",
       with(packed(),
            {{"offsets_q", tensor<I>({0, 4, 20, 40})}, {"offsets_k", tensor<I>({0, 9, 25, 40})}}),
       [](T t) {
         return std::vector{varlen_attention(t.at("q"), t.at("k"), t.at("v"),
                                             {t.at("offsets_q"), t.at("offsets_k")},
                                             {.window = Window{6, 0}, .causal = bottom_right})
                                .output};
       }},
      {"alibi", qkv(),
       [](T t) {
         return std::vector{
             alibi_attention(t.at("q"), t.at("k"), t.at("v"), alibi_slopes(4), {.causal = top_left})
                 .output};
       }},
      {"relative_bias", with(qkv(50), {{"t", noise({4, 89}, 4)}}),
       [](T t) { return attended(t, {.bias = relative_bias(t.at("t"), 40)}); }},
      {"bucketed_bias", with(qkv(50), {{"table", noise({16, 4}, 4)}}),
       [](T t) {
         return attended(
             t, {.bias = bucketed_bias(t.at("table"), 40, 50, {.count = 16, .max_distance = 32}),
                 .scale = 1});
       }},
      {"rotary", with(qkv(), {{"p", Tensor(Expr(arange(40)) + 7)}}),
       [](T t) {
         const RopeOptions turn{
             .base = rope_ntk_base(10000, 4, 12), .dims = 12, .positions = t.at("p")};
         return std::vector{
             rotary_attention(t.at("q"), t.at("k"), t.at("v"), turn, turn, {.causal = top_left})
                 .output};
       }},
      {"rotary_by_hand", qkv(),
       [](T t) {
         const RopeOptions turn{.interleaved = true, .scale = 2};
         return std::vector{rotary_attention(t.at("q"), t.at("k"), t.at("v"), turn, turn).output};
       }},
      {"qk_norm", with(qkv(), {{"wq", noise({16}, 4)}, {"wk", noise({16}, 5)}}),
       [](T t) {
         return std::vector{qk_norm_attention(t.at("q"), t.at("k"), t.at("v"),
                                              {.weight = t.at("wq"), .eps = 1e-6},
                                              {.weight = t.at("wk"), .eps = 1e-6})
                                .output};
       }},
      {"cosine", qkv(),
       [](T t) {
         return std::vector{
             cosine_attention(t.at("q"), t.at("k"), t.at("v"), {.scale = 10, .causal = top_left})
                 .output};
       }},
      {"latent_decompressed", latent(),
       [](T t) { return latent_in(t, LatentOrder::decompressed); }},
      {"latent_absorbed", latent(), [](T t) { return latent_in(t, LatentOrder::absorbed); }},
      {"differential",
       {{"q1", noise({2, 4, 40, 8}, 1)},
        {"k1", noise({2, 4, 40, 8}, 2)},
        {"q2", noise({2, 4, 40, 8}, 3)},
        {"k2", noise({2, 4, 40, 8}, 4)},
        {"v", noise({2, 4, 40, 16}, 5)},
        {"a1", noise({8}, 6)},
        {"b1", noise({8}, 7)},
        {"a2", noise({8}, 8)},
        {"b2", noise({8}, 9)}},
       [](T t) {
         const Expr by = differential_lambda(t.at("a1"), t.at("b1"), t.at("a2"), t.at("b2"), 0.8);
         return std::vector{differential_attention(t.at("q1"), t.at("k1"), t.at("q2"), t.at("k2"),
                                                   t.at("v"), by, {.causal = top_left})
                                .output};
       }},
      {"merge", qkv(50),
       [](T t) {
         const auto part = [&](std::optional<I> from, std::optional<I> to) {
           const AttentionResult r = dot_product_attention(t.at("q"), slice(t.at("k"), 2, from, to),
                                                           slice(t.at("v"), 2, from, to));
           return PartialAttention{r.output, r.logsumexp};
         };
         const PartialAttention r = merge_attention(part({}, 25), part(25, {}));
         return std::vector{r.output, r.logsumexp};
       }},
      {"sigmoid", qkv(),
       [](T t) {
         return std::vector{
             sigmoid_attention(t.at("q"), t.at("k"), t.at("v"), {.causal = top_left}).output};
       }},
      {"linear_causal", qkv(),
       [](T t) {
         return std::vector{
             linear_attention(t.at("q"), t.at("k"), t.at("v"),
                              {.features = FeatureMap::relu, .causal = true, .chunk = 16})};
       }},
      {"retention", qkv(),
       [](T t) {
         return std::vector{
             retention(t.at("q"), t.at("k"), t.at("v"), retention_decays(4), {}, 16)};
       }},
      {"retention_by_hand", with(qkv(), {{"decay", retention_decays(4)}}),
       [](T t) {
         Expr s = einsum("bhqd,bhkd->bhqk", t.at("q"), t.at("k")) / std::sqrt(16.0);
         s = where(index("k") <= index("q"), s * pow(t.at("decay")["h"], index("q") - index("k")),
                   0);
         return std::vector{einsum("bhqk,bhkd->bhqd", s, t.at("v"))};
       }},
      {"paged",
       {{"q", noise({2, 4, 3, 16}, 1)},
        {"keys", noise({7, 2, 8, 16}, 2)},
        {"values", noise({7, 2, 8, 16}, 3)},
        {"table", Tensor(split(Expr(tensor<I>({6, 1, 4, 0, 3, 2})), 0, {"b", "t"}, {2, 3}))},
        {"n", tensor<I>({19, 8})}},
       [](T t) {
         return std::vector{paged_attention(t.at("q"),
                                            {.keys = t.at("keys"),
                                             .values = t.at("values"),
                                             .table = t.at("table"),
                                             .lengths = t.at("n")},
                                            {.causal = bottom_right})
                                .output};
       }},
      {"decode",
       {{"q", noise({2, 4, 3, 16}, 1)},
        {"keys", noise({2, 4, 64, 16}, 2)},
        {"values", noise({2, 4, 64, 16}, 3)},
        {"length", full({}, 29, i64)}},
       [](T t) {
         const Expr own = index("q") + (Expr(t.at("length")) - 3);
         Expr s = einsum("bhqd,bhkd->bhqk", t.at("q"), t.at("keys")) / std::sqrt(16.0);
         s = mask(s, index("k") <= own);
         return std::vector{einsum("bhqk,bhkd->bhqd", softmax(s, "k"), t.at("values"))};
       }},
      {"dropout", with(qkv(), {{"seed", full({}, 7, i64)}}),
       [](T t) {
         const Expr s = einsum("bhqd,bhkd->bhqk", t.at("q"), t.at("k")) / std::sqrt(16.0);
         return std::vector{
             einsum("bhqk,bhkd->bhqd", dropout(softmax(s, "k"), 0.1, t.at("seed")), t.at("v"))};
       }},
      {"encoder_block",
       {{"x", noise({2, 19, 16}, 1)},
        {"wq", noise({16, 16}, 2)},
        {"wk", noise({16, 16}, 3)},
        {"wv", noise({16, 16}, 4)},
        {"wo", noise({16, 16}, 5)},
        {"up", noise({16, 64}, 6)},
        {"down", noise({64, 16}, 7)},
        {"ub", noise({64}, 8)},
        {"db", noise({16}, 9)},
        {"g1", noise({16}, 10)},
        {"b1", noise({16}, 11)},
        {"g2", noise({16}, 12)},
        {"b2", noise({16}, 13)}},
       [](T t) {
         const EncoderBlock block({.attention = {.q = t.at("wq"),
                                                 .k = t.at("wk"),
                                                 .v = t.at("wv"),
                                                 .out = t.at("wo"),
                                                 .heads = 4},
                                   .feed = {.up = t.at("up"),
                                            .down = t.at("down"),
                                            .up_bias = t.at("ub"),
                                            .down_bias = t.at("db"),
                                            .activation = Activation::relu},
                                   .attention_norm = {.weight = t.at("g1"), .bias = t.at("b1")},
                                   .feed_norm = {.weight = t.at("g2"), .bias = t.at("b2")}});
         return std::vector{block(t.at("x"))};
       }},
      {"encoder_block_rms",
       {{"x", noise({2, 19, 16}, 1)},
        {"wqkv", noise({16, 32}, 2)},
        {"wo", noise({16, 16}, 3)},
        {"up", noise({16, 24}, 4)},
        {"gate", noise({16, 24}, 5)},
        {"down", noise({24, 16}, 6)},
        {"g1", noise({16}, 7)},
        {"g2", noise({16}, 8)},
        {"lengths", tensor<std::int64_t>({19, 11})}},
       [](T t) {
         const EncoderBlock block(
             {.attention = {.qkv = t.at("wqkv"), .out = t.at("wo"), .heads = 4, .kv_heads = 2},
              .feed = {.up = t.at("up"),
                       .down = t.at("down"),
                       .gate = t.at("gate"),
                       .activation = Activation::silu},
              .attention_norm = {.weight = t.at("g1")},
              .feed_norm = {.weight = t.at("g2")},
              .form = {.pre_norm = true, .rms = true}});
         return std::vector{block(t.at("x"), {.lengths = t.at("lengths"), .window = Window{7, 7}})};
       }},
      {"decoder_block",
       {{"x", noise({2, 13, 16}, 1)},
        {"memory", noise({2, 19, 16}, 2)},
        {"wqkv", noise({16, 48}, 3)},
        {"wo", noise({16, 16}, 4)},
        {"cq", noise({16, 16}, 5)},
        {"ck", noise({16, 16}, 6)},
        {"cv", noise({16, 16}, 7)},
        {"co", noise({16, 16}, 8)},
        {"lengths", tensor<std::int64_t>({19, 11})},
        {"up", noise({16, 24}, 9)},
        {"down", noise({24, 16}, 10)},
        {"g1", noise({16}, 11)},
        {"b1", noise({16}, 12)},
        {"g2", noise({16}, 13)},
        {"b2", noise({16}, 14)},
        {"g3", noise({16}, 15)},
        {"b3", noise({16}, 16)}},
       [](T t) {
         const DecoderBlock block(
             {.attention = {.qkv = t.at("wqkv"), .out = t.at("wo"), .heads = 4},
              .cross = AttentionOptions{.q = t.at("cq"),
                                        .k = t.at("ck"),
                                        .v = t.at("cv"),
                                        .out = t.at("co"),
                                        .heads = 4},
              .feed = {.up = t.at("up"), .down = t.at("down"), .activation = Activation::relu},
              .attention_norm = {.weight = t.at("g1"), .bias = t.at("b1"), .eps = 1e-6},
              .cross_norm = {.weight = t.at("g3"), .bias = t.at("b3"), .eps = 1e-6},
              .feed_norm = {.weight = t.at("g2"), .bias = t.at("b2"), .eps = 1e-6}});
         return std::vector{block(t.at("x"), t.at("memory"), {}, {.lengths = t.at("lengths")})};
       }},
  };
}

std::vector<ProgramForm> plain_forms() {
  return {
      {"talking_heads",
       with(qkv(), {{"w_scores", noise({4, 6}, 4)}, {"w_weights", noise({6, 4}, 5)}}),
       [](T t) {
         return std::vector{talking_heads_attention(t.at("q"), t.at("k"), t.at("v"),
                                                    t.at("w_scores"), t.at("w_weights"),
                                                    {.causal = top_left})
                                .output};
       }},
      {"linear", qkv(50),
       [](T t) { return std::vector{linear_attention(t.at("q"), t.at("k"), t.at("v"))}; }},
      {"gated_linear", with(qkv(), {{"g", noise({2, 4, 40, 16}, 4)}}),
       [](T t) {
         return std::vector{
             gated_linear_attention(t.at("q"), t.at("k"), t.at("v"), sigmoid(t.at("g")))};
       }},
      {"gated_linear_by_hand", with(qkv(), {{"g", noise({2, 4, 40, 16}, 4)}}),
       [](T t) {
         const Expr kv = einsum("bhnd,bhne->bhnde", t.at("k"), t.at("v"));
         const Expr states = scan(kv, "n", named(sigmoid(t.at("g")), "bhnd"));
         return std::vector{einsum("bhnd,bhnde->bhne", t.at("q"), states) / std::sqrt(16.0)};
       }},
      {"embedding",
       {{"table", noise({11, 6}, 1)},
        {"words", Tensor(split(Expr(tensor<I>({3, 0, 10, 7, 7, 1})), 0, {"b", "n"}, {2, 3}))}},
       [](T t) {
         const Expr x = named(take(t.at("table"), t.at("words"), 0), "bnd") * std::sqrt(6.0);
         const Expr even = index("d") - mod(index("d"), 2);
         const Expr angle = index("n") * pow(10000, -even / 6);
         return std::vector{x + where(mod(index("d"), 2) == 0, sin(angle), cos(angle))};
       }},
  };
}

}  // namespace einkern::test
