// SPDX-License-Identifier: Apache-2.0
// Encoder and decoder blocks against loops in double: norms in front and behind, of both kinds,
// gated and plain feed-forward layers.
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

constexpr I kWidth = 12, kHeads = 3, kInner = 20;

/// Weights of one attention: q, k, v with biases, out.
struct AttentionArrays {
  Array q, k, v, out, q_bias, k_bias, v_bias, out_bias;
  explicit AttentionArrays(unsigned seed)
      : q(short_noise({kWidth, kWidth}, seed)),
        k(short_noise({kWidth, kWidth}, seed + 1)),
        v(short_noise({kWidth, kWidth}, seed + 2)),
        out(short_noise({kWidth, kWidth}, seed + 3)),
        q_bias(short_noise({kWidth}, seed + 4)),
        k_bias(short_noise({kWidth}, seed + 5)),
        v_bias(short_noise({kWidth}, seed + 6)),
        out_bias(short_noise({kWidth}, seed + 7)) {}

  AttentionOptions options(DType dtype) const {
    const auto t = [&](const Array& a) { return to_tensor(a, dtype); };
    return {.q = t(q),
            .k = t(k),
            .v = t(v),
            .out = t(out),
            .q_bias = t(q_bias),
            .k_bias = t(k_bias),
            .v_bias = t(v_bias),
            .out_bias = t(out_bias),
            .heads = kHeads};
  }
  Array attend(const Array& x, const Array& memory, bool causal) const {
    OracleOptions options;
    if (causal) options.offset = 0;
    const Array heads =
        attention_oracle(heads_apart(linear_oracle(x, q, q_bias), kHeads),
                         heads_apart(linear_oracle(memory, k, k_bias), kHeads),
                         heads_apart(linear_oracle(memory, v, v_bias), kHeads), options)
            .output;
    return linear_oracle(heads_together(heads), out, out_bias);
  }
};

struct FeedArrays {
  Array up = short_noise({kWidth, kInner}, 51), down = short_noise({kInner, kWidth}, 52);
  Array up_bias = short_noise({kInner}, 53), down_bias = short_noise({kWidth}, 54);
  Array gate = short_noise({kWidth, kInner}, 55);
};

struct NormArrays {
  Array weight, bias;
  explicit NormArrays(unsigned seed)
      : weight(short_noise({kWidth}, seed)), bias(short_noise({kWidth}, seed + 1)) {}
  NormOptions options(DType dtype) const {
    return {.weight = to_tensor(weight, dtype), .bias = to_tensor(bias, dtype)};
  }
  Array apply(const Array& x, bool rms) const {
    Array y = x;
    for_each_index({x.shape[0], x.shape[1]}, [&](const Sizes& i) {
      double mean = 0, square = 0;
      for (I d = 0; d < kWidth && !rms; ++d) mean += x.at({i[0], i[1], d}) / kWidth;
      for (I d = 0; d < kWidth; ++d) square += std::pow(x.at({i[0], i[1], d}) - mean, 2) / kWidth;
      for (I d = 0; d < kWidth; ++d) {
        y.at({i[0], i[1], d}) =
            (x.at({i[0], i[1], d}) - mean) / std::sqrt(square + 1e-5) * weight.at({d}) +
            bias.at({d});
      }
    });
    return y;
  }
};

Array plus(const Array& a, const Array& b) {
  Array sum = a;
  for (std::size_t i = 0; i < sum.data.size(); ++i) sum.data[i] += b.data[i];
  return sum;
}

Array fed(const Array& x, const FeedArrays& w, Activation activation, bool gated) {
  const auto f = [&](double v) {
    switch (activation) {
      case Activation::relu:
        return std::max(v, 0.0);
      case Activation::gelu:
        return v * (1 + std::erf(v / std::sqrt(2.0))) / 2;
      case Activation::gelu_tanh:
        return v / 2 * (1 + std::tanh(std::sqrt(2 / std::acos(-1.0)) * (v + 0.044715 * v * v * v)));
      case Activation::silu:
        break;
    }
    return v / (1 + std::exp(-v));
  };
  Array inner = linear_oracle(x, w.up, w.up_bias);
  const Array gate = linear_oracle(x, w.gate);
  for (std::size_t i = 0; i < inner.data.size(); ++i) {
    inner.data[i] = gated ? f(gate.data[i]) * inner.data[i] : f(inner.data[i]);
  }
  return linear_oracle(inner, w.down, w.down_bias);
}

