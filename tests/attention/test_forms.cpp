// SPDX-License-Identifier: Apache-2.0
// The seed forms: single-head attention, heads from lists, heads from one fused weight; and the
// errors of dot-product attention.
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

/// One head: (b, n, i) with weights (i, d), (i, d), (i, e).
Array head_oracle(const Array& xq, const Array& xv, const Array& wq, const Array& wk,
                  const Array& wv, const OracleOptions& options) {
  return heads_together(attention_oracle(heads_apart(linear_oracle(xq, wq), 1),
                                         heads_apart(linear_oracle(xv, wk), 1),
                                         heads_apart(linear_oracle(xv, wv), 1), options)
                            .output);
}

/// Arrays side by side along the last axis.
Array side_by_side(const std::vector<Array>& parts) {
  Sizes shape = parts[0].shape;
  shape.back() = 0;
  for (const Array& part : parts) shape.back() += part.shape.back();
  Array result(shape);
  I start = 0;
  for (const Array& part : parts) {
    for_each_index(part.shape, [&](Sizes i) {
      const double value = part.at(i);
      i.back() += start;
      result.at(i) = value;
    });
    start += part.shape.back();
  }
  return result;
}

struct Placement {
  std::optional<Causal> causal;
  OracleOptions oracle;
};
const Placement kPlacements[] = {{{}, {}},
                                 {top_left, {.offset = 0}},
                                 {bottom_right, {.bottom_right = true}},
                                 {-1, {.offset = -1}},
                                 {2, {.offset = 2}}};

}  // namespace

