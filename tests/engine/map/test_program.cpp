// SPDX-License-Identifier: Apache-2.0
// Building, printing and checking elementwise programs.
#include <doctest/doctest.h>

#include <set>
#include <stdexcept>
#include <string>

#include "../../../engine/map/program.h"

using namespace einkern;
using namespace einkern::map;

TEST_SUITE("map") {
  TEST_CASE("every operation has its own name and an arity") {
    std::set<std::string_view> names;
    const int last = static_cast<int>(Op::select);
    for (int i = 0; i <= last; ++i) names.insert(name_of(static_cast<Op>(i)));
    CHECK(names.size() == static_cast<std::size_t>(last) + 1);
    CHECK(name_of(Op::load) == "load");
    CHECK(name_of(Op::floordiv) == "floordiv");
    CHECK(name_of(Op::less_equal) == "less_equal");
    CHECK(name_of(Op::logical_or) == "logical_or");
    CHECK(name_of(Op::select) == "select");
    CHECK(arity(Op::load) == 0);
    CHECK(arity(Op::scalar) == 0);
    CHECK(arity(Op::index) == 0);
    CHECK(arity(Op::cast) == 1);
    CHECK(arity(Op::erf) == 1);
    CHECK(arity(Op::logical_not) == 1);
    CHECK(arity(Op::add) == 2);
    CHECK(arity(Op::less) == 2);
    CHECK(arity(Op::logical_and) == 2);
    CHECK(arity(Op::select) == 3);
  }

  TEST_CASE("equal instructions are stored once, in order of first use") {
    Program program;
    const auto x = program.emit({Op::load, f32});
    const auto y = program.emit({.op = Op::load, .dtype = f32, .arg = 1});
    CHECK(program.emit({Op::load, f32}) == x);
    const auto sum = program.emit({Op::add, f32, x, y});
    CHECK(program.emit({Op::add, f32, x, y}) == sum);
    CHECK(program.emit({Op::add, f32, y, x}) != sum);
    CHECK(program.code.size() == 4);
    CHECK(program.dtype() == f32);
  }

  TEST_CASE("a program prints one line per instruction") {
    Program program;
    const auto x = program.emit({Op::load, f32});
    const auto c = program.emit({Op::scalar, f32});
    const auto product = program.emit({Op::mul, f32, x, c});
    const auto i = program.emit({.op = Op::index, .dtype = i64, .arg = 1});
    const auto real = program.emit({Op::cast, f32, i});
    const auto less = program.emit({Op::less, boolean, real, product});
    program.emit({Op::select, f32, less, product, real});
    CHECK(program.str() ==
          "r0: f32 = load 0\n"
          "r1: f32 = scalar 0\n"
          "r2: f32 = mul r0 r1\n"
          "r3: i64 = index 1\n"
          "r4: f32 = cast r3\n"
          "r5: bool = less r4 r2\n"
          "r6: f32 = select r5 r2 r4\n");
    CHECK_NOTHROW(verify(program, 1, 1, 2));
  }

  TEST_CASE("verify names the broken line") {
    const auto check = [](const Program& program, const char* text) {
      CHECK_THROWS_WITH_AS(verify(program, 2, 1, 2), text, std::logic_error);
    };
    const Instruction x{Op::load, f32}, i{Op::index, i64}, b{Op::load, boolean};
    check({}, "map program: no instructions");
    check({{{.op = Op::load, .dtype = f32, .arg = 2}}},
          "map program: input 2 of 2 in line 'r0: f32 = load 2'");
    check({{{.op = Op::scalar, .dtype = f32, .arg = 1}}},
          "map program: scalar 1 of 1 in line 'r0: f32 = scalar 1'");
    check({{{.op = Op::index, .dtype = i64, .arg = -1}}},
          "map program: axis -1 of 2 in line 'r0: i64 = index -1'");
    check({{x, {Op::neg, f32, 1}}},
          "map program: operand 0 is no earlier register in line 'r1: f32 = neg r1'");
    check({{x, {Op::add, f32, 0}}},
          "map program: operand 1 is no earlier register in line 'r1: f32 = add r0 r-1'");
    check({{x, {Op::neg, f32, 0, 0}}},
          "map program: operand 1 is not used in line 'r1: f32 = neg r0'");
    check({{{Op::index, f32}}}, "map program: an index is i64 in line 'r0: f32 = index 0'");
    check({{{Op::scalar, DType::i8}}},
          "map program: a scalar is f32, f64, i64 or bool in line 'r0: i8 = scalar 0'");
    check({{i, {Op::exp, i64, 0}}},
          "map program: the result is no float in line 'r1: i64 = exp r0'");
    check({{x, {Op::exp, f64, 0}}},
          "map program: operand and result differ in dtype in line 'r1: f64 = exp r0'");
    check({{i, {Op::div, i64, 0, 0}}},
          "map program: the result is no float in line 'r1: i64 = div r0 r0'");
    check({{x, i, {Op::add, f32, 0, 1}}},
          "map program: operands and result differ in dtype in line 'r2: f32 = add r0 r1'");
    check({{b, {Op::maximum, boolean, 0, 0}}},
          "map program: the result is neither float nor i64 in line 'r1: bool = maximum r0 r0'");
    check({{b, {Op::neg, boolean, 0}}},
          "map program: the result is neither float nor i64 in line 'r1: bool = neg r0'");
    check({{x, {Op::less, f32, 0, 0}}},
          "map program: the result is no bool in line 'r1: f32 = less r0 r0'");
    check({{x, i, {Op::equal, boolean, 0, 1}}},
          "map program: operands differ in dtype in line 'r2: bool = equal r0 r1'");
    check({{{Op::load, DType::i32}, {Op::less, boolean, 0, 0}}},
          "map program: operands are neither float, i64 nor bool in line 'r1: bool = less r0 r0'");
    check({{i, {Op::logical_not, boolean, 0}}},
          "map program: logic is on bools in line 'r1: bool = logical_not r0'");
    check({{b, i, {Op::logical_or, boolean, 0, 1}}},
          "map program: logic is on bools in line 'r2: bool = logical_or r0 r1'");
    check({{x, {Op::select, f32, 0, 0, 0}}},
          "map program: the condition is no bool in line 'r1: f32 = select r0 r0 r0'");
    check({{b, x, i, {Op::select, f32, 0, 1, 2}}},
          "map program: branches and result differ in dtype in line 'r3: f32 = select r0 r1 r2'");
  }

  TEST_CASE("scalars carry their value in both forms") {
    CHECK(Scalar::of(2.5).real == 2.5);
    CHECK(Scalar::of(std::int64_t{-3}).integer == -3);
    CHECK(Scalar::of(std::int64_t{-3}).real == -3.0);
    CHECK(Scalar::of(true).dtype == boolean);
    CHECK(Scalar::of(true).integer == 1);
  }
}
