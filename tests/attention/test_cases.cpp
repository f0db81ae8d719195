// SPDX-License-Identifier: Apache-2.0
// The checked examples of tests/data/attention.json: values, digests and properties.
#include <doctest/doctest.h>

#include <cmath>
#include <set>
#include <string>

#include "../../attention/attention.h"
#include "../../engine/base/error.h"
#include "../../engine/tensor/create.h"
#include "../../ops/ops.h"
#include "../support/attention_cases.h"

using namespace einkern;
using namespace einkern::test;

namespace {

const std::vector<AttentionCase>& cases() {
  static const std::vector<AttentionCase> all = read_attention_cases();
  return all;
}

const AttentionCase& find(const std::string& id) {
  for (const AttentionCase& example : cases()) {
    if (example.id == id) return example;
  }
  throw std::runtime_error("no example " + id);
}

AttentionOptions options_of(const AttentionCase& example, DType dtype) {
  AttentionOptions options;
  options.scale = example.scale;
  options.softcap = example.softcap;
  if (example.inputs.count("bias") > 0) {
    options.bias = to_tensor(example.inputs.at("bias"), dtype);
  }
  if (example.shapes.count("mask") > 0) {
    options.mask = full(Shape(example.shapes.at("mask")), 1, boolean);
  }
  if (example.window) options.window = Window{example.window->first, example.window->second};
  if (!example.lengths.empty()) {
    options.lengths = from_values(std::span<const std::int64_t>(example.lengths),
                                  {static_cast<std::int64_t>(example.lengths.size())});
  }
  if (example.bottom_right) options.causal = bottom_right;
  if (!example.slopes.empty()) {
    const Tensor slopes = from_values(std::span<const double>(example.slopes),
                                      {static_cast<std::int64_t>(example.slopes.size())});
    options.bias = slopes.astype(dtype)["h"] * index("k");
  }
  return options;
}

Array run(const Array& q, const Array& k, const Array& v, const AttentionOptions& options,
          DType dtype) {
  return to_array(Tensor(
      dot_product_attention(to_tensor(q, dtype), to_tensor(k, dtype), to_tensor(v, dtype), options)
          .output));
}

Array run(const AttentionCase& example, DType dtype) {
  return run(example.inputs.at("q"), example.inputs.at("k"), example.inputs.at("v"),
             options_of(example, dtype), dtype);
}

/// Examples with plain inputs and stated numbers. The biases of `plus-inf-score-masked` come with
/// infinite scores; `alibi-causal-br` states its biases up to a shift of every row.
const std::set<std::string> kNumbers = {
    "uniform-q0",       "band-600",        "window-2-1",           "window-0-0",
    "gqa-head-map",     "bias2d-1x1",      "bias2d-5x1",           "bias4d-2x1x5x1",
    "bias1d-keys",      "padding-lens",    "scale-zero",           "softcap-before-mask",
    "causal-br-70x200", "alibi-causal-br", "plus-inf-score-masked"};
/// Examples that have a test of their own below.
const std::set<std::string> kOwnTest = {"equal-keys", "nan-visible-propagates", "kv-permutation",
                                        "batch-zero", "kv-mod-32-eq-1",         "inner-stride-2",
                                        "numpy-mha",  "numpy-cross-swap",       "mask-bad-shape"};

}  // namespace

