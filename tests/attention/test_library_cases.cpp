// SPDX-License-Identifier: Apache-2.0
// The examples of tests/data/attention.json that belong to the library of variants.
#include <doctest/doctest.h>

#include <cmath>
#include <set>
#include <string>

#include "../../ops/ops.h"
#include "../support/attention_cases.h"
#include "variants.h"

using namespace einkern;
using namespace einkern::test;

namespace {

using I = std::int64_t;

AttentionCase library_case(const std::string& id) {
  for (AttentionCase& example : read_attention_cases()) {
    if (example.id == id && example.stage == "library") return example;
  }
  throw std::runtime_error("no example " + id);
}

}  // namespace

TEST_SUITE("attention") {
  TEST_CASE("every example of the library stage has a test") {
    // The first two, and negative-offset with sink-limits, stand in test_cases.cpp.
    const std::set<std::string> tested = {
        "gqa-head-map",      "alibi-causal-br",     "sink-limits",        "negative-offset",
        "alibi-slopes-6",    "rope-relative",       "rope-pos0-identity", "rope-partial",
        "paged-permutation", "varlen-no-crosstalk", "linear-attn-ones",   "linear-attn-gated",
        "linear-attn-equiv", "mla-absorb",          "dropout-normaliser"};
    std::size_t count = 0;
    for (const AttentionCase& example : read_attention_cases()) {
      if (example.stage != "library") continue;
      CAPTURE(example.id);
      CHECK(tested.contains(example.id));
      ++count;
    }
    CHECK(count == tested.size());
  }

  TEST_CASE("alibi-slopes-6, and alibi-causal-br by the function") {
    CHECK(error_of(to_array(alibi_slopes(6, f64)), *library_case("alibi-slopes-6").value) == 0);
    const AttentionCase c = library_case("alibi-causal-br");
    const Tensor slopes = from_values(std::span<const double>(c.slopes), {2});
    const Array got = to_array(
        Tensor(alibi_attention(to_tensor(c.inputs.at("q")), to_tensor(c.inputs.at("k")),
                               to_tensor(c.inputs.at("v")), slopes, {.causal = bottom_right})
                   .output));
    REQUIRE(c.digests.size() == 1);
    CHECK(error_of(got, c.digests.begin()->second) <= case_tolerance(f64));
  }

  TEST_CASE("rope-relative, rope-pos0-identity, rope-partial") {
    const double want = library_case("rope-relative").value->data[0];
    const Tensor one = to_tensor(Array({1, 2}, {1, 0}));
    for (const I shift : {0, 1000}) {
      const Expr dot = einsum("nd,nd->n", rope(one, {.positions = 7 + shift}),
                              rope(one, {.positions = 3 + shift}));
      CHECK(std::fabs(Tensor(dot).to_vector<double>()[0] - want) <= case_tolerance(f64));
    }
    const AttentionCase c = library_case("rope-pos0-identity");
    const Array x = generated(c.shapes.at("x"), 1);
    const Tensor t = to_tensor(x);
    CHECK(worst_error(Tensor(rope(t, {.positions = zeros({2}, i64)})), x) == 0);
    const auto lengths = [](const Expr& e) { return to_array(Tensor(sum(e * e, -1))); };
    CHECK(worst_error(lengths(rope(t, {.positions = 5})), lengths(t)) <= 1e-14);
    const Array partial = to_array(Tensor(rope(t, {.dims = 4, .positions = 5})));
    for_each_index(x.shape, [&](const Sizes& i) {
      if (i[3] >= 4) CHECK(partial.at(i) == x.at(i));
    });
  }

  TEST_CASE("paged-permutation: any order of pages gives the same bits") {
    const AttentionCase c = library_case("paged-permutation");
    const Tensor q = to_tensor(generated(c.shapes.at("q"), 1), f32);
    const std::vector<I> lengths{13, 5};
    const Tensor held = from_values(std::span<const I>(lengths), {2});
    const Tensor k = random({2, 2, 16, 8}, 1), v = random({2, 2, 16, 8}, 2);
    const auto run = [&](I step) {
      // Token block t of entry b lies in page (step (4 b + t)) mod 11.
      const Tensor pk = zeros({11, 2, 4, 8}), pv = zeros({11, 2, 4, 8});
      Array table({2, 4});
      for_each_index({2, 4}, [&](const Sizes& i) {
        const I page = step * (4 * i[0] + i[1]) % 11;
        table.at(i) = static_cast<double>(page);
        const auto block = [&](const Tensor& x) {
          return x.slice(0, i[0], i[0] + 1).slice(2, 4 * i[1], 4 * i[1] + 4);
        };
        pk.slice(0, page, page + 1).assign(block(k));
        pv.slice(0, page, page + 1).assign(block(v));
      });
      return Tensor(paged_attention(q, {pk, pv, to_tensor(table, i64), held}).output)
          .to_vector<float>();
    };
    const auto contiguous =
        Tensor(dot_product_attention(q, k, v, {.lengths = held}).output).to_vector<float>();
    for (const I step : {1, 3, 7}) CHECK(run(step) == contiguous);
  }

  TEST_CASE("varlen-no-crosstalk: a sequence does not feel its neighbour") {
    library_case("varlen-no-crosstalk");
    const std::vector<I> offsets{0, 3, 8};
    const Tensor at = from_values(std::span<const I>(offsets), {3});
    const Tensor q = random({2, 8, 4}, 1), k = random({2, 8, 4}, 2), v = random({2, 8, 4}, 3);
    const auto first = [&] {
      return Tensor(varlen_attention(q, k, v, at).output).slice(1, 0, 3).to_vector<float>();
    };
    const auto before = first();
    for (const Tensor& x : {q, k}) x.slice(1, 3, 8).fill(7.5);
    v.slice(1, 3, 8).fill(1e10);
    CHECK(first() == before);
    // NaN is not felt either, but takes another way.
    for (const Tensor& x : {q, k, v}) x.slice(1, 3, 8).fill(NAN);
    CHECK(worst_error(std::span<const float>(first()), std::span<const float>(before)) <= 1e-6);
  }

  TEST_CASE("linear-attn-ones, linear-attn-gated, linear-attn-equiv") {
    const Tensor one = ones({1, 4, 1}, f64), count = to_tensor(Array({1, 4, 1}, {1, 2, 3, 4}));
    const LinearOptions plain{.features = FeatureMap::identity, .causal = true, .normalise = false};
    CHECK(error_of(to_array(Tensor(linear_attention(one, one, count, plain))),
                   *library_case("linear-attn-ones").value) <= case_tolerance(f64));
    const Array gated = *library_case("linear-attn-gated").value;
    CHECK(error_of(to_array(Tensor(
                       gated_linear_attention(one, one, one, std::exp(-0.69314718056), 1.0))),
                   gated) <= case_tolerance(f64));
    CHECK(error_of(to_array(Tensor(retention(one, one, one, 0.5, 1.0, 2))), gated) <= 1e-11);
    const AttentionCase c = library_case("linear-attn-equiv");
    const Tensor q = to_tensor(generated(c.shapes.at("q"), 1)),
                 k = to_tensor(generated(c.shapes.at("k"), 2)),
                 v = to_tensor(generated(c.shapes.at("v"), 3));
    const Expr s = where(causal(-2, -1), einsum("bhqd,bhkd->bhqk", q, k), 0.0);
    const Array want = to_array(eval(einsum("bhqk,bhke->bhqe", s, v), {.fuse = false}));
    for (I chunk = 1; chunk <= 10; ++chunk) {
      LinearOptions options = plain;
      options.chunk = chunk;
      CHECK(worst_error(Tensor(linear_attention(q, k, v, options)), want) <= 1e-13);
    }
  }

  TEST_CASE("mla-absorb: both orders give the stated digest") {
    const AttentionCase c = library_case("mla-absorb");
    const auto of = [&](const char* name, I seed) {
      return to_tensor(generated(c.shapes.at(name), seed));
    };
    const Latent x{of("q_nope", 1), of("q_rope", 2), of("c", 3),
                   of("k_rope", 4), of("Wuk", 5),    of("Wuv", 6)};
    REQUIRE(c.digests.size() == 1);
    for (const LatentOrder order : {LatentOrder::decompressed, LatentOrder::absorbed}) {
      CHECK(error_of(to_array(Tensor(latent_attention(x, order).output)),
                     c.digests.begin()->second) <= case_tolerance(f64));
    }
  }

  TEST_CASE("dropout-normaliser: the sum is taken before weights are dropped, fused as well") {
    library_case("dropout-normaliser");
    const VariantArrays x({.batch = 1, .heads = 2, .groups = 2, .queries = 5, .keys = 9});
    const Tensor q = to_tensor(x.q), k = to_tensor(x.k), v = to_tensor(x.v);
    const Expr p = softmax(einsum("bhqd,bhkd->bhqk", q, k), "k");
    const auto summed = [&](const Expr& weights) { return einsum("bhqk,bhke->bhqe", weights, v); };
    Array keep({5, 9});
    for_each_index(keep.shape,
                   [&](const Sizes& i) { keep.at(i) = i[0] != 2 && (i[0] + i[1]) % 2; });
    OracleOptions oracle;
    oracle.scale = 1;
    const OracleResult all = attention_oracle(x.q, x.k, x.v, oracle);
    Array want({1, 2, 5, 7});
    for_each_index({1, 2, 5, 9, 7}, [&](const Sizes& i) {
      want.at({0, i[1], i[2], i[4]}) += 2 * keep.at({i[2], i[3]}) *
                                        all.weights.at({0, i[1], i[2], i[3]}) *
                                        x.v.at({0, i[1], i[3], i[4]});
    });
    const Expr dropped = summed(where(to_tensor(keep, boolean), p / 0.5, 0.0));
    CHECK(streaming_fault({dropped}, std::int64_t{2} * 5 * 9 * 8).empty());
    CHECK(worst_error(Tensor(dropped), want) <= 1e-14);
    // By the word: the same keys are dropped on every route, whatever the threads.
    const Expr random_ones = summed(dropout(p, 0.4, 7));
    CHECK(streaming_fault({random_ones}, std::int64_t{2} * 5 * 9 * 8).empty());
    const Tensor weights(dropout(Tensor(p), 0.4, 7));
    const Array by_hand = to_array(Tensor(einsum("bhqk,bhke->bhqe", weights, v)));
    for (const int threads : {1, 3}) {
      CHECK(worst_error(eval(random_ones, {.threads = threads}), by_hand) <= 1e-14);
      CHECK(worst_error(eval(random_ones, {.fuse = false, .threads = threads}), by_hand) <= 1e-14);
    }
  }
}
