// SPDX-License-Identifier: Apache-2.0
// When a large operand is read where it lies for a few rows of the other: every bound from both
// sides, and which halves stay what they are.
#include <doctest/doctest.h>

#include <string>
#include <tuple>
#include <vector>

#include "../../../engine/plan/skinny.h"
#include "plans.h"

namespace einkern::test {
namespace {

using plan::Operand;
using plan::Regime;
using plan::SkinnyForm;

/// Sizes of the letters that the terms below are made of.
struct Sizes {
  std::int64_t m = 1, n = 1, k = 1, x = 1;
};

Shape shape_of(const std::string& term, const Sizes& sizes) {
  Shape shape;
  for (const char letter : term) {
    shape.push_back(letter == 'm'   ? sizes.m
                    : letter == 'n' ? sizes.n
                    : letter == 'k' ? sizes.k
                                    : sizes.x);
  }
  return shape;
}

/// The contraction of contiguous operands, `equation` being "a,b->c".
plan::Contract skinny_pair(const std::string& equation, const Sizes& sizes, DType dtype = f32) {
  const std::size_t comma = equation.find(','), arrow = equation.find("->");
  const auto operand = [&](plan::ValueId value, const std::string& term) {
    return Operand{value, dtype, contiguous(shape_of(term, sizes))};
  };
  const auto labels = [](const std::string& term) {
    return std::vector<LabelId>(term.begin(), term.end());
  };
  const std::string a = equation.substr(0, comma), c = equation.substr(arrow + 2);
  const std::string b = equation.substr(comma + 1, arrow - comma - 1);
  return plan::make_contract(operand(0, a), labels(a), operand(1, b), labels(b), operand(2, c),
                             labels(c), kTarget);
}

Regime regime_of(const std::string& equation, const Sizes& sizes, DType dtype = f32) {
  return skinny_pair(equation, sizes, dtype).regime;
}

SkinnyForm form_of(const std::string& equation, const Sizes& sizes) {
  return plan::skinny_form(skinny_pair(equation, sizes));
}

/// Kinds of the steps of a plan with the terms they stand for.
std::string kinds_of(const plan::Plan& plan) {
  std::string text;
  for (std::size_t i = 0; i < plan.steps.size(); ++i) {
    const auto* contract = std::get_if<plan::Contract>(&plan.steps[i]);
    text += (text.empty() ? "" : "; ") +
            std::string(contract != nullptr ? name_of(contract->regime) : name_of(plan.steps[i])) +
            " " + plan.notes[i];
  }
  return text;
}

/// The plan of a product into f32.
plan::Plan plan_of_pair(const std::string& equation, const Shape& shape_a, DType a,
                        const Shape& shape_b, DType b) {
  const Spec spec = make_spec(equation, {shape_a, shape_b});
  plan::Builder builder(kTarget);
  const std::vector<Operand> operands{builder.add_input(a, contiguous(shape_a)),
                                      builder.add_input(b, contiguous(shape_b))};
  plan::add_einsum(builder, spec, operands,
                   builder.add_output(f32, contiguous(spec.output_shape())));
  return builder.finish();
}

}  // namespace

TEST_SUITE("plan") {
  TEST_CASE("dots of few rows: every bound from both sides") {
    // Three rows for every lane of f32.
    constexpr std::int64_t kMost = 3 * kTarget.vector_bytes / 4;
    const auto regime = [](std::int64_t m, std::int64_t n, std::int64_t k, DType dtype = f32) {
      return regime_of("mk,nk->mn", {m, n, k}, dtype);
    };
    CHECK(regime(kMost, 512, 1024) == Regime::skinny);
    CHECK(regime(kMost + 1, 512, 1024) == Regime::matmul);  // too many rows
    CHECK(regime(kMost / 2, 512, 1024, f64) == Regime::skinny);
    CHECK(regime(kMost / 2 + 1, 512, 1024, f64) == Regime::matmul);
    CHECK(regime(8, 512, 128) == Regime::skinny);
    CHECK(regime(8, 512, 127) == Regime::matmul);  // sums too short for so many
    CHECK(regime(9, 512, 128) == Regime::matmul);
    CHECK(regime(2, 512, 64) == Regime::skinny);
    CHECK(regime(2, 512, 63) == Regime::matmul);  // sums too short for any
    CHECK(regime(2, 128, 512) == Regime::skinny);
    CHECK(regime(2, 127, 512) == Regime::matmul);  // not large
    CHECK(regime(1, 512, 512) == Regime::matvec);
  }

  TEST_CASE("weighted sums for few rows: every bound from both sides") {
    const auto regime = [](std::int64_t m, std::int64_t n, std::int64_t k, DType dtype = f32) {
      return regime_of("mk,kn->mn", {m, n, k}, dtype);
    };
    CHECK(regime(4, 128, 64) == Regime::skinny);
    CHECK(regime(5, 128, 64) == Regime::matmul);
    CHECK(regime(4, 127, 64) == Regime::matmul);
    CHECK(regime(4, 128, 63) == Regime::matmul);
    // A matrix of 8 MiB and more comes from memory.
    CHECK(regime(5, 2048, 1024) == Regime::skinny);
    CHECK(regime(16, 2048, 1024) == Regime::skinny);
    CHECK(regime(16, 2048, 1023) == Regime::matmul);
    CHECK(regime(17, 2048, 1024) == Regime::matmul);
    CHECK(regime(16, 2048, 512, f64) == Regime::skinny);
    CHECK(regime(16, 2048, 511, f64) == Regime::matmul);
    CHECK(regime(1, 512, 512) == Regime::matvec);
  }

  TEST_CASE("few columns as well as few rows") {
    CHECK(regime_of("nk,mk->nm", {2, 512, 64}) == Regime::skinny);
    CHECK(regime_of("nk,mk->nm", {2, 512, 63}) == Regime::matmul);
    CHECK(regime_of("kn,km->mn", {4, 512, 64}) == Regime::skinny);
    CHECK(plan::few_rows(skinny_pair("mk,nk->mn", {2, 512, 64})));
    CHECK_FALSE(plan::few_rows(skinny_pair("nk,mk->nm", {2, 512, 64})));
    // c runs along the few, so that rows of the large operand lie across it.
    CHECK(regime_of("km,kn->nm", {4, 512, 64}) == Regime::matmul);
    CHECK(regime_of("km,nk->nm", {4, 512, 64}) == Regime::skinny);
  }

  TEST_CASE("which way the rows of the large operand run") {
    CHECK(form_of("mk,nk->mn", {2, 200, 70}) == SkinnyForm::dots);
    CHECK(form_of("km,nk->mn", {2, 200, 70}) == SkinnyForm::dots);
    CHECK(form_of("mk,kn->mn", {2, 200, 70}) == SkinnyForm::sums);
    // The large operand is a: what counts are its strides, not those of b.
    CHECK(form_of("nk,km->nm", {2, 200, 70}) == SkinnyForm::dots);
    CHECK(form_of("kn,mk->nm", {2, 200, 70}) == SkinnyForm::none);
    // Rows with a label of their own may be anywhere, columns of sums may not.
    CHECK(form_of("mk,nxk->mxn", {2, 40, 70, 5}) == SkinnyForm::dots);
    CHECK(form_of("mk,knx->mxn", {2, 40, 70, 5}) == SkinnyForm::none);
    CHECK(form_of("mk,knx->nmx", {2, 40, 70, 5}) == SkinnyForm::none);
    CHECK(form_of("mkx,xkn->mn", {2, 200, 70, 3}) == SkinnyForm::sums);
    CHECK(form_of("mkx,nxk->mn", {2, 200, 70, 3}) == SkinnyForm::none);
    CHECK(regime_of("mk,nxk->mxn", {2, 40, 70, 5}) == Regime::skinny);
    CHECK(regime_of("mkx,nxk->mn", {2, 200, 70, 3}) == Regime::matmul);
    CHECK(regime_of("mk,nk->mn", {2, 200, 70}, i64) == Regime::matmul);
    // Every second element of the rows.
    const Operand a{0, f32, contiguous({2, 70})}, b{1, f32, {{200, 70}, {140, 2}, 0}};
    const Operand c{2, f32, contiguous({2, 200})};
    CHECK(plan::make_contract(a, {0, 1}, b, {2, 1}, c, {0, 2}, kTarget).regime == Regime::matmul);
    // Rows and columns of a larger matrix, rows downwards.
    const Operand view{1, f32, {{200, 70}, {-90, 1}, 199 * 90}};
    CHECK(plan::make_contract(a, {0, 1}, view, {2, 1}, c, {0, 2}, kTarget).regime ==
          Regime::skinny);
  }

  TEST_CASE("few rows in a batch") {
    CHECK(regime_of("xmk,xnk->xmn", {2, 512, 64, 3}) == Regime::skinny);
    CHECK(regime_of("xmk,xkn->xmn", {2, 512, 64, 20}) == Regime::skinny);
    // Many matrices that are small: of 32768 products, and of a few more.
    CHECK(regime_of("xmk,xnk->xmn", {2, 256, 64, 16}) == Regime::small_batched);
    CHECK(regime_of("xmk,xnk->xmn", {2, 257, 64, 16}) == Regime::skinny);
    CHECK(regime_of("xmk,xnk->xmn", {2, 256, 64, 15}) == Regime::skinny);
    // Streamed: a short sum whose result is what takes time.
    CHECK(regime_of("mk,kn->mn", {4, 200000, 64}) == Regime::stream);
    CHECK(regime_of("xmk,xkn->xmn", {4, 200000, 64, 2}) == Regime::skinny);
  }

  TEST_CASE("large halves are read as they are, also for one row") {
    for (const auto& [rows, first, second] : {std::tuple{1, "skinny k,nk->n", "skinny nk,k->n"},
                                              {8, "skinny mk,nk->mn", "skinny nk,mk->nm"}}) {
      CAPTURE(rows);
      const Shape few{rows, 256}, many{512, 256};
      CHECK(kinds_of(plan_of_pair("mk,nk->mn", few, f32, many, bf16)) == first);
      CHECK(kinds_of(plan_of_pair("mk,nk->mn", few, bf16, many, bf16)) == first);
      CHECK(kinds_of(plan_of_pair("nk,mk->nm", many, f16, few, f32)) == second);
    }
    const plan::Plan plan = plan_of_pair("k,kn->n", {256}, f32, {256, 512}, bf16);
    const auto& step = only<plan::Contract>(plan);
    CHECK(step.regime == Regime::skinny);
    CHECK(plan::skinny_form(step) == SkinnyForm::sums);
    CHECK(step.b.dtype == bf16);
    CHECK(plan::reads_halves(step));
    // What is not skinny with one row is converted first: nothing else reads halves there.
    CHECK(kinds_of(plan_of_pair("k,nk->n", {63}, f32, {512, 63}, bf16)).starts_with("copy"));
    CHECK(kinds_of(plan_of_pair("k,nk->n", {64}, f32, {127, 64}, bf16)).starts_with("copy"));
    CHECK(kinds_of(plan_of_pair("k,nk->n", {64}, f32, {128, 64}, bf16)) == "skinny k,nk->n");
    // A vector of f32 keeps to its own code.
    CHECK(kinds_of(plan_of_pair("k,nk->n", {64}, f32, {128, 64}, f32)) == "matvec k,nk->n");
  }

  TEST_CASE("explain names skinny steps") {
    CHECK(name_of(Regime::skinny) == "skinny");
    const plan::Plan plan = plan_of("mk,nk->mn", {{4, 256}, {512, 256}});
    CHECK(explain(plan, kTarget).find("0     skinny  mk,nk->mn  f32    4 x 512 x 256 x 1") !=
          std::string::npos);
    CHECK(explain_json(plan, kTarget).find(R"({"kind": "skinny", "term": "mk,nk->mn")") !=
          std::string::npos);
    CHECK(broken_rule(plan).empty());
  }
}

}  // namespace einkern::test