Array step(const Array& x, const NormArrays& norm, const BlockForm& form,
           const std::function<Array(const Array&)>& f) {
  return form.pre_norm ? plus(x, f(norm.apply(x, form.rms))) : norm.apply(plus(x, f(x)), form.rms);
}

}  // namespace

TEST_SUITE("attention") {
  TEST_CASE("encoder and decoder blocks: every form, activation and gate") {
    const Array x = short_noise({2, 7, kWidth}, 61), memory = short_noise({2, 5, kWidth}, 62);
    const AttentionArrays own(1), cross(21);
    const FeedArrays feed;
    const NormArrays first(31), second(33), third(35);
    int runs = 0;
    for (const bool pre : {false, true}) {
      for (const bool rms : {false, true}) {
        for (const Activation activation :
             {Activation::relu, Activation::gelu, Activation::gelu_tanh, Activation::silu}) {
          const bool gated = runs++ % 2 == 1;
          const BlockForm form{pre, rms};
          const auto layer = [&](const Array& in) { return fed(in, feed, activation, gated); };
          const Array encoded =
              step(step(x, first, form, [&](const Array& in) { return own.attend(in, in, false); }),
                   third, form, layer);
          const Array alone =
              step(x, first, form, [&](const Array& in) { return own.attend(in, in, true); });
          const Array seen =
              step(step(alone, second, form,
                        [&](const Array& in) { return cross.attend(in, memory, false); }),
                   third, form, layer);
          for (const DType dtype : {f32, f64}) {
            const auto t = [&](const Array& a) { return to_tensor(a, dtype); };
            FeedForward w{.up = t(feed.up),
                          .down = t(feed.down),
                          .up_bias = t(feed.up_bias),
                          .down_bias = t(feed.down_bias),
                          .activation = activation};
            if (gated) w.gate = t(feed.gate);
            const EncoderBlock encoder({.attention = own.options(dtype),
                                        .feed = w,
                                        .attention_norm = first.options(dtype),
                                        .feed_norm = third.options(dtype),
                                        .form = form});
            const double bound = dtype == f32 ? 4e-5 : 1e-12;
            const Expr e = encoder(named(t(x), "bnm"));
            CHECK(e.labels()[2] == "m");
            CHECK(worst_error(Tensor(e), encoded) <= bound);
            CHECK(worst_error(eval(e, {.fuse = false}), encoded) <= bound);
            const DecoderWeights weights{.attention = own.options(dtype),
                                         .cross = cross.options(dtype),
                                         .feed = w,
                                         .attention_norm = first.options(dtype),
                                         .cross_norm = second.options(dtype),
                                         .feed_norm = third.options(dtype),
                                         .form = form};
            CHECK(worst_error(Tensor(DecoderBlock(weights)(t(x), t(memory))), seen) <= bound);
            DecoderWeights lonely = weights;
            lonely.cross.reset();
            CHECK(worst_error(Tensor(DecoderBlock(lonely)(t(x))),
                              step(alone, third, form, layer)) <= bound);
          }
        }
      }
    }
    CHECK(runs == 16);
  }

  TEST_CASE("blocks refuse what does not fit") {
    const Tensor w = zeros({4, 4});
    const AttentionOptions attention{.q = w, .k = w, .v = w, .heads = 2};
    const DecoderBlock alone({.attention = attention, .feed = {.up = w, .down = w}});
    CHECK_THROWS_WITH_AS(alone(zeros({3, 4}), Expr(zeros({3, 4}))),
                         "DecoderBlock: memory is given, but there are no weights for it",
                         ValueError);
    const DecoderBlock both(
        {.attention = attention, .cross = attention, .feed = {.up = w, .down = w}});
    CHECK_THROWS_WITH_AS(both(zeros({3, 4})),
                         "DecoderBlock: memory is missing; the block has weights for it",
                         ValueError);
    CHECK_THROWS_WITH_AS(feed_forward(zeros({3, 5}), {.up = w, .down = w}),
                         "feed_forward: up (4, 4) does not project (3, 5); weights are (in, out)",
                         ShapeError);
    CHECK_THROWS_AS(EncoderBlock({.attention = {.causal = top_left}, .feed = {.up = w, .down = w}}),
                    ValueError);
  }
}