TEST_SUITE("attention") {
  TEST_CASE("every example of the first stage is run") {
    for (const AttentionCase& example : cases()) {
      if (example.stage != "first-light") continue;
      CAPTURE(example.id);
      CHECK(kNumbers.count(example.id) + kOwnTest.count(example.id) == 1);
    }
  }

  TEST_CASE("stated values and digests, in both dtypes") {
    for (const std::string& id : kNumbers) {
      AttentionCase example = find(id);
      if (id == "plus-inf-score-masked") example.inputs["v"] = Array({2, 1}, {7, 9});
      for (const DType dtype : {f64, f32}) {
        CAPTURE(id);
        CAPTURE(name_of(dtype));
        const Array got = run(example, dtype);
        if (id == "gqa-head-map") {
          for (const double error :
               {std::fabs(got.at({0, 0, 0, 0}) - 10), std::fabs(got.at({0, 2, 1, 0}) - 10),
                std::fabs(got.at({0, 3, 0, 0}) - 20), std::fabs(got.at({0, 5, 1, 0}) - 20)}) {
            CHECK(error <= 20 * case_tolerance(dtype));
          }
          continue;
        }
        REQUIRE((example.value || !example.digests.empty()));
        if (example.value) CHECK(error_of(got, *example.value) <= case_tolerance(dtype));
        for (const auto& [name, digest] : example.digests) {
          CHECK(error_of(got, digest) <= case_tolerance(dtype));
        }
      }
    }
  }

  TEST_CASE("equal keys: every row is the mean of the values") {
    const AttentionCase& example = find("equal-keys");
    const Array& v = example.inputs.at("v");
    for (const DType dtype : {f64, f32}) {
      const Array got = run(example, dtype);
      for_each_index(got.shape, [&](const Sizes& i) {
        double mean = 0;
        for (std::int64_t k = 0; k < v.shape[0]; ++k) mean += v.at({k, i[1]}) / 7;
        CHECK(std::fabs(got.at(i) - mean) <= case_tolerance(dtype));
      });
    }
  }

  TEST_CASE("a NaN that is seen is passed on, to its own row only") {
    const AttentionCase& example = find("nan-visible-propagates");
    Array poisoned = example.inputs.at("q");
    const Array &k = example.inputs.at("k"), &v = example.inputs.at("v");
    const Array clean = run(poisoned, k, v, {}, f64);
    poisoned.at({0, 0}) = NAN;
    const Array got = run(poisoned, k, v, {}, f64);
    for (std::int64_t e = 0; e < 2; ++e) {
      CHECK(std::isnan(got.at({0, e})));
      CHECK(got.at({1, e}) == clean.at({1, e}));
    }
  }

  TEST_CASE("a mask that does not broadcast") {
    CHECK(find("mask-bad-shape").error);
    AttentionCase example = find("mask-bad-shape");
    example.inputs["v"] = example.inputs["k"];
    CHECK_THROWS_WITH_AS(
        run(example, f64),
        "dot_product_attention: mask of shape (3, 6) cannot broadcast to the scores (1, 1, 2, 6)",
        ShapeError);
  }

  TEST_CASE("an empty batch gives an empty result") {
    const AttentionCase& example = find("batch-zero");
    CHECK(run(example, f32).shape == Sizes{0, 3, 4, 8});
  }

  TEST_CASE("keys, values and mask columns in another order give the same answer") {
    const AttentionCase& example = find("kv-permutation");
    const Array &q = example.inputs.at("q"), &k = example.inputs.at("k"),
                &v = example.inputs.at("v");
    Array mask({4, 300}), k2 = k, v2 = v, mask2 = mask;
    for_each_index(mask.shape, [&](const Sizes& i) { mask.at(i) = (i[0] + 3 * i[1]) % 5 != 0; });
    for (std::int64_t j = 0; j < 300; ++j) {
      const std::int64_t to = (j * 77 + 5) % 300;  // 77 and 300 share no factor
      for (std::int64_t d = 0; d < 8; ++d) k2.at({to, d}) = k.at({j, d});
      for (std::int64_t e = 0; e < 3; ++e) v2.at({to, e}) = v.at({j, e});
      for (std::int64_t i = 0; i < 4; ++i) mask2.at({i, to}) = mask.at({i, j});
    }
    for (const DType dtype : {f64, f32}) {
      const Array straight = run(q, k, v, {.mask = to_tensor(mask, boolean)}, dtype);
      const Array shuffled = run(q, k2, v2, {.mask = to_tensor(mask2, boolean)}, dtype);
      CHECK(worst_error(shuffled, straight) <= (dtype == f32 ? 1e-6 : 1e-14));
    }
  }

  TEST_CASE("strides do not matter: broadcast heads, every second feature") {
    const Array q = generated({1, 8, 33, 64}, 1), one = generated({1, 1, 97, 64}, 2);
    Array k({1, 8, 97, 64}), mask({1, 8, 33, 97});
    for_each_index(k.shape, [&](const Sizes& i) { k.at(i) = one.at(i); });
    for_each_index(mask.shape, [&](const Sizes& i) { mask.at(i) = (i[1] + i[2] * i[3]) % 3 != 1; });
    const Tensor m = to_tensor(mask, boolean), tq = to_tensor(q, f32), tk = to_tensor(k, f32);
    const Tensor stretched = to_tensor(one, f32).broadcast({1, 8, 97, 64});
    const Tensor want = dot_product_attention(tq, tk, tk, {.mask = m}).output;
    const Tensor got = dot_product_attention(tq, stretched, stretched, {.mask = m}).output;
    CHECK(worst_error(got, to_array(want)) <= 1e-6);

    const Array wide = generated({1, 2, 6, 8}, 4);
    const Tensor thin = to_tensor(wide).slice(-1, {}, {}, 2);
    const Tensor queries = to_tensor(generated({1, 2, 5, 8}, 5)).slice(-1, 1, {}, 2);
    CHECK(thin.strides()[3] == 2);
    const Tensor strided = dot_product_attention(queries, thin, thin).output;
    const Tensor copied = dot_product_attention(queries.copy(), thin.copy(), thin.copy()).output;
    CHECK(worst_error(strided, to_array(copied)) <= 1e-14);
  }

  TEST_CASE("the published multi-head example, from lists and from one fused weight") {
    const AttentionCase& example = find("numpy-mha");
    const Array x = linspace({3, 4, 6}, 0.1, 8.4);
    const Array wp = transposed(linspace({6, 6}, 9.1, 9.8));
    Array fused({6, 18});
    const double starts[] = {3.1, 0.1, 6.1};  // of queries, keys and values
    for (const DType dtype : {f64, f32}) {
      std::vector<Expr> weights[3];
      for (std::int64_t part = 0; part < 3; ++part) {
        for (std::int64_t i = 0; i < 3; ++i) {
          const double from = static_cast<double>(i) + starts[part];
          const Array w = transposed(linspace({2, 6}, from, from + 0.7));
          weights[part].emplace_back(to_tensor(w, dtype));
          for_each_index(w.shape, [&](const Sizes& at) {
            fused.at({at[0], part * 6 + i * 2 + at[1]}) = w.at(at);
          });
        }
      }
      const Expr tx = to_tensor(x, dtype), twp = to_tensor(wp, dtype);
      const Tensor list = multihead_attention_list(tx, weights[0], weights[1], weights[2], twp);
      CHECK(error_of(to_array(list), *example.value) <= case_tolerance(dtype));
      const Tensor vec = multihead_attention_vec(tx, to_tensor(fused, dtype), twp, 3);
      CHECK(error_of(to_array(vec), *example.value) <= case_tolerance(dtype));
      const Tensor whole =
          multihead_attention(tx, {.qkv = to_tensor(fused, dtype), .out = twp, .heads = 3});
      CHECK(error_of(to_array(whole), *example.value) <= case_tolerance(dtype));
    }
  }

  TEST_CASE("cross-attention projects queries with Wq, whatever was published") {
    const AttentionCase& example = find("numpy-cross-swap");
    const auto halved = [](Array a) {
      for (double& x : a.data) x /= 2;
      return a;
    };
    for (const DType dtype : {f64, f32}) {
      const auto weights = [&](std::int64_t s, bool half) {
        const Array w = generated({4, 2}, s);
        return Expr(to_tensor(half ? halved(w) : w, dtype));
      };
      const Tensor got = multihead_cross_attention_list(
          to_tensor(linspace({2, 3, 4}, -0.5, 0.5), dtype),
          to_tensor(linspace({2, 5, 4}, -1, 1), dtype), {weights(1, true), weights(2, true)},
          {weights(3, true), weights(4, true)}, {weights(5, false), weights(6, false)},
          to_tensor(generated({4, 4}, 7), dtype));
      CHECK(error_of(to_array(got), example.digests.at("mathematical")) <= case_tolerance(dtype));
      CHECK(error_of(to_array(got), example.digests.at("as_published")) > 1e-5);
    }
  }

  TEST_CASE("limits of a sink, and an offset below zero") {
    const AttentionCase& example = find("sink-limits");
    const Array &q = example.inputs.at("q"), &k = example.inputs.at("k"),
                &v = example.inputs.at("v");
    CHECK(worst_error(run(q, k, v, {.sinks = -inf}, f64), run(q, k, v, {}, f64)) <= 1e-15);
    for (const double x : run(q, k, v, {.sinks = 60.0}, f64).data) CHECK(std::fabs(x) < 1e-20);
    const Tensor nothing = zeros({3}, boolean);
    for (const double x : run(q, k, v, {.mask = nothing, .sinks = 1.0}, f64).data) CHECK(x == 0);

    const AttentionCase& negative = find("negative-offset");
    const Array values({1, 1, 4, 1}, {5, 6, 7, 8});
    const Array got = run(negative.inputs.at("q"), negative.inputs.at("k"), values,
                          options_of(negative, f64), f64);
    CHECK(got.data[0] == 0);
    CHECK(got.data[1] == 0);
    CHECK(got.data[2] == 5);
    CHECK(got.data[3] > 5);
    CHECK(got.data[3] < 6);
  }
}
