// SPDX-License-Identifier: Apache-2.0
// Scaled dot-product attention against loops in double: every option, alone and combined at random.
#include <doctest/doctest.h>

#include <cmath>
#include <random>
#include <string>

#include "../../attention/attention.h"
#include "../../engine/base/error.h"
#include "../../engine/graph/compiled.h"
#include "../../engine/tensor/create.h"
#include "../../ops/ops.h"
#include "oracle.h"

using namespace einkern;
using namespace einkern::test;

namespace {

using I = std::int64_t;

/// A problem with its options in both languages.
struct Problem {
  Array q, k, v;
  OracleOptions oracle;
  AttentionOptions options;
};

struct Shapes {
  I batch, heads, groups, queries, keys, width, values;
};

Array truths(Sizes shape, unsigned seed) {
  Array a = noise(std::move(shape), seed);
  for (double& x : a.data) x = x > -0.4 ? 1 : 0;
  return a;
}

Array integers(Sizes shape, I below, unsigned seed) {
  Array a = noise(std::move(shape), seed);
  for (double& x : a.data) x = std::floor((x + 1) / 2 * static_cast<double>(below));
  return a;
}

/// Names of the options, as bits; `add` gives one of them to a problem.
constexpr int kOptions = 12;
const char* const kOptionNames[kOptions] = {"mask",   "bias",         "lengths",     "segments",
                                            "window", "scale",        "softcap",     "sinks",
                                            "offset", "bottom_right", "hiding bias", "index(h)"};

/// A shape of (b, h, q, k), its leading axes dropped or of size 1 as the seed says.
Sizes dense_shape(const Shapes& s, unsigned seed) {
  Sizes shape{s.batch, s.heads, s.queries, s.keys};
  for (std::size_t d = 0; d < 4; ++d) {
    if ((seed >> d & 1) != 0) shape[d] = 1;
  }
  shape.erase(shape.begin(), shape.begin() + (seed >> 4) % 4);
  return shape;
}

void add(int option, const Shapes& s, unsigned seed, DType dtype, Problem& p) {
  const unsigned noise_seed = seed * 31 + static_cast<unsigned>(option);
  switch (option) {
    case 0: {
      if (p.oracle.mask) return;
      p.oracle.mask = truths(dense_shape(s, seed), noise_seed);
      p.options.mask = to_tensor(*p.oracle.mask, boolean);
      return;
    }
    case 1:
    case 10: {
      if (p.oracle.bias) return;
      p.oracle.bias = to_array(to_tensor(noise(dense_shape(s, seed / 3), noise_seed), dtype));
      for (double& x : p.oracle.bias->data) {
        if (option == 10 && x < -0.5) x = -INFINITY;
      }
      p.options.bias = to_tensor(*p.oracle.bias, dtype);
      return;
    }
    case 2:
      p.oracle.lengths = integers({s.batch}, s.keys + 1, noise_seed);
      p.options.lengths = to_tensor(*p.oracle.lengths, seed % 2 == 0 ? i64 : i32);
      return;
    case 3: {
      const Array sq = integers({s.batch, s.queries}, 3, noise_seed);
      const Array sk = integers({s.batch, s.keys}, 3, noise_seed + 1);
      p.oracle.segments = {sq, sk};
      p.options.segments = Segments(to_tensor(sq, i64), to_tensor(sk, i64));
      return;
    }
    case 4: {
      const I left = static_cast<I>(seed % 5) - 1, right = static_cast<I>(seed % 4) - 1;
      p.oracle.window = {left, right};
      p.options.window = Window{left, right};
      return;
    }
    case 5:
      p.oracle.scale = p.options.scale = -0.7;
      return;
    case 6:
      p.oracle.softcap = p.options.softcap = 0.8;
      return;
    case 7:
      p.oracle.sinks = to_array(to_tensor(noise({s.heads}, noise_seed), dtype));
      p.options.sinks = to_tensor(*p.oracle.sinks, dtype);
      return;
    case 8:
      if (p.options.causal) return;
      p.oracle.offset = static_cast<I>(seed % 7) - 3;
      p.options.causal = *p.oracle.offset;
      return;
    case 9:
      if (p.options.causal) return;
      p.oracle.bottom_right = true;
      p.options.causal = bottom_right;
      return;
    default: {
      // A score rule written on the caller's heads, however they are grouped inside.
      if (p.oracle.bias) return;
      Array bias({s.heads, s.queries, s.keys});
      const Array slope = to_array(to_tensor(noise({s.heads}, noise_seed), dtype));
      for_each_index(bias.shape, [&](const Sizes& i) {
        bias.at(i) =
            slope.at({i[0]}) * static_cast<double>(i[2] - i[1]) + 0.25 * static_cast<double>(i[0]);
      });
      p.oracle.bias = bias;
      p.options.bias = to_tensor(slope, dtype)["h"] * (index("k") - index("q")) + 0.25 * index("h");
      return;
    }
  }
}

Problem make_problem(const Shapes& s, unsigned seed, DType dtype) {
  const auto rounded = [&](Sizes shape, unsigned n) {
    return to_array(to_tensor(noise(std::move(shape), seed * 7 + n), dtype));
  };
  return {rounded({s.batch, s.heads, s.queries, s.width}, 1),
          rounded({s.batch, s.groups, s.keys, s.width}, 2),
          rounded({s.batch, s.groups, s.keys, s.values}, 3),
          {},
          {}};
}

void check(const Problem& p, DType dtype) {
  const OracleResult want = attention_oracle(p.q, p.k, p.v, p.oracle);
  const AttentionResult lazy = dot_product_attention(to_tensor(p.q, dtype), to_tensor(p.k, dtype),
                                                     to_tensor(p.v, dtype), p.options);
  const auto [output, weights, logsumexp] = eval(lazy.output, lazy.weights, lazy.logsumexp);
  const double allowed = dtype == f32 ? 2e-6 : 1e-13;
  CHECK(output.dtype() == dtype);
  CHECK(worst_error(output, want.output) <= allowed);
  CHECK(worst_error(weights, want.weights) <= allowed);
  CHECK(worst_error(logsumexp, want.logsumexp) <= 4 * allowed);
  // Without the weights the engine is free to fuse; the plain nodes are the same mathematics.
  CHECK(worst_error(Tensor(lazy.output), want.output) <= allowed);
  CHECK(worst_error(eval(lazy.output, {.fuse = false}), want.output) <= allowed);
}

const Shapes kShapes[] = {{2, 4, 4, 5, 7, 3, 3},  {1, 6, 2, 7, 5, 8, 5},    {3, 4, 1, 3, 9, 5, 2},
                          {2, 1, 1, 1, 11, 4, 4}, {1, 3, 3, 33, 17, 16, 9}, {2, 6, 3, 4, 4, 1, 1}};

}  // namespace

