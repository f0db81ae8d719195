// SPDX-License-Identifier: Apache-2.0
// Elementwise steps over random views against scalar loops, their faults, and thread counts.
#include <doctest/doctest.h>

#include <cmath>
#include <cstdint>
#include <limits>
#include <random>
#include <vector>

#include "../../../engine/base/error.h"
#include "../../support/extremes.h"
#include "threads.h"
#include "views.h"

using namespace einkern;
using namespace einkern::test;
using map::Op;
using map::Program;
using map::Scalar;

namespace {

/// (x + 2 y) where the position along the last axis is above that along the first, else x * s.
template <class T>
Program banded(std::size_t rank) {
  Program program;
  const DType dtype = dtype_of<T>;
  const auto x = program.emit({Op::load, dtype});
  const auto y = program.emit({.op = Op::load, .dtype = dtype, .arg = 1});
  const auto s = program.emit({Op::scalar, dtype});
  const auto sum = program.emit({Op::add, dtype, x, program.emit({Op::add, dtype, y, y})});
  const auto product = program.emit({Op::mul, dtype, x, s});
  if (rank == 0) {
    program.emit({Op::maximum, dtype, sum, product});
    return program;
  }
  const auto first = program.emit({Op::index, i64});
  const auto last =
      program.emit({.op = Op::index, .dtype = i64, .arg = static_cast<std::int32_t>(rank) - 1});
  const auto below = program.emit({Op::less, boolean, first, last});
  program.emit({Op::select, dtype, below, sum, product});
  return program;
}

template <class T>
void check_random_maps(std::uint32_t seed, int count, std::size_t rank, std::int64_t most) {
  std::mt19937 random(seed);
  const auto& tables = kernel::supported_kernels();
  for (int i = 0; i < count; ++i) {
    const Dims shape = random_shape(random, rank, most);
    View<T> x(shape, random, true), y(shape, random, true), out(shape, random, false);
    x.fill([&] { return static_cast<int>(random() % 400) - 200; });
    y.fill([&] { return static_cast<int>(random() % 400) - 200; });
    const Program program = banded<T>(shape.size());
    map::verify(program, 2, 1, shape.size());
    run_step(plan::Map{program, {x.operand(0), y.operand(1)}, out.operand(2)},
             {x.bytes(), y.bytes(), out.bytes()},
             *tables[static_cast<std::size_t>(i) % tables.size()], {Scalar::of(std::int64_t{3})});
    bool right = true;
    for (std::int64_t p = 0; p < out.size(); ++p) {
      const T sum = x[p] + 2 * y[p], product = x[p] * 3;
      T want = std::max(sum, product);
      if (!shape.empty()) {
        const std::int64_t last = p % shape.back();
        const std::int64_t first = p / (out.size() / shape.front());
        want = first < last ? sum : product;
      }
      right &= out[p] == want;
    }
    CAPTURE(to_string(shape));
    CHECK(right);
    CHECK(out.gaps_untouched());
  }
}

std::vector<std::int64_t> run_integers(const Program& program, std::vector<std::int64_t> a,
                                       std::vector<std::int64_t> b) {
  const Dims shape{static_cast<std::int64_t>(a.size())};
  View<std::int64_t> x(shape), y(shape), out(shape);
  for (std::size_t i = 0; i < a.size(); ++i) {
    x[static_cast<std::int64_t>(i)] = a[i];
    y[static_cast<std::int64_t>(i)] = b[i];
  }
  run_step(plan::Map{program, {x.operand(0), y.operand(1)}, out.operand(2)},
           {x.bytes(), y.bytes(), out.bytes()}, kernel::kernels());
  return out.elements();
}

Program binary(Op op) {
  Program program;
  program.emit({Op::load, i64});
  program.emit({.op = Op::load, .dtype = i64, .arg = 1});
  program.emit({op, i64, 0, 1});
  return program;
}

}  // namespace

