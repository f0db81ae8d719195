// SPDX-License-Identifier: Apache-2.0
// Which elementwise steps become the epilogue of a contraction, and how that is printed.
#include <doctest/doctest.h>

#include "../../../engine/plan/operands.h"
#include "plans.h"

using namespace einkern;
using namespace einkern::test;
using map::Op;
using plan::Operand;

namespace {

/// load 0 + load 1, or load 0 alone under tanh.
map::Program program_of(std::size_t inputs, DType dtype = f32) {
  map::Program program;
  program.emit({Op::load, dtype});
  if (inputs == 2) {
    program.emit({.op = Op::load, .dtype = dtype, .arg = 1});
    program.emit({Op::add, dtype, 0, 1});
  }
  program.emit({Op::tanh, dtype, static_cast<std::int32_t>(program.code.size()) - 1});
  return program;
}

/// A product t[m,n] of 6 x 5 and 5 x 4, and what comes after it.
struct Chain {
  plan::Builder builder{kTarget};
  Operand a = builder.add_input(f32, contiguous({6, 5}));
  Operand b = builder.add_input(f32, contiguous({5, 4}));
  Operand t = builder.add_temporary(f32, {6, 4});

  Chain() { plan::add_einsum(builder, make_spec("mk,kn->mn", {{6, 5}, {5, 4}}), {a, b}, t); }

  /// Reads of the sums that are laid out anew.
  Operand sums(const Layout& layout) const { return {t.value, f32, layout}; }

  plan::Plan joined() {
    builder.join_epilogues();
    return builder.finish();
  }
};

}  // namespace