TEST_SUITE("attention") {
  TEST_CASE("every option alone, on every shape, in both dtypes") {
    for (const DType dtype : {f64, f32}) {
      for (const Shapes& s : kShapes) {
        for (int option = -1; option < kOptions; ++option) {
          CAPTURE(option < 0 ? "none" : kOptionNames[option]);
          Problem p = make_problem(s, static_cast<unsigned>(option + 2), dtype);
          if (option >= 0) add(option, s, static_cast<unsigned>(option + 5), dtype, p);
          check(p, dtype);
        }
      }
    }
  }

  TEST_CASE("options combined at random") {
    std::mt19937 random(20240607);
    int used[kOptions] = {};
    for (int round = 0; round < 120; ++round) {
      const DType dtype = round % 2 == 0 ? f64 : f32;
      const Shapes& s = kShapes[random() % std::size(kShapes)];
      const auto seed = static_cast<unsigned>(random() % 100000);
      Problem p = make_problem(s, seed, dtype);
      std::string given;
      for (int option = 0; option < kOptions; ++option) {
        if (random() % 3 != 0) continue;
        add(option, s, seed, dtype, p);
        given += std::string(kOptionNames[option]) + " ";
        ++used[option];
      }
      CAPTURE(given);
      CAPTURE(seed);
      check(p, dtype);
    }
    for (int option = 0; option < kOptions; ++option) {
      CAPTURE(kOptionNames[option]);
      CHECK(used[option] >= 10);
    }
  }

  TEST_CASE("ranks: no head axis, no batch axis, two batch axes") {
    const Array q = noise({6, 2, 5, 4}, 1), k = noise({6, 2, 7, 4}, 2), v = noise({6, 2, 7, 3}, 3);
    const OracleResult want = attention_oracle(q, k, v, {.offset = 0});
    const Tensor tq = to_tensor(q), tk = to_tensor(k), tv = to_tensor(v);
    const AttentionOptions causal{.causal = top_left};
    const auto two = [](const Tensor& t) { return t.split(0, {"x", "y"}, {2, 3}).with_labels({}); };
    const AttentionResult five = dot_product_attention(two(tq), two(tk), two(tv), causal);
    CHECK(five.output.shape() == Shape{2, 3, 2, 5, 3});
    CHECK(to_array(Tensor(five.output)).data.size() == want.output.data.size());
    CHECK(worst_error(std::span<const double>(to_array(Tensor(five.output)).data),
                      std::span<const double>(want.output.data)) <= 1e-14);
    const Tensor three = dot_product_attention(tq(1), tk(1), tv(1), causal).output;
    const Tensor plain = dot_product_attention(tq(1, 1), tk(1, 1), tv(1, 1), causal).output;
    for_each_index({2, 5, 3}, [&](const Sizes& i) {
      const double value = want.output.at({1, i[0], i[1], i[2]});
      CHECK(to_array(three).at(i) == doctest::Approx(value));
      if (i[0] == 1) CHECK(to_array(plain).at({i[1], i[2]}) == doctest::Approx(value));
    });
  }

  TEST_CASE("a length beyond the keys is an error of the evaluation, and touches no output") {
    const Tensor q = zeros({2, 1, 3, 4}, f64), k = zeros({2, 1, 5, 4}, f64);
    for (const DType dtype : {i64, i32, i8}) {
      const Expr late =
          dot_product_attention(q, k, k, {.lengths = tensor<I>({5, 6}).astype(dtype)}).output;
      const Expr negative =
          dot_product_attention(q, k, k, {.lengths = tensor<I>({-1, 5}).astype(dtype)}).output;
      const Tensor out = full({2, 1, 3, 4}, 7, f64);
      CHECK_THROWS_WITH_AS(eval_into(out, late),
                           "dot_product_attention: a length is 6, but there are 5 keys",
                           ValueError);
      CHECK_THROWS_WITH_AS(eval_into(out, negative),
                           "dot_product_attention: a length is -1, but there are 5 keys",
                           ValueError);
      CHECK(out.to_vector<double>() == std::vector<double>(24, 7.0));
    }
  }

  TEST_CASE("lengths over two batch axes; one length for all") {
    const Array q = noise({6, 2, 5, 4}, 4), k = noise({6, 2, 7, 4}, 5), v = noise({6, 2, 7, 3}, 6);
    const auto two = [](const Tensor& t) { return t.split(0, {"x", "y"}, {2, 3}).with_labels({}); };
    const Array lengths({6}, {1, 7, 0, 3, 6, 2});
    const Array want = attention_oracle(q, k, v, {.lengths = lengths, .bottom_right = true}).output;
    const Tensor got =
        dot_product_attention(two(to_tensor(q)), two(to_tensor(k)), two(to_tensor(v)),
                              {.lengths = two(to_tensor(lengths, i64)), .causal = bottom_right})
            .output;
    CHECK(worst_error(std::span<const double>(to_array(got).data),
                      std::span<const double>(want.data)) <= 1e-14);
    const Array three = attention_oracle(q, k, v, {.lengths = Array({6}, 3.0)}).output;
    CHECK(worst_error(
              Tensor(dot_product_attention(to_tensor(q), to_tensor(k), to_tensor(v), {.lengths = 3})
                         .output),
              three) <= 1e-14);
  }

  TEST_CASE("hidden keys may hold anything, for every way to hide and every grouping") {
    for (const I groups : {1, 2, 4}) {
      const Array q = noise({2, 4, 3, 5}, 7);
      Array k = noise({2, groups, 6, 5}, 8), v = noise({2, groups, 6, 3}, 9);
      const Array clean_k = k, clean_v = v;
      for_each_index(k.shape, [&](const Sizes& i) {
        if (i[2] >= 4) k.at(i) = i[2] == 4 ? NAN : INFINITY;
      });
      for_each_index(v.shape, [&](const Sizes& i) {
        if (i[2] >= 4) v.at(i) = i[2] == 4 ? -INFINITY : NAN;
      });
      Array mask({6}), bias({6});
      for (I j = 0; j < 6; ++j) {
        mask.at({j}) = j < 4;
        bias.at({j}) = j < 4 ? 0.5 : -INFINITY;
      }
      const Tensor ones_and_twos = to_tensor(Array({6}, {1, 1, 1, 1, 2, 2}), i64);
      const AttentionOptions ways[] = {{.mask = to_tensor(mask, boolean)},
                                       {.mask = index("k") < 4},
                                       {.bias = to_tensor(bias)},
                                       {.lengths = tensor<I>({4, 4})},
                                       {.segments = Segments(ones({3}, i64), ones_and_twos)},
                                       {.window = Window{-1, 1}},
                                       {.causal = top_left},
                                       {.softcap = 2.0, .sinks = 0.5, .causal = 1}};
      for (const DType dtype : {f64, f32}) {
        for (const AttentionOptions& options : ways) {
          const AttentionOptions seen = options;
          const Tensor want = dot_product_attention(to_tensor(q, dtype), to_tensor(clean_k, dtype),
                                                    to_tensor(clean_v, dtype), seen)
                                  .output;
          const Tensor got = dot_product_attention(to_tensor(q, dtype), to_tensor(k, dtype),
                                                   to_tensor(v, dtype), seen)
                                 .output;
          for (const double x : to_array(got).data) REQUIRE(std::isfinite(x));
          CHECK(worst_error(got, to_array(want)) <= tolerance(dtype));
        }
      }
    }
  }

  TEST_CASE("nothing to attend to") {
    const Tensor q = to_tensor(noise({2, 3, 4, 5}, 10)), none = zeros({2, 3, 0, 5}, f64);
    const AttentionResult r = dot_product_attention(q, none, none);
    CHECK(to_array(Tensor(r.output)).data == std::vector<double>(120, 0.0));
    CHECK(Tensor(r.weights).shape() == Shape{2, 3, 4, 0});
    CHECK(to_array(Tensor(r.logsumexp)).data == std::vector<double>(24, -inf));
    CHECK(Tensor(dot_product_attention(none, q, q).output).shape() == Shape{2, 3, 0, 5});
    const AttentionResult hidden = dot_product_attention(q, q, q, {.mask = zeros({4}, boolean)});
    CHECK(to_array(Tensor(hidden.output)).data == std::vector<double>(120, 0.0));
  }

  TEST_CASE("finite mask values never hide") {
    // lowest() everywhere: uniform weights, and a NaN in V is seen.
    const double low = std::numeric_limits<double>::lowest();
    const Tensor q = zeros({1, 2}, f64), k = zeros({3, 2}, f64);
    const Tensor v = tensor<double>({1, 2, 6}, {3, 1});
    const auto run = [&](const Tensor& values) {
      return Tensor(dot_product_attention(q, k, values, {.bias = full({3}, low, f64)}).output)
          .item<double>();
    };
    CHECK(run(v) == doctest::Approx(3.0));
    CHECK(std::isnan(run(tensor<double>({1, NAN, 6}, {3, 1}))));
  }

  TEST_CASE("one compiled plan serves every number of keys") {
    const Expr q = input(f64, {2, 4, 3, 5}), lengths = input(i64, {2});
    const Expr k = input(f64, {2, 2, dyn("keys"), 5}), v = input(f64, {2, 2, dyn("keys"), 6});
    const AttentionOptions options{.lengths = lengths, .window = Window{-1, 6}, .causal = 3};
    const Compiled attend =
        compile({q, k, v, lengths}, {dot_product_attention(q, k, v, options).output});
    const Array tq = noise({2, 4, 3, 5}, 11);
    for (const I keys : {7, 1, 12, 0}) {
      const Array tk = noise({2, 2, keys, 5}, 12), tv = noise({2, 2, keys, 6}, 13);
      const Array n({2}, {std::floor(static_cast<double>(keys) / 2), static_cast<double>(keys)});
      const Array want =
          attention_oracle(tq, tk, tv,
                           {.lengths = n, .window = std::pair<I, I>{-1, 6}, .offset = 3})
              .output;
      const std::vector<Tensor> got =
          attend({to_tensor(tq), to_tensor(tk), to_tensor(tv), to_tensor(n, i64)});
      CHECK(worst_error(got[0], want) <= 1e-13);
    }
    CHECK_THROWS_WITH_AS(
        dot_product_attention(q, k, v, {.causal = bottom_right}),
        "causal: bottom_right needs sizes that are known when the expression is built", ShapeError);
  }

  TEST_CASE("labels: scores read b, h, q, k; the output reads as the query") {
    const Expr q = named(zeros({2, 3, 4, 5}), "bhnd") * 1, k = zeros({2, 3, 6, 5}),
               v = zeros({2, 3, 6, 2});
    const AttentionResult r = dot_product_attention(q, k, v);
    using Names = std::vector<std::string>;
    CHECK(r.weights.labels().to_vector(4) == Names{"b", "h", "q", "k"});
    CHECK(r.logsumexp.labels().to_vector(3) == Names{"b", "h", "q"});
    CHECK(r.output.labels().to_vector(4) == Names{"b", "h", "n", ""});
    CHECK(dot_product_attention(k, k, v).output.labels().empty());
  }
}