TEST_SUITE("exec") {
  TEST_CASE("programs over random views") {
    check_random_maps<float>(1, 400, 5, 9);
    check_random_maps<double>(2, 200, 5, 9);
    check_random_maps<std::int64_t>(3, 200, 5, 9);
  }

  TEST_CASE("programs over views of several tiles") {
    check_random_maps<float>(4, 60, 3, 40);
    check_random_maps<double>(5, 60, 3, 40);
  }

  TEST_CASE("bools in and out") {
    std::mt19937 random(6);
    for (const kernel::Kernels* kernels : kernel::supported_kernels()) {
      const Dims shape{5, 7, 3};
      View<bool> a(shape, random, true), b(shape, random, false), out(shape, random, false);
      a.fill([&] { return random() % 2; });
      b.fill([&] { return random() % 2; });
      Program program;
      program.emit({Op::load, boolean});
      program.emit({.op = Op::load, .dtype = boolean, .arg = 1});
      program.emit({Op::logical_not, boolean, 1});
      program.emit({Op::logical_and, boolean, 0, 2});
      run_step(plan::Map{program, {a.operand(0), b.operand(1)}, out.operand(2)},
               {a.bytes(), b.bytes(), out.bytes()}, *kernels);
      for (std::int64_t p = 0; p < out.size(); ++p) CHECK(out[p] == (a[p] && !b[p] ? 1 : 0));
    }
  }

  TEST_CASE("positions along inner, outer and size-1 axes") {
    Program program;
    const auto i = program.emit({Op::index, i64});
    const auto j = program.emit({.op = Op::index, .dtype = i64, .arg = 1});
    const auto k = program.emit({.op = Op::index, .dtype = i64, .arg = 3});
    const auto thousand = program.emit({Op::scalar, i64});
    const auto high = program.emit({Op::mul, i64, i, thousand});
    program.emit({Op::add, i64, program.emit({Op::add, i64, high, j}), k});
    View<std::int64_t> out({3, 1, 50, 60});
    run_step(plan::Map{program, {}, out.operand(0)}, {out.bytes()}, kernel::kernels(),
             {Scalar::of(std::int64_t{1000})});
    for (std::int64_t p = 0; p < out.size(); ++p) CHECK(out[p] == p / 3000 * 1000 + p % 60);
  }

  TEST_CASE("an output that is also the input") {
    View<float> x({1000});
    for (std::int64_t i = 0; i < 1000; ++i) x[i] = static_cast<float>(i);
    Program program;
    program.emit({Op::load, f32});
    program.emit({Op::add, f32, 0, 0});
    run_step(plan::Map{program, {x.operand(0)}, x.operand(0)}, {x.bytes()}, kernel::kernels());
    for (std::int64_t i = 0; i < 1000; ++i) CHECK(x[i] == static_cast<float>(2 * i));
  }

  TEST_CASE("the same bits for any number of threads") {
    std::mt19937 random(8);
    View<float> x({300, 700}, random, false), y({300, 700}, random, true);
    x.fill([&] { return uniform(random, -3, 3); });
    y.fill([&] { return uniform(random, -3, 3); });
    Program program;
    program.emit({Op::load, f32});
    program.emit({.op = Op::load, .dtype = f32, .arg = 1});
    program.emit({Op::mul, f32, 0, 1});
    program.emit({Op::exp, f32, 2});
    for (const kernel::Kernels* kernels : kernel::supported_kernels()) {
      std::vector<float> first;
      with_threads([&](int threads) {
        View<float> out({300, 700});
        run_step(plan::Map{program, {x.operand(0), y.operand(1)}, out.operand(2)},
                 {x.bytes(), y.bytes(), out.bytes()}, *kernels);
        if (threads == 1) first = out.elements();
        CHECK(same_bits(out.elements(), first));
      });
      for (std::int64_t p = 0; p < 1000; ++p) {
        const double want = std::exp(static_cast<double>(x[p] * y[p]));
        CHECK(first[static_cast<std::size_t>(p)] == doctest::Approx(want).epsilon(3e-7));
      }
    }
  }

  TEST_CASE("an output much larger than L2, dense and with gaps") {
    constexpr std::int64_t kRows = 1531, kColumns = 1517;
    for (const std::int64_t gap : {0, 3}) {
      View<float> x({kRows, kColumns}), y({kColumns, kRows}), out({kRows, kColumns + gap});
      for (std::int64_t p = 0; p < x.size(); ++p) {
        x[p] = static_cast<float>(p % 1000);
        y[p] = static_cast<float>(p % 777);
      }
      plan::Operand turned = y.operand(1), target = out.operand(2);
      turned.layout = permuted(turned.layout, {1, 0});
      target.layout.shape = {kRows, kColumns};
      Program program;
      program.emit({Op::load, f32});
      program.emit({.op = Op::load, .dtype = f32, .arg = 1});
      program.emit({Op::sub, f32, 0, 1});
      for (const kernel::Kernels* kernels : kernel::supported_kernels()) {
        std::fill(out.memory.begin(), out.memory.end(), View<float>::kUntouched);
        run_step(plan::Map{program, {x.operand(0), turned}, target},
                 {x.bytes(), y.bytes(), out.bytes()}, *kernels);
        bool right = true;
        for (std::int64_t r = 0; r < kRows; ++r) {
          for (std::int64_t c = 0; c < kColumns + gap; ++c) {
            const float want =
                c < kColumns ? x[r * kColumns + c] - y[c * kRows + r] : View<float>::kUntouched;
            right &= out[r * (kColumns + gap) + c] == want;
          }
        }
        CHECK(right);
      }
    }
  }

  TEST_CASE("a program cut in two gives the bits of the whole") {
    // No multiplication may melt into the addition that follows it.
    std::mt19937 random(9);
    View<float> x({1000}), product({1000}), whole({1000}), cut({1000});
    x.fill([&] { return uniform(random, -3, 3); });
    Program both, first, second;
    both.emit({Op::load, f32});
    both.emit({Op::mul, f32, 0, 0});
    both.emit({Op::add, f32, 1, 0});
    first.emit({Op::load, f32});
    first.emit({Op::mul, f32, 0, 0});
    second.emit({Op::load, f32});
    second.emit({.op = Op::load, .dtype = f32, .arg = 1});
    second.emit({Op::add, f32, 0, 1});
    for (const kernel::Kernels* kernels : kernel::supported_kernels()) {
      const std::vector<std::byte*> values{x.bytes(), product.bytes(), whole.bytes(), cut.bytes()};
      run_step(plan::Map{both, {x.operand(0)}, whole.operand(2)}, values, *kernels);
      run_step(plan::Map{first, {x.operand(0)}, product.operand(1)}, values, *kernels);
      run_step(plan::Map{second, {product.operand(1), x.operand(0)}, cut.operand(3)}, values,
               *kernels);
      CHECK(same_bits(whole.elements(), cut.elements()));
    }
  }

  TEST_CASE("integer faults are ValueErrors") {
    const std::vector<std::int64_t> ones{1, 1, 1};
    CHECK(run_integers(binary(Op::floordiv), {7, -7, 9}, {2, 2, -3}) ==
          std::vector<std::int64_t>{3, -4, -3});
    CHECK_THROWS_WITH_AS(run_integers(binary(Op::add), {0, kMost, 0}, ones),
                         "add: integer overflow", ValueError);
    CHECK_THROWS_WITH_AS(run_integers(binary(Op::sub), {0, -kMost, 0}, {0, 2, 0}),
                         "sub: integer overflow", ValueError);
    CHECK_THROWS_WITH_AS(run_integers(binary(Op::mul), {0, kMost, 0}, {0, 2, 0}),
                         "mul: integer overflow", ValueError);
    CHECK_THROWS_WITH_AS(run_integers(binary(Op::floordiv), ones, {1, 1, 0}),
                         "floordiv: division by zero", ValueError);
    CHECK_THROWS_WITH_AS(run_integers(binary(Op::mod), ones, {1, 0, 1}), "mod: division by zero",
                         ValueError);
    CHECK_THROWS_WITH_AS(run_integers(binary(Op::pow), ones, {1, -1, 1}),
                         "pow: negative integer power", ValueError);
    Program program;
    program.emit({Op::scalar, f64});
    program.emit({Op::cast, DType::i8, 0});
    View<std::int8_t> out({3});
    CHECK_THROWS_WITH_AS(run_step(plan::Map{program, {}, out.operand(0)}, {out.bytes()},
                                  kernel::kernels(), {Scalar::of(128.0)}),
                         "astype: a value does not fit i8", ValueError);
  }

  TEST_CASE("the fault told does not depend on the number of threads") {
    // The last tile divides by zero, all others overflow later in the program.
    constexpr std::int64_t kSize = 200000;
    View<std::int64_t> x({kSize}), y({kSize}), out({kSize});
    x.fill([] { return kMost; });
    y.fill([] { return 1; });
    y[kSize - 1] = 0;
    Program program = binary(Op::floordiv);
    program.emit({Op::add, i64, 2, 0});
    with_threads([&](int) {
      CHECK_THROWS_WITH_AS(
          run_step(plan::Map{program, {x.operand(0), y.operand(1)}, out.operand(2)},
                   {x.bytes(), y.bytes(), out.bytes()}, kernel::kernels()),
          "floordiv: division by zero", ValueError);
    });
  }

  TEST_CASE("fill sets every element and nothing else") {
    std::mt19937 random(10);
    for (int i = 0; i < 50; ++i) {
      const Dims shape = random_shape(random, 4, 8);
      View<float> f(shape, random, false);
      View<std::int32_t> n(shape, random, false);
      View<bool> b(shape, random, false);
      run_step(plan::Fill{f.operand(0), 2.5}, {f.bytes()}, kernel::kernels());
      run_step(plan::Fill{n.operand(0), -7}, {n.bytes()}, kernel::kernels());
      run_step(plan::Fill{b.operand(0), 1}, {b.bytes()}, kernel::kernels());
      for (std::int64_t p = 0; p < f.size(); ++p) {
        CHECK(f[p] == 2.5f);
        CHECK(n[p] == -7);
        CHECK(b[p] == 1);
      }
      CHECK(f.gaps_untouched());
      CHECK(n.gaps_untouched());
      CHECK(b.gaps_untouched());
    }
  }
}