TEST_SUITE("plan") {
  TEST_CASE("an elementwise step that alone reads the sums becomes their epilogue") {
    Chain chain;
    const Operand bias = chain.builder.add_input(f32, contiguous({4}));
    const Operand spread{bias.value, f32, {{6, 4}, {0, 1}, 0}};
    const Operand out = chain.builder.add_output(f32, contiguous({6, 4}));
    chain.builder.add(plan::Map{program_of(2), {chain.t, spread}, out});
    const plan::Plan plan = chain.joined();
    const auto& step = only<plan::Contract>(plan);
    CHECK(broken_rule(plan).empty());
    REQUIRE(step.epilogue.has_value());
    CHECK(step.c.value == out.value);
    CHECK(step.epilogue->out.value == out.value);
    CHECK(step.epilogue->inputs[0].value == out.value);
    CHECK(step.epilogue->inputs[1].value == bias.value);
    const std::vector<Operand> reads = plan::reads_of(plan.steps[0]);
    REQUIRE(reads.size() == 3);
    CHECK(reads[2].value == bias.value);
    CHECK(plan.dead[0].empty());
    CHECK(plan.workspace_bytes() == 0);
    CHECK(explain(plan, kTarget) == R"(target test
step  kind                      term       dtype  M x N x K x batch  flops   read  written    time
0     matmul + map (add, tanh)  mk,kn->mn  f32    6 x 4 x 5 x 1        744  216 B     96 B  126 ns
copies: none
workspace: 0 B
)");
    CHECK(explain_json(plan, kTarget)
              .find(R"("kind": "matmul", "term": "mk,kn->mn", "dtype": "f32")"
                    R"(, "m": 6, "n": 4, "k": 5, "batch": 1,)"
                    R"( "epilogue": ["add", "tanh"],)") != std::string::npos);
  }

  TEST_CASE("the joined step comes where its other inputs are ready") {
    Chain chain;
    const Operand x = chain.builder.add_input(f32, contiguous({6, 4}));
    const Operand y = chain.builder.add_temporary(f32, {6, 4});
    const Operand out = chain.builder.add_output(f32, contiguous({6, 4}));
    chain.builder.add(plan::Map{program_of(1), {x}, y});
    chain.builder.add(plan::Map{program_of(2), {y, chain.t}, out});
    const plan::Plan plan = chain.joined();  // `finish` checks the order
    REQUIRE(plan.steps.size() == 2);
    CHECK(std::holds_alternative<plan::Map>(plan.steps[0]));
    CHECK(std::get<plan::Contract>(plan.steps[1]).epilogue.has_value());
    CHECK(plan.notes[1] == "mk,kn->mn");
    CHECK(plan.dead[1] == std::vector<plan::ValueId>{y.value});
  }

  TEST_CASE("axes of the elementwise step may be cut finer than labels, but not across them") {
    for (const Shape& cut : {Shape{24}, Shape{2, 3, 4}, Shape{3, 2, 2, 2}, Shape{6, 1, 4}}) {
      CAPTURE(to_string(cut));
      Chain chain;
      const Operand out = chain.builder.add_output(f32, contiguous(cut));
      chain.builder.add(plan::Map{program_of(1), {chain.sums(contiguous(cut))}, out});
      CHECK(only<plan::Contract>(chain.joined()).epilogue.has_value());
    }
    Chain chain;
    const Layout across = contiguous({4, 6});
    const Operand out = chain.builder.add_output(f32, across);
    chain.builder.add(plan::Map{program_of(1), {chain.sums(across)}, out});
    CHECK(chain.joined().steps.size() == 2);
  }

  TEST_CASE("other readers of sums stay steps of their own") {
    const Layout plain = contiguous({6, 4});
    SUBCASE("two of them") {
      Chain chain;
      const Operand one = chain.builder.add_output(f32, plain);
      const Operand other = chain.builder.add_output(f32, plain);
      chain.builder.add(plan::Map{program_of(1), {chain.t}, one});
      chain.builder.add(plan::Map{program_of(1), {chain.t}, other});
      CHECK(chain.joined().steps.size() == 3);
    }
    SUBCASE("turned") {
      Chain chain;
      const Operand out = chain.builder.add_output(f32, contiguous({4, 6}));
      chain.builder.add(plan::Map{program_of(1), {chain.sums({{4, 6}, {1, 4}, 0})}, out});
      CHECK(chain.joined().steps.size() == 2);
    }
    SUBCASE("into an output that lies otherwise") {
      Chain chain;
      const Operand out = chain.builder.add_output(f32, {{6, 4}, {1, 6}, 0});
      chain.builder.add(plan::Map{program_of(1), {chain.t}, out});
      CHECK(chain.joined().steps.size() == 2);
    }
    SUBCASE("spread over more") {
      Chain chain;
      const Operand out = chain.builder.add_output(f32, contiguous({3, 6, 4}));
      chain.builder.add(plan::Map{program_of(1), {chain.sums({{3, 6, 4}, {0, 4, 1}, 0})}, out});
      CHECK(chain.joined().steps.size() == 2);
    }
    SUBCASE("a part of them") {
      Chain chain;
      const Operand out = chain.builder.add_output(f32, {{2, 4}, {4, 1}, 0});
      chain.builder.add(plan::Map{program_of(1), {chain.sums({{2, 4}, {4, 1}, 4})}, out});
      CHECK(chain.joined().steps.size() == 2);
    }
    SUBCASE("of another dtype") {
      Chain chain;
      const Operand out = chain.builder.add_output(f64, plain);
      map::Program program = program_of(1);
      program.emit({Op::cast, f64, 1});
      chain.builder.add(plan::Map{program, {chain.t}, out});
      CHECK(chain.joined().steps.size() == 2);
    }
    SUBCASE("of sums that are an output themselves") {
      plan::Builder builder(kTarget);
      const Operand a = builder.add_input(f32, plain), b = builder.add_input(f32, plain);
      const Operand sums = builder.add_output(f32, contiguous({6, 6}));
      const Operand out = builder.add_output(f32, contiguous({6, 6}));
      plan::add_einsum(builder, make_spec("mk,nk->mn", {{6, 4}, {6, 4}}), {a, b}, sums);
      builder.add(plan::Map{program_of(1), {sums}, out});
      builder.join_epilogues();
      CHECK(builder.finish().steps.size() == 2);
    }
    SUBCASE("of integers") {
      plan::Builder builder(kTarget);
      const Operand a = builder.add_input(i64, plain), b = builder.add_input(i64, plain);
      const Operand sums = builder.add_temporary(i64, {6, 6});
      const Operand out = builder.add_output(i64, contiguous({6, 6}));
      plan::add_einsum(builder, make_spec("mk,nk->mn", {{6, 4}, {6, 4}}), {a, b}, sums);
      map::Program program;
      program.emit({Op::load, i64});
      program.emit({Op::neg, i64, 0});
      builder.add(plan::Map{program, {sums}, out});
      builder.join_epilogues();
      CHECK(builder.finish().steps.size() == 2);
    }
  }
}
