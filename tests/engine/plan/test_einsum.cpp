// SPDX-License-Identifier: Apache-2.0
// Which steps a contraction becomes: sums, copies, products, their layouts and their text.
#include <doctest/doctest.h>

#include "../../support/cases.h"
#include "../../support/naive_execute.h"
#include "plans.h"

namespace einkern::test {
namespace {

using plan::Contract;
using plan::Copy;
using plan::Fill;
using plan::Loops;
using plan::Operand;
using plan::Plan;
using plan::Reduce;
using plan::Regime;

/// Kinds of the steps of a plan with the terms they stand for.
std::string steps_of(const Plan& plan) {
  std::string text;
  for (std::size_t i = 0; i < plan.steps.size(); ++i) {
    const auto* contract = std::get_if<Contract>(&plan.steps[i]);
    text += (text.empty() ? "" : "; ") +
            std::string(contract != nullptr ? name_of(contract->regime) : name_of(plan.steps[i]));
    if (!plan.notes[i].empty()) text += " " + plan.notes[i];
  }
  return text;
}

std::string steps_of(std::string_view equation, const std::vector<Shape>& shapes) {
  return steps_of(plan_of(equation, shapes));
}

}  // namespace

TEST_SUITE("plan") {
  TEST_CASE("one operand") {
    CHECK(steps_of("ab->ab", {{2, 3}}) == "copy ab->ab");
    CHECK(steps_of("ab->ba", {{2, 3}}) == "copy ab->ba");
    CHECK(steps_of("ab->a", {{2, 3}}) == "reduce ab->a");
    CHECK(steps_of("ab->", {{2, 3}}) == "reduce ab->");
    CHECK(steps_of("->", {{}}) == "copy ->");
    CHECK(steps_of("aa->a", {{3, 3}}) == "copy a->a");
    CHECK(steps_of("aa->", {{3, 3}}) == "reduce a->");
    CHECK(steps_of("a->aa", {{3}}) == "fill off the diagonal; copy a->a");
    CHECK(steps_of("a->aa", {{1}}) == "copy ->");
  }

  TEST_CASE("a diagonal is a view, and so is the diagonal that is written") {
    const Copy read = only<Copy>(plan_of("aba->ba", {{3, 2, 3}}));
    CHECK(read.in.layout == Layout{{2, 3}, {3, 7}, 0});
    CHECK(read.out.layout == contiguous({2, 3}));
    const Plan plan = plan_of("ab->baa", {{3, 2}});
    CHECK(std::get<Fill>(plan.steps[0]).out.layout == contiguous({2, 3, 3}));
    CHECK(std::get<Fill>(plan.steps[0]).value == 0);
    CHECK(std::get<Copy>(plan.steps[1]).in.layout == Layout{{2, 3}, {1, 2}, 0});
    CHECK(std::get<Copy>(plan.steps[1]).out.layout == Layout{{2, 3}, {9, 4}, 0});
  }

  TEST_CASE("sums run along the memory they read") {
    const Reduce s = only<Reduce>(plan_of("abcd->db", {{2, 3, 4, 5}}));
    CHECK(s.op == plan::ReduceOp::sum);
    CHECK(s.kept == Loops{{5, 1, 0, 3}, {3, 20, 0, 1}});
    CHECK(s.reduced == Loops{{2, 60, 0, 0}, {4, 5, 0, 0}});
    CHECK(only<Reduce>(plan_of("abc->a", {{2, 3, 4}})).reduced == Loops{{12, 1, 0, 0}});
  }

  TEST_CASE("labels of one operand alone are summed first") {
    CHECK(steps_of("abx,bcy->ac", {{2, 3, 4}, {3, 4, 5}}) ==
          "reduce abx->ab; reduce bcy->bc; matmul ab,bc->ac");
    CHECK(steps_of("a,b->", {{2}, {3}}) == "reduce a->; reduce b->; map ,->");
  }

  TEST_CASE("products in which nothing is summed are elementwise, or outer") {
    CHECK(steps_of("ab,ab->ab", {{2, 3}, {2, 3}}) == "map ab,ab->ab");
    CHECK(steps_of("abc,b->abc", {{2, 3, 4}, {3}}) == "map abc,b->abc");
    CHECK(steps_of("abc,->abc", {{2, 3, 4}, {}}) == "map abc,->abc");
    CHECK(steps_of(",->", {{}, {}}) == "map ,->");
    CHECK(steps_of("a,b->ab", {{2}, {3}}) == "outer a,b->ab");
    CHECK(steps_of("xa,xb->xab", {{2, 30}, {2, 30}}) == "outer xa,xb->xab");
    CHECK(steps_of("xa,xb->xab", {{30, 2}, {30, 2}}) == "map xa,xb->xab");
    const plan::Map map = only<plan::Map>(plan_of("abc,b->cab", {{2, 3, 4}, {3}}));
    CHECK(map.out.layout == contiguous({4, 2, 3}));
    CHECK(map.inputs[0].layout == Layout{{4, 2, 3}, {1, 12, 4}, 0});
    CHECK(map.inputs[1].layout == Layout{{4, 2, 3}, {0, 0, 1}, 0});
    CHECK(map.program.str() == "r0: f32 = load 0\nr1: f32 = load 1\nr2: f32 = mul r0 r1\n");
  }

  TEST_CASE("axes of size 1 broadcast, and are dropped") {
    CHECK(steps_of("ab,bc->ac", {{2, 1}, {3, 4}}) == "reduce bc->c; outer a,c->ac");
    CHECK(steps_of("ab,ab->ab", {{2, 1}, {1, 3}}) == "outer a,b->ab");
    CHECK(steps_of("ab,bc->ac", {{1, 5}, {5, 1}}) == "dot b,b->");
  }

  TEST_CASE("an axis of stride 0 is treated as the axis of size 1 it was") {
    plan::Builder builder(kTarget);
    const Operand a = builder.add_input(f32, {{8, 3}, {0, 1}, 0});
    const Operand b = builder.add_input(f32, contiguous({8, 3, 4}));
    const Operand out = builder.add_output(f32, contiguous({8, 4}));
    plan::add_einsum(builder, make_spec("bk,bkn->bn", {{8, 3}, {8, 3, 4}}), {a, b}, out);
    CHECK(steps_of(builder.finish()) == "matvec k,bkn->bn");

    // Where only the output has it, one result is copied to all places.
    plan::Builder stretched(kTarget);
    const Operand x = stretched.add_input(f32, {{8, 3}, {0, 1}, 0});
    const Operand y = stretched.add_input(f32, contiguous({3, 4}));
    const Operand z = stretched.add_output(f32, contiguous({8, 4}));
    plan::add_einsum(stretched, make_spec("bk,kn->bn", {{8, 3}, {3, 4}}), {x, y}, z);
    CHECK(steps_of(stretched.finish()) == "matvec k,kn->n; copy n->bn");
  }

  TEST_CASE("nothing to compute") {
    CHECK(steps_of("ab,bc->ac", {{0, 3}, {3, 4}}) == "");
    CHECK(steps_of("ab,bc->ac", {{2, 0}, {0, 4}}) == "fill");
    CHECK(only<Fill>(plan_of("ab,bc->ac", {{2, 0}, {0, 4}})).value == 0);
    CHECK(steps_of("ab,bc->ac", {{2, 1}, {0, 4}}) == "fill");
    CHECK(only<Fill>(plan_of(Spec{}, f32)).value == 1);  // the product of no operands
  }

  TEST_CASE("operands are converted to the dtype of the output") {
    plan::Builder builder(kTarget);
    const Operand a = builder.add_input(i8, contiguous({2, 3}));
    const Operand b = builder.add_input(f32, contiguous({3, 4}));
    const Operand out = builder.add_output(f64, contiguous({2, 4}));
    plan::add_einsum(builder, make_spec("ab,bc->ac", {{2, 3}, {3, 4}}), {a, b}, out);
    const Plan plan = builder.finish();
    CHECK(steps_of(plan) == "copy ab->ab; copy bc->bc; matmul ab,bc->ac");
    CHECK(std::get<Copy>(plan.steps[0]).in.dtype == i8);
    CHECK(std::get<Copy>(plan.steps[0]).out.dtype == f64);
    CHECK(plan.workspace_bytes() == (6 + 12) * 8);

    plan::Builder single(kTarget);
    const Operand x = single.add_input(i8, contiguous({2, 3}));
    const Operand y = single.add_output(i64, contiguous({3, 2}));
    plan::add_einsum(single, make_spec("ab->ba", {{2, 3}}), {x}, y);
    CHECK(steps_of(single.finish()) == "copy ab->ba");

    plan::Builder narrow(kTarget);
    const Operand p = narrow.add_input(i32, contiguous({2, 3}));
    const Operand q = narrow.add_output(i32, contiguous({2}));
    plan::add_einsum(narrow, make_spec("ab->a", {{2, 3}}), {p}, q);
    CHECK(steps_of(narrow.finish()) == "copy ab->ab; reduce ab->a; copy a->a");
  }

  TEST_CASE("a converted operand keeps its axes of stride 0") {
    plan::Builder builder(kTarget);
    const Operand a = builder.add_input(i32, {{4, 5}, {0, 1}, 0});
    const Operand out = builder.add_output(i64, contiguous({}));
    plan::add_einsum(builder, make_spec("ab->", {{4, 5}}), {a}, out);
    const Plan plan = builder.finish();
    CHECK(steps_of(plan) == "copy b->b; reduce ab->");
    CHECK(plan.workspace_bytes() == 5 * 8);
  }

  TEST_CASE("the path is followed and printed") {
    const std::vector<Shape> chain = {{10, 100}, {100, 5}, {5, 50}};
    const Plan left = plan_of("ab,bc,cd->ad", chain);
    CHECK(left.path == "0,1;0,1");
    CHECK(steps_of(left) == "matmul ab,bc->ac; matmul cd,ac->ad");
    const Plan right = plan_of("ab,bc,cd->ad", chain, f32, parse_path("1,2;0,1"));
    CHECK(right.path == "1,2;0,1");
    CHECK(steps_of(right) == "matmul bc,cd->bd; matmul ab,bd->ad");
    const Plan at_once = plan_of("ab,bc,cd->ad", chain, f32, parse_path("2,1,0"));
    CHECK(at_once.path == "2,1,0");
    CHECK(steps_of(at_once) == "matmul cd,bc->bd; matmul bd,ab->ad");
    CHECK(plan_of("ab->ba", {{2, 3}}).path == "");
  }

  TEST_CASE("intermediates die as soon as they are read") {
    const Plan plan = plan_of("ab,bc,cd,de->ae", {{2, 3}, {3, 4}, {4, 5}, {5, 6}}, f32,
                              parse_path("0,1;0,2;0,1"));
    CHECK(steps_of(plan) == "matmul ab,bc->ac; matmul cd,ac->ad; matmul de,ad->ae");
    CHECK(plan.workspace_bytes() == (2 * 4 + 2 * 5) * 4);
  }

  TEST_CASE("the parent dictates the layout its child writes") {
    const auto first_result = [](std::string_view equation, const std::vector<Shape>& shapes,
                                 std::string_view path) {
      const Plan plan = plan_of(equation, shapes, f32, parse_path(path));
      const std::string& note = plan.notes.front();
      return note.substr(note.find('>') + 1);
    };
    const std::vector<Shape> chain = {{9, 9}, {9, 9}, {9, 9}};
    // The child is b of its parent, c's unit stride being its own: contracted, then free.
    CHECK(first_result("xy,yz,wx->wz", chain, "0,1;0,1") == "xz");
    // The child is a: free, then contracted.
    CHECK(first_result("xy,yz,wx->zw", chain, "0,1;0,1") == "zx");
    // Batch comes first, or last where the output has it last.
    const std::vector<Shape> batched = {{5, 9, 9}, {5, 9, 9}, {5, 9, 9}};
    CHECK(first_result("bxy,byz,bzw->bxw", batched, "0,1;0,1") == "bxz");
    CHECK(first_result("bxy,byz,bzw->xwb", batched, "0,1;0,1") == "xzb");
    // Nothing contracted with the sibling: as in the parent.
    CHECK(first_result("ab,bcd,c->dca", {{9, 9}, {9, 9, 9}, {9}}, "0,1;0,1") == "dca");
    // Contracted labels follow the sibling's memory.
    CHECK(first_result("abc,d,cbd->ad", {{9, 9, 9}, {1}, {9, 9, 9}}, "0,1;0,1") == "acb");
  }

  TEST_CASE("names of several characters, and axes without a name") {
    CHECK(steps_of("[row in],[in column]->[row column]", {{9, 9}, {9, 9}}) ==
          "matmul [row in],[in column]->[row column]");
    CHECK(steps_of("...a,ab->...b", {{3, 9, 9}, {9, 9}}) == "matmul cda,ab->cdb");
    CHECK(steps_of("é漢,漢b->éb", {{9, 9}, {9, 9}}) == "matmul é漢,漢b->éb");
  }

  TEST_CASE("an intermediate that no memory can hold is refused") {
    constexpr std::int64_t kHuge = std::int64_t{1} << 31;
    const Spec spec = make_spec("a,b,ac,bc->c", {{kHuge}, {kHuge}, {kHuge, 1}, {kHuge, 1}});
    CHECK_THROWS_WITH_AS(plan_of(spec, f32, parse_path("0,1;0,1;0,1")),
                         "einsum: shape (2147483648, 2147483648) has more elements than 64-bit "
                         "offsets can reach",
                         ShapeError);
    CHECK(steps_of(plan_of(spec)) == "dot a,a->; dot b,b->; map ,->");
  }

  TEST_CASE("the checked examples") {
    int run = 0;
    for (const EinsumCase& example : read_einsum_cases()) {
      if (!example.ok) continue;
      CAPTURE(example.id);
      CAPTURE(example.spec);
      std::vector<Shape> shapes(example.shapes.begin(), example.shapes.end());
      const Spec spec = example.sublists
                            ? make_spec(example.sublists->inputs, example.sublists->output, shapes)
                            : make_spec(example.spec, shapes);
      std::vector<std::vector<double>> values;
      std::vector<const void*> inputs;
      for (std::size_t p = 0; p < shapes.size(); ++p) {
        values.push_back(operand_values(example, p));
      }
      for (const std::vector<double>& operand : values) inputs.push_back(operand.data());
      const Shape out_shape = spec.output_shape();
      CHECK(std::vector<std::int64_t>(out_shape.begin(), out_shape.end()) == example.out_shape);
      for (const PathMethod method : {PathMethod::automatic, PathMethod::greedy}) {
        std::vector<double> out(static_cast<std::size_t>(element_count(out_shape)), 77);
        naive_execute(plan_of(spec, f64, {method, {}}), inputs, {out.data()});
        double sum = 0, weighted = 0;
        for (std::size_t i = 0; i < out.size(); ++i) {
          sum += out[i];
          weighted += static_cast<double>(i % 13 + 1) * out[i];
        }
        CHECK(sum == example.out_sum);
        CHECK(weighted == example.out_wsum);
      }
      ++run;
    }
    CHECK(run > 90);
  }
}

}  // namespace einkern::test