TEST_SUITE("attention") {
  TEST_CASE("self-attention of one sequence and of a batch, d_v unlike d_k") {
    const Array x = noise({3, 7, 5}, 1), wq = noise({5, 4}, 2), wk = noise({5, 4}, 3),
                wv = noise({5, 6}, 4);
    for (const DType dtype : {f64, f32}) {
      const Tensor t = to_tensor(x, dtype), q = to_tensor(wq, dtype), k = to_tensor(wk, dtype),
                   v = to_tensor(wv, dtype);
      for (const Placement& placed : kPlacements) {
        const Array want = head_oracle(x, x, wq, wk, wv, placed.oracle);
        CHECK(worst_error(Tensor(self_attention(t, q, k, v, placed.causal)), want) <=
              (dtype == f32 ? 4e-6 : 1e-13));
        const Tensor one = self_attention(t(1), q, k, v, placed.causal);
        CHECK(one.shape() == Shape{7, 6});
        for_each_index({7, 6}, [&](const Sizes& i) {
          CHECK(to_array(one).at(i) == doctest::Approx(want.at({1, i[0], i[1]})).epsilon(1e-5));
        });
      }
    }
  }

  TEST_CASE("heads from lists, projected from a width unlike the model's") {
    const Array x = noise({2, 6, 5}, 5), wp = noise({9, 4}, 6);
    std::vector<Array> wq, wk, wv;
    std::vector<Expr> tq, tk, tv;
    for (unsigned i = 0; i < 3; ++i) {
      tq.emplace_back(to_tensor(wq.emplace_back(noise({5, 2}, 10 + i))));
      tk.emplace_back(to_tensor(wk.emplace_back(noise({5, 2}, 20 + i))));
      tv.emplace_back(to_tensor(wv.emplace_back(noise({5, 3}, 30 + i))));
    }
    for (const Placement& placed : kPlacements) {
      std::vector<Array> heads;
      for (std::size_t i = 0; i < 3; ++i) {
        heads.push_back(head_oracle(x, x, wq[i], wk[i], wv[i], placed.oracle));
      }
      const Array want = linear_oracle(side_by_side(heads), wp);
      const Expr got =
          multihead_attention_list(to_tensor(x), tq, tk, tv, to_tensor(wp), placed.causal);
      CHECK(worst_error(Tensor(got), want) <= 1e-13);
    }
    const Array xv = noise({2, 8, 5}, 7);
    std::vector<Array> heads;
    for (std::size_t i = 0; i < 3; ++i) {
      heads.push_back(head_oracle(x, xv, wq[i], wk[i], wv[i], {}));
    }
    const Expr cross =
        multihead_cross_attention_list(to_tensor(x), to_tensor(xv), tq, tk, tv, to_tensor(wp));
    CHECK(worst_error(Tensor(cross), linear_oracle(side_by_side(heads), wp)) <= 1e-13);
    CHECK(Tensor(multihead_cross_attention_list(to_tensor(x)(0), to_tensor(xv)(0), tq, tk, tv,
                                                to_tensor(wp)))
              .shape() == Shape{6, 4});
  }

  TEST_CASE("one fused weight gives what lists of its columns give") {
    const Array x = noise({2, 6, 8}, 8), wqkv = noise({8, 24}, 9), wp = noise({8, 8}, 10);
    const Tensor w = to_tensor(wqkv);
    std::vector<Expr> lists[3];
    for (I part = 0; part < 3; ++part) {
      for (I h = 0; h < 4; ++h) {
        lists[part].push_back(slice(w, 1, part * 8 + h * 2, part * 8 + h * 2 + 2));
      }
    }
    for (const Placement& placed : kPlacements) {
      const Expr fused = multihead_attention_vec(to_tensor(x), w, to_tensor(wp), 4, placed.causal);
      const Expr list = multihead_attention_list(to_tensor(x), lists[0], lists[1], lists[2],
                                                 to_tensor(wp), placed.causal);
      CHECK(worst_error(Tensor(fused), to_array(Tensor(list))) <= 1e-13);
    }
    CHECK(Tensor(multihead_attention_vec(to_tensor(x)(0), w, to_tensor(wp), 4)).shape() ==
          Shape{6, 8});
  }

  TEST_CASE("errors of the seed forms name the weight") {
    const Tensor x = zeros({4, 6}), w = zeros({6, 2}), bad = zeros({5, 2});
    CHECK_THROWS_WITH_AS(self_attention(x, bad, w, w),
                         "self_attention: wq (5, 2) does not project (4, 6); weights are (in, out)",
                         ShapeError);
    CHECK_THROWS_WITH_AS(self_attention(x, w, w, zeros({6})),
                         "self_attention: wv (6,) does not project (4, 6); weights are (in, out)",
                         ShapeError);
    CHECK_THROWS_WITH_AS(self_attention(x, w, zeros({6, 3}), w),
                         "self_attention: wq (6, 2) and wk (6, 3) project to different widths",
                         ShapeError);
    CHECK_THROWS_WITH_AS(
        multihead_attention_list(x, {w, w}, {w}, {w, w}, zeros({4, 6})),
        "multihead_attention_list: 2 wqs, 1 wks and 2 wvs are given; one of each for every head",
        ValueError);
    CHECK_THROWS_WITH_AS(multihead_attention_list(x, {w, w}, {w, bad}, {w, w}, zeros({4, 6})),
                         "multihead_attention_list: wks[1] (5, 2) does not project (4, 6); weights "
                         "are (in, out)",
                         ShapeError);
    CHECK_THROWS_WITH_AS(multihead_attention_list(x, {w, w}, {w, w}, {w, w}, zeros({6, 6})),
                         "multihead_attention_list: wp (6, 6) does not project (4, 4); weights are "
                         "(in, out)",
                         ShapeError);
    CHECK_THROWS_WITH_AS(
        multihead_cross_attention_list(x, zeros({3, 5}), {w}, {w}, {w}, zeros({2, 6})),
        "multihead_cross_attention_list: wks[0] (6, 2) does not project (3, 5); weights are (in, "
        "out)",
        ShapeError);
    CHECK_THROWS_WITH_AS(
        multihead_attention_vec(x, zeros({6, 17}), zeros({6, 6}), 2),
        "multihead_attention_vec: wqkv (6, 17) does not hold three weights of one width",
        ShapeError);
    CHECK_THROWS_WITH_AS(multihead_attention_vec(x, zeros({6, 18}), zeros({6, 6}), 4),
                         "multihead_attention_vec: 4 heads do not divide a width of 6", ValueError);
  }

  TEST_CASE("errors of dot-product attention name what disagrees") {
    const Tensor q = zeros({2, 4, 5, 8}), k = zeros({2, 2, 7, 8}), v = zeros({2, 2, 7, 3});
    const auto message = [&](const Expr& a, const Expr& b, const Expr& c,
                             const AttentionOptions& options = {}) {
      try {
        dot_product_attention(a, b, c, options);
      } catch (const Error& error) {
        return std::string(error.what());
      }
      return std::string("no error");
    };
    CHECK(message(q, k, v) == "no error");
    CHECK(message(zeros({8}), k, v) ==
          "dot_product_attention: q (8,) needs a position and a feature axis");
    CHECK(message(q, zeros({7, 8}), v) ==
          "dot_product_attention: ranks of q (2, 4, 5, 8) and k (7, 8) disagree");
    CHECK(message(q, zeros({2, 2, 7, 6}), v) ==
          "dot_product_attention: features of q (2, 4, 5, 8) and k (2, 2, 7, 6) disagree");
    CHECK(message(q, k, zeros({2, 2, 6, 3})) ==
          "dot_product_attention: positions of k (2, 2, 7, 8) and v (2, 2, 6, 3) disagree");
    CHECK(message(q, k, zeros({2, 4, 7, 3})) ==
          "dot_product_attention: heads of k (2, 2, 7, 8) and v (2, 4, 7, 3) disagree");
    CHECK(message(q, zeros({3, 2, 7, 8}), v) ==
          "dot_product_attention: batch axis 0 of q (2, 4, 5, 8) and k (3, 2, 7, 8) disagree");
    CHECK(message(q, zeros({2, 3, 7, 8}), zeros({2, 3, 7, 3})) ==
          "dot_product_attention: 4 heads of q (2, 4, 5, 8) are no multiple of 3 heads of k (2, 3, "
          "7, "
          "8)");
    CHECK(message(q, k, v, {.heads = 8}) == "dot_product_attention: heads is 8 but q has 4");
    CHECK(message(q, k, v, {.kv_heads = 4}) == "dot_product_attention: kv_heads is 4 but k has 2");
    CHECK(message(q, k, v, {.head_dim = 4}) == "dot_product_attention: head_dim is 4 but q has 8");
    CHECK(message(q, k, v, {.out = zeros({3, 3})}) ==
          "dot_product_attention: option out is a weight; it cannot be used here");
    CHECK(message(q, k, v, {.mask = zeros({5, 7})}) ==
          "dot_product_attention: mask is f32, not bool; numbers to add are given as bias");
    CHECK(message(q, k, v, {.bias = zeros({5, 7}, boolean)}) ==
          "dot_product_attention: bias is bool; truth values are given as mask");
    CHECK(
        message(q, k, v, {.bias = zeros({2, 7})}) ==
        "dot_product_attention: bias of shape (2, 7) cannot broadcast to the scores (2, 4, 5, 7)");
    CHECK(message(q(0), k(0), v(0), {.mask = zeros({2, 1, 5, 7}, boolean)}) ==
          "dot_product_attention: mask of shape (2, 1, 5, 7) cannot broadcast to the scores (4, 5, "
          "7)");
    CHECK(
        message(q, k, v, {.lengths = zeros({3}, i64)}) ==
        "dot_product_attention: lengths of shape (3,) cannot broadcast to the scores (2, 4, 5, 7)");
    CHECK(message(q, k, v, {.lengths = zeros({2})}) ==
          "dot_product_attention: lengths are f32, not integers");
    CHECK(message(q, k, v, {.segments = zeros({2, 5}, i64)}) ==
          "dot_product_attention: segments of shape (2, 5) cannot broadcast to the scores (2, 4, "
          "5, 7)");
    CHECK(message(q, k, v, {.window = Window{-3, 0}}) ==
          "window: bounds are -3 and 0; -1 is open, below is not a bound");
    CHECK(message(q, k, v, {.softcap = 0.0}) ==
          "dot_product_attention: softcap is 0; it must be positive");
    CHECK(message(q, k, v, {.sinks = zeros({2})}) ==
          "dot_product_attention: sinks of shape (2,) cannot broadcast to the scores (2, 4, 5, 7)");
    CHECK(message(q, k, v, {.mask = index("h") < 2 && index("x") < 2}) ==
          "mask: label 'x' of a named term is not among the axes (b=2, h=4, q=5, k=7)");
  }
}
