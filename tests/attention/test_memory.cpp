// SPDX-License-Identifier: Apache-2.0
// What masks and biases take: no step of a streamed pass writes anything that grows as rows times
// keys, not even truth values.
#include <doctest/doctest.h>

#include <functional>

#include "../../ops/ops.h"
#include "variants.h"

using namespace einkern;
using namespace einkern::test;

namespace {

using I = std::int64_t;
constexpr I kLong = 1024;  // queries and keys: their matrix of bytes is 1 MiB, an operand 32 kB

Tensor ids() { return Tensor(floordiv(Expr(arange(kLong, i32)), 100)); }

}  // namespace

TEST_SUITE("attention") {
  TEST_CASE("options and patterns take memory linear in the number of positions") {
    const Expr x = zeros({1, 2, kLong, 4});
    const auto with = [&](const AttentionOptions& options) {
      return dot_product_attention(x, x, x, options).output;
    };
    const Tensor seen = ones({kLong, kLong}, boolean), bias = zeros({kLong, kLong});
    const Tensor row = ones({kLong}, boolean);
    const std::vector<I> cuts{0, 300, 900};
    const Tensor offsets = from_values(std::span<const I>(cuts), {3});
    const struct {
      const char* name;
      Expr output;
    } cases[] = {
        {"documents", with({.segments = Segments(ids())})},
        {"documents of queries and of keys, causal",
         with({.segments = Segments(ids(), ids()), .causal = top_left})},
        {"documents of each entry", with({.segments = Segments(expand(ids(), "", 1))})},
        {"a dense mask and arithmetic",
         with({.mask = BoolExpr(named(seen, "qk")) && index("k") <= index("q")})},
        {"a mask of rows and one of keys",
         with({.mask = BoolExpr(named(row, "q")) || BoolExpr(named(row, "k"))})},
        {"a dense bias", with({.bias = bias})},
        {"a scaled bias", with({.bias = 2 * Expr(bias)})},
        {"buckets", with({.bias = bucketed_bias(zeros({32, 2}), kLong, kLong)})},
        {"linear biases", alibi_attention(x, x, x, alibi_slopes(2)).output},
        {"block-sparse", with({.mask = block_sparse(ones({2, 16, 16}, boolean), 64)})},
        {"block-sparse and causal",
         with({.mask = block_sparse(ones({16, 16}, boolean), 64), .causal = top_left})},
        {"packed", varlen_attention(x, x, x, offsets, {.causal = bottom_right}).output},
        {"prefix", with({.mask = prefix_lm(10)})},
        {"lengths and a window",
         with({.lengths = full({1}, 9, i64), .window = Window{9, 0}, .causal = bottom_right})},
        {"rotary", rotary_attention(x, x, x, {}, {}).output},
    };
    for (const auto& c : cases) {
      CAPTURE(c.name);
      const std::string fault = streaming_fault({c.output}, kLong * kLong / 2);
      CHECK_MESSAGE(fault.empty(), fault, "\n", explain({c.output}));
    }
  }

  TEST_CASE("a mask that a streamed pass and something else read is computed once for the other") {
    const VariantArrays a({.batch = 1, .heads = 2, .groups = 2, .queries = 12, .keys = 12});
    const Tensor q = to_tensor(a.q), k = to_tensor(a.k), v = to_tensor(a.v);
    const Expr blocks = block_sparse(ones({3, 3}, boolean), 4);
    const Tensor by(floordiv(Expr(arange(12)), 5));
    const Expr same = named(by, "q") == named(by, "k");
    const Expr s = einsum("bhqd,bhkd->bhqk", q, k);
    const Expr masked = mask(s, BoolExpr(blocks), BoolExpr(same));
    const Expr o = einsum("bhqk,bhke->bhqe", softmax(masked, "k"), v);
    const Expr count = sum(where(BoolExpr(unnamed(blocks)) && BoolExpr(unnamed(same)), 1.0, 0.0));
    const auto fused = eval({o, count}), plain = eval({o, count}, {.fuse = false});
    CHECK(worst_error(fused[0], to_array(plain[0])) <= 1e-14);
    CHECK(fused[1].item<double>() == 5 * 5 + 5 * 5 + 2 * 2);
    CHECK(plain[1].item<double>() == fused[1].item<double>());
  }
}
