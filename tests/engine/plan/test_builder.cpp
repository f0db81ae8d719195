// SPDX-License-Identifier: Apache-2.0
// Lifetimes, workspace and estimates of plans put together by hand.
#include <doctest/doctest.h>

#include "../../../engine/plan/operands.h"
#include "plans.h"

namespace einkern::test {
namespace {

using plan::Builder;
using plan::Copy;
using plan::Fill;
using plan::Operand;
using plan::Plan;
using plan::ValueId;

using Dead = std::vector<std::vector<ValueId>>;

}  // namespace

TEST_SUITE("plan") {
  TEST_CASE("values are numbered in order, inputs and outputs by position") {
    Builder builder(kTarget);
    const Operand a = builder.add_input(f32, contiguous({2, 3}), "a");
    const Operand out = builder.add_output(f64, contiguous({2, 3}), "out");
    const Operand b = builder.add_input(i8, {{2}, {-1}, 0}, "b");
    builder.set_scalars(3);
    const Plan plan = builder.finish();
    CHECK(plan.inputs == std::vector<ValueId>{a.value, b.value});
    CHECK(plan.outputs == std::vector<ValueId>{out.value});
    CHECK(plan.values[2].role == plan::Value::Role::input);
    CHECK(plan.values[2].position == 1);
    CHECK(plan.values[2].layout == Layout{{2}, {-1}, 0});
    CHECK(plan.values[2].note == "b");
    CHECK(plan.scalars == 3);
    CHECK(builder.finish().values.empty());
  }

  TEST_CASE("temporaries die after the last step that touches them") {
    Builder builder(kTarget);
    const Operand a = builder.add_input(f32, contiguous({10}));
    const Operand x = builder.add_temporary(f32, {10});
    const Operand y = builder.add_temporary(f64, {10});
    const Operand z = builder.add_temporary(f32, {10});
    const Operand out = builder.add_output(f32, contiguous({10}));
    builder.add(Copy{a, x});
    builder.add(Copy{x, y});
    builder.add(Copy{x, z});
    builder.add(Copy{y, out});
    const Plan plan = builder.finish();
    // z is written and never read: it dies at once.
    CHECK(plan.dead == Dead{{}, {}, {x.value, z.value}, {y.value}});
    CHECK(plan.workspace_bytes() == 40 + 80 + 40);
    CHECK(plan.estimates.size() == 4);
  }

  TEST_CASE("workspace is the largest sum that is alive at once, not the sum of all") {
    Builder builder(kTarget);
    Operand last = builder.add_input(f32, contiguous({100}));
    for (int i = 0; i < 10; ++i) {
      const Operand next = builder.add_temporary(f32, {100});
      builder.add(Copy{last, next});
      last = next;
    }
    CHECK(builder.finish().workspace_bytes() == 800);
    CHECK(Plan{}.workspace_bytes() == 0);
  }

  TEST_CASE("reading what was never written is a broken invariant") {
    Builder builder(kTarget);
    const Operand out = builder.add_output(f32, contiguous({10}));
    builder.add(Copy{builder.add_temporary(f32, {10}), out});
    CHECK_THROWS_AS(builder.finish(), std::logic_error);
    Builder writes_input(kTarget);
    writes_input.add(Fill{writes_input.add_input(f32, contiguous({10})), 0});
    CHECK_THROWS_AS(writes_input.finish(), std::logic_error);
    Builder unknown(kTarget);
    unknown.add(Fill{{7, f32, contiguous({10})}, 0});
    CHECK_THROWS_AS(unknown.finish(), std::logic_error);
  }

  TEST_CASE("paths of several contractions are told apart") {
    Builder builder(kTarget);
    builder.append_path("0,1;0,1");
    builder.append_path("");
    builder.append_path("0,1");
    CHECK(builder.finish().path == "0,1;0,1 | 0,1");
  }

  TEST_CASE("what a step reads and writes") {
    const Operand a{0, f32, {}}, b{1, f32, {}}, c{2, f32, {}}, d{3, boolean, {}};
    const auto values = [](const plan::Step& step) {
      std::vector<ValueId> ids;
      for (const Operand& operand : reads_of(step)) ids.push_back(operand.value);
      ids.push_back(-written_by(step).value);
      return ids;
    };
    using Ids = std::vector<ValueId>;
    const plan::Contract contract{plan::Regime::dot, a, b, c, {}, {}, {}, {}};
    CHECK(values(contract) == Ids{0, 1, -2});
    CHECK(values(plan::SelectContract{contract, d, {}, {}, {}}) == Ids{0, 1, 3, -2});
    CHECK(values(plan::Reduce{plan::ReduceOp::max, a, c, {}, {}}) == Ids{0, -2});
    CHECK(values(plan::Map{{}, {b, a}, c}) == Ids{1, 0, -2});
    CHECK(values(plan::Softmax{plan::SoftmaxKind::softmax, 1, a, c, {}}) == Ids{0, -2});
    CHECK(values(plan::Softmax{plan::SoftmaxKind::softmax, 1, a, c, b}) == Ids{0, 1, -2});
    CHECK(values(Copy{a, c}) == Ids{0, -2});
    CHECK(values(Fill{c, 1}) == Ids{-2});
  }

  TEST_CASE("estimates are a roofline with an overhead") {
    // 100 GFLOP/s, 10 GB/s read, 20 GB/s written, 0.1 us a call.
    const Plan product = plan_of("ab,bc->ac", {{1000, 1000}, {1000, 1000}});
    CHECK(product.estimates[0].flops == 2e9);
    CHECK(product.estimates[0].bytes_read == 8e6);
    CHECK(product.estimates[0].bytes_written == 4e6);
    CHECK(product.estimates[0].seconds == doctest::Approx(0.02 + 1e-7));
    const Plan in_doubles = plan_of("ab,bc->ac", {{1000, 1000}, {1000, 1000}}, f64);
    CHECK(in_doubles.estimates[0].seconds == doctest::Approx(0.04 + 1e-7));
    const Plan in_integers = plan_of("ab,bc->ac", {{1000, 1000}, {1000, 1000}}, i64);
    CHECK(in_integers.estimates[0].seconds == doctest::Approx(0.32 + 1e-7));
    const Plan outer = plan_of("a,b->ab", {{1000}, {1000}});
    CHECK(outer.estimates[0].seconds == doctest::Approx(8e3 / 10e9 + 4e6 / 20e9 + 1e-7));
  }

  TEST_CASE("what a stride of 0 repeats is read once") {
    Builder builder(kTarget);
    const Operand a = builder.add_input(f32, {{1000, 10}, {0, 1}, 0});
    const Operand out = builder.add_output(f32, contiguous({1000, 10}));
    builder.add(Copy{a, out});
    const Plan plan = builder.finish();
    CHECK(plan.estimates[0].bytes_read == 40);
    CHECK(plan.estimates[0].bytes_written == 40000);
  }
}

}  // namespace einkern::test
