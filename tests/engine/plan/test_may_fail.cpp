// SPDX-License-Identifier: Apache-2.0
// Which plans may stop after they have begun to write.
#include <doctest/doctest.h>

#include <functional>

#include "../../../engine/plan/may_fail.h"
#include "plans.h"

namespace einkern::test {
namespace {

using map::Op;
using plan::Builder;
using plan::Check;
using plan::Copy;
using plan::Operand;

constexpr std::int64_t kSize = 1000;

/// A plan of one map into an output of kSize elements.
bool map_may_fail(DType dtype, const std::vector<DType>& inputs,
                  const std::function<void(map::Program&)>& write, map::Scalar scalar = {}) {
  Builder builder(kTarget);
  plan::Map step;
  for (const DType input : inputs) {
    step.inputs.push_back(builder.add_input(input, contiguous({kSize})));
  }
  step.out = builder.add_output(dtype, contiguous({kSize}));
  write(step.program);
  builder.set_scalars(1);
  builder.add(std::move(step));
  return plan::may_fail_half_way(builder.finish(), {&scalar, 1});
}

}  // namespace

TEST_SUITE("plan") {
  TEST_CASE("positions are known, integers of inputs may be anything") {
    const auto scaled = [](Op op) {
      return [op](map::Program& program) {
        const auto at = program.emit({.op = Op::index, .dtype = i64, .arg = 0});
        const auto by = program.emit({.op = Op::scalar, .dtype = i64, .arg = 0});
        program.emit({.op = op, .dtype = i64, .a = at, .b = by});
      };
    };
    CHECK_FALSE(map_may_fail(i64, {}, scaled(Op::sub), map::Scalar::of(std::int64_t{1} << 40)));
    CHECK_FALSE(map_may_fail(i64, {}, scaled(Op::mul), map::Scalar::of(std::int64_t{1} << 50)));
    CHECK(map_may_fail(i64, {}, scaled(Op::mul), map::Scalar::of(std::int64_t{1} << 60)));
    CHECK_FALSE(map_may_fail(i64, {}, scaled(Op::mod), map::Scalar::of(std::int64_t{3})));
    CHECK(map_may_fail(i64, {}, scaled(Op::mod), map::Scalar::of(std::int64_t{0})));
    CHECK(map_may_fail(i64, {i64, i64}, [](map::Program& program) {
      const auto a = program.emit({.op = Op::load, .dtype = i64, .arg = 0});
      const auto b = program.emit({.op = Op::load, .dtype = i64, .arg = 1});
      program.emit({.op = Op::add, .dtype = i64, .a = a, .b = b});
    }));
    CHECK_FALSE(map_may_fail(f32, {f32}, [](map::Program& program) {
      const auto a = program.emit({.op = Op::load, .dtype = f32, .arg = 0});
      program.emit({.op = Op::add, .dtype = f32, .a = a, .b = a});
    }));
    CHECK(map_may_fail(i64, {f32}, [](map::Program& program) {
      const auto a = program.emit({.op = Op::load, .dtype = f32, .arg = 0});
      program.emit({.op = Op::cast, .dtype = i64, .a = a});
    }));
  }

  TEST_CASE("a check before the first output is written spoils nothing") {
    for (const bool check_first : {true, false}) {
      Builder builder(kTarget);
      const Operand a = builder.add_input(i64, contiguous({kSize}));
      const Operand b = builder.add_input(f32, contiguous({kSize}));
      const Operand out = builder.add_output(f32, contiguous({kSize}));
      const Check check{.in = a, .low = 0, .high = 3, .message = "{}"};
      if (check_first) builder.add(check);
      builder.add(Copy{b, out});
      if (!check_first) builder.add(check);
      CHECK(plan::may_fail_half_way(builder.finish(), {}) == !check_first);
    }
  }

  TEST_CASE("integer contractions may overflow, casts to integers may not fit") {
    CHECK(plan::may_fail_half_way(plan_of("ij,jk->ik", {{2, 3}, {3, 4}}, i64), {}));
    CHECK_FALSE(plan::may_fail_half_way(plan_of("ij,jk->ik", {{2, 3}, {3, 4}}, f64), {}));
    for (const DType to : {f32, i32}) {
      Builder builder(kTarget);
      const Operand a = builder.add_input(f64, contiguous({kSize}));
      builder.add(Copy{a, builder.add_output(to, contiguous({kSize}))});
      CHECK(plan::may_fail_half_way(builder.finish(), {}) == (to == i32));
    }
  }
}

}  // namespace einkern::test
