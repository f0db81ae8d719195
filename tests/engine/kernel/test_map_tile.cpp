// SPDX-License-Identifier: Apache-2.0
// Elementwise kernels against scalar arithmetic, and programs over tiles, on every SIMD target.
#include <doctest/doctest.h>

#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>
#include <memory>
#include <random>
#include <vector>

#include "../../../engine/kernel/kernels.h"
#include "../../support/extremes.h"

using namespace einkern;
using namespace einkern::test;
using kernel::kNoFault;
using kernel::MapFault;
using kernel::TileProgram;
using map::Op;

namespace {

using Byte = std::uint8_t;  // a bool that a vector can hold

template <class T>
bool same(T a, T b) {
  if constexpr (std::is_floating_point_v<T>) {
    if (std::isnan(a) || std::isnan(b)) return std::isnan(a) && std::isnan(b);
    return a == b && std::signbit(a) == std::signbit(b);
  } else {
    return a == b;
  }
}

template <class T>
std::vector<T> operands() {
  std::mt19937_64 random(3);
  std::vector<T> values;
  if constexpr (std::is_floating_point_v<T>) {
    using L = std::numeric_limits<T>;
    values = {T{0},      -T{0},         T{1},           T{-1},          T{2},
              T{0.5},    L::infinity(), -L::infinity(), L::quiet_NaN(), L::denorm_min(),
              -L::min(), L::max(),      T{3},           T{-7},          T{2.5}};
    while (values.size() < 40)
      values.push_back(static_cast<T>(static_cast<int>(random() % 2001) - 1000) / 8);
  } else if constexpr (std::is_same_v<T, std::uint8_t>) {
    while (values.size() < 40) values.push_back(static_cast<T>(random() % 2));
  } else {
    while (values.size() < 40) values.push_back(static_cast<T>(random() % 2001) - 1000);
  }
  return values;
}

/// Python's floor division and remainder, from the definition by exact arithmetic where possible.
template <class T>
T python_mod(T a, T b) {
  T rest = std::fmod(a, b);
  if (rest != 0 && std::signbit(rest) != std::signbit(b)) rest += b;
  return rest == 0 ? std::copysign(T{0}, b) : rest;
}

/// Checks one two-operand kernel over all pairs of special operands, at all lengths 0..2N+1.
template <class T, class Out, class Reference>
void check_binary(Op op, Reference reference) {
  const DType dtype = [] {
    if constexpr (std::is_same_v<T, Byte>)
      return boolean;
    else
      return dtype_of<T>;
  }();
  const std::vector<T> values = operands<T>();
  std::vector<T> a, b;
  for (const T x : values) {
    for (const T y : values) {
      a.push_back(x);
      b.push_back(y);
    }
  }
  for (const kernel::Kernels* kernels : kernel::supported_kernels()) {
    const auto apply =
        kernels->map.apply[static_cast<std::size_t>(op)][static_cast<std::size_t>(dtype)];
    REQUIRE((apply != nullptr));
    const auto check = [&](std::size_t first, std::size_t n) {
      std::vector<Out> out(n + 2, Out{1});
      const auto fault = apply(a.data() + first, b.data() + first, nullptr, out.data() + 1,
                               static_cast<std::int64_t>(n));
      bool right = fault == MapFault::none && out[0] == Out{1} && out[n + 1] == Out{1};
      for (std::size_t i = 0; i < n; ++i) {
        if (same<Out>(out[i + 1], reference(a[first + i], b[first + i]))) continue;
        right = false;
        MESSAGE(a[first + i], " and ", b[first + i], " give ", out[i + 1]);
      }
      if (!right) FAIL_CHECK(map::name_of(op), " n ", n, " on ", kernels->target.name);
    };
    check(0, a.size());
    const std::size_t lanes = static_cast<std::size_t>(kernels->target.vector_bytes) / sizeof(T);
    for (std::size_t n = 0; n <= 2 * lanes + 1; ++n) check(n % 5, n);
  }
}

template <class T>
void check_float_arithmetic() {
  check_binary<T, T>(Op::add, [](T a, T b) { return a + b; });
  check_binary<T, T>(Op::sub, [](T a, T b) { return a - b; });
  check_binary<T, T>(Op::mul, [](T a, T b) { return a * b; });
  check_binary<T, T>(Op::div, [](T a, T b) { return a / b; });
  check_binary<T, T>(Op::mod, python_mod<T>);
  check_binary<T, T>(Op::maximum, [](T a, T b) {
    return std::isnan(a) || std::isnan(b) ? NAN : a > b ? a : b;
  });
  check_binary<T, T>(Op::minimum, [](T a, T b) {
    return std::isnan(a) || std::isnan(b) ? NAN : a < b ? a : b;
  });
  check_binary<T, Byte>(Op::less, [](T a, T b) { return a < b; });
  check_binary<T, Byte>(Op::less_equal, [](T a, T b) { return a <= b; });
  check_binary<T, Byte>(Op::equal, [](T a, T b) { return a == b; });
  check_binary<T, Byte>(Op::not_equal, [](T a, T b) { return !(a == b); });
}

template <class T>
struct Case {
  T a, b, want;
};

template <class T>
void check_cases(Op op, const std::vector<Case<T>>& cases) {
  for (const kernel::Kernels* kernels : kernel::supported_kernels()) {
    const auto apply =
        kernels->map.apply[static_cast<std::size_t>(op)][static_cast<std::size_t>(dtype_of<T>)];
    for (const Case<T>& c : cases) {
      T got = 99;
      CHECK(apply(&c.a, &c.b, nullptr, &got, 1) == MapFault::none);
      if (!same(got, c.want)) {
        FAIL_CHECK(map::name_of(op), "(", c.a, ", ", c.b, ") is ", got, " on ",
                   kernels->target.name);
      }
    }
  }
}

MapFault fault_of(Op op, std::int64_t a, std::int64_t b) {
  MapFault fault = MapFault::none;
  for (const kernel::Kernels* kernels : kernel::supported_kernels()) {
    // In the middle of good elements: every lane counts.
    std::vector<std::int64_t> x(37, 1), y(37, 1), out(37);
    x[17] = a;
    y[17] = b;
    fault = kernels->map.apply[static_cast<std::size_t>(op)][static_cast<std::size_t>(i64)](
        x.data(), y.data(), nullptr, out.data(), 37);
    x[17] = 1;
    y[17] = 1;
    CHECK(kernels->map.apply[static_cast<std::size_t>(op)][static_cast<std::size_t>(i64)](
              x.data(), y.data(), nullptr, out.data(), 37) == MapFault::none);
  }
  return fault;
}

struct Block {
  explicit Block(const TileProgram& program)
      : memory(new (std::align_val_t{64}) std::byte[program.scratch_bytes()]) {}
  ~Block() { ::operator delete[](memory, std::align_val_t{64}); }
  Block(const Block&) = delete;
  Block& operator=(const Block&) = delete;
  std::byte* memory;
};

template <class T>
std::byte* bytes(std::vector<T>& values) {
  return reinterpret_cast<std::byte*>(values.data());
}

}  // namespace

TEST_SUITE("kernel") {
  TEST_CASE("f32 arithmetic and comparisons follow IEEE") { check_float_arithmetic<float>(); }
  TEST_CASE("f64 arithmetic and comparisons follow IEEE") { check_float_arithmetic<double>(); }

  TEST_CASE("integer arithmetic and comparisons") {
    using Int = std::int64_t;
    check_binary<Int, Int>(Op::add, [](Int a, Int b) { return a + b; });
    check_binary<Int, Int>(Op::sub, [](Int a, Int b) { return a - b; });
    check_binary<Int, Int>(Op::mul, [](Int a, Int b) { return a * b; });
    check_binary<Int, Int>(Op::maximum, [](Int a, Int b) { return std::max(a, b); });
    check_binary<Int, Int>(Op::minimum, [](Int a, Int b) { return std::min(a, b); });
    check_binary<Int, Byte>(Op::less, [](Int a, Int b) { return a < b; });
    check_binary<Int, Byte>(Op::equal, [](Int a, Int b) { return a == b; });
    check_cases<Int>(Op::add, {{kMost, 0, kMost}, {kMost, kLeast, -1}, {kLeast + 1, -1, kLeast}});
    check_cases<Int>(Op::sub, {{kLeast, 0, kLeast}, {-1, kLeast, kMost}, {-1, kMost, kLeast}});
    check_cases<Int>(Op::mul,
                     {{kLeast, 1, kLeast}, {kMost, -1, -kMost}, {1 << 30, 1 << 30, 1LL << 60}});
    check_cases<Int>(Op::neg, {{kMost, 0, -kMost}, {0, 0, 0}, {-5, 0, 5}});
    check_cases<Int>(Op::abs, {{kMost, 0, kMost}, {0, 0, 0}, {-5, 0, 5}, {kLeast + 1, 0, kMost}});
    // The words of the generator under counter {0, 0, 1, 0} and key 0, and under other numbers,
    // from an implementation of the paper in Python.
    check_cases<Int>(Op::random, {{0LL, 0LL, 4333408054865380728},
                                  {1LL, 0LL, 3923162471713422759},
                                  {0LL, 1LL, 1198125921610090244},
                                  {30064771077LL, -3LL, 4584492567584875275},
                                  {-1LL, 9223372036854775807LL, 2729726419972833130}});
    check_cases<Int>(Op::floordiv, {{7, 2, 3},
                                    {-7, 2, -4},
                                    {7, -2, -4},
                                    {-7, -2, 3},
                                    {6, -2, -3},
                                    {0, -5, 0},
                                    {kLeast, 1, kLeast},
                                    {kMost, -1, -kMost}});
    check_cases<Int>(Op::mod, {{7, 2, 1},
                               {-7, 2, 1},
                               {7, -2, -1},
                               {-7, -2, -1},
                               {6, -2, 0},
                               {kLeast, -1, 0},
                               {kMost, kLeast, -1}});
    check_cases<Int>(Op::pow, {{2, 62, 1LL << 62},
                               {-2, 63, kLeast},
                               {0, 0, 1},
                               {5, 0, 1},
                               {-1, kMost, -1},
                               {1, kMost, 1},
                               {0, kMost, 0},
                               {-3, 3, -27},
                               {3037000499, 2, 3037000499LL * 3037000499LL},
                               {kLeast, 1, kLeast}});
  }

  TEST_CASE("integer faults are found in any lane") {
    CHECK(fault_of(Op::add, kMost, 1) == MapFault::overflow);
    CHECK(fault_of(Op::add, kLeast, -1) == MapFault::overflow);
    CHECK(fault_of(Op::sub, kLeast, 1) == MapFault::overflow);
    CHECK(fault_of(Op::sub, 0, kLeast) == MapFault::overflow);
    CHECK(fault_of(Op::mul, kLeast, -1) == MapFault::overflow);
    CHECK(fault_of(Op::mul, 1LL << 32, 1LL << 31) == MapFault::overflow);
    CHECK(fault_of(Op::neg, kLeast, 0) == MapFault::overflow);
    CHECK(fault_of(Op::abs, kLeast, 0) == MapFault::overflow);
    CHECK(fault_of(Op::floordiv, kLeast, -1) == MapFault::overflow);
    CHECK(fault_of(Op::floordiv, 3, 0) == MapFault::division_by_zero);
    CHECK(fault_of(Op::mod, 3, 0) == MapFault::division_by_zero);
    CHECK(fault_of(Op::pow, 2, -1) == MapFault::negative_power);
    CHECK(fault_of(Op::pow, 2, 63) == MapFault::overflow);
    CHECK(fault_of(Op::pow, 3037000500, 2) == MapFault::overflow);
    CHECK(fault_of(Op::pow, -2, 64) == MapFault::overflow);
  }

  TEST_CASE("floor division and powers of floats") {
    // Values of numpy.floor_divide and numpy.power.
    const double inf = INFINITY, nan = NAN;
    check_cases<double>(Op::floordiv, {{7, 2, 3},
                                       {-7, 2, -4},
                                       {7, -2, -4},
                                       {-7, -2, 3},
                                       {1, 0.1, 9},
                                       {-0.0, 3, -0.0},
                                       {1, 0, inf},
                                       {-1, 0, -inf},
                                       {0, 0, nan},
                                       {1, inf, 0},
                                       {-1, inf, -1},
                                       {1, -inf, -1},
                                       {inf, 2, nan},
                                       {nan, 1, nan},
                                       {1, nan, nan},
                                       {0.5, 2, 0},
                                       {-0.5, 2, -1}});
    check_cases<double>(Op::mod, {{-1, inf, inf},
                                  {1, inf, 1},
                                  {1, -inf, -inf},
                                  {1, 0, nan},
                                  {inf, 1, nan},
                                  {6, -3, -0.0},
                                  {-6, 3, 0.0}});
    check_cases<float>(Op::floordiv, {{7, 2, 3}, {-7, 2, -4}, {1, 0, INFINITY}, {5.5f, -2, -3}});
    check_cases<double>(Op::pow, {{nan, 0, 1},
                                  {1, nan, 1},
                                  {0, -1, inf},
                                  {-0.0, -1, -inf},
                                  {-0.0, -2, inf},
                                  {-2, 3, -8},
                                  {-2, 2, 4},
                                  {-2, 0.5, nan},
                                  {inf, -1, 0},
                                  {0.5, -inf, inf},
                                  {-1, inf, 1},
                                  {4, 0.5, 2}});
    check_cases<float>(Op::pow, {{NAN, 0, 1},
                                 {0, -1, INFINITY},
                                 {-2, 3, -8},
                                 {9, 0.5f, 3},
                                 {2, -149, 0x1p-149f},
                                 {2, 128, INFINITY}});
  }

  TEST_CASE("logic and selection move bytes 0 and 1") {
    using B = Byte;
    check_binary<B, B>(Op::logical_and, [](B a, B b) { return static_cast<B>(a && b); });
    check_binary<B, B>(Op::logical_or, [](B a, B b) { return static_cast<B>(a || b); });
    check_binary<B, B>(Op::equal, [](B a, B b) { return static_cast<B>(a == b); });
    check_binary<B, B>(Op::logical_not, [](B a, B) { return static_cast<B>(!a); });
    for (const kernel::Kernels* kernels : kernel::supported_kernels()) {
      const auto& select = kernels->map.apply[static_cast<std::size_t>(Op::select)];
      const std::vector<B> condition = operands<B>();
      const std::vector<float> yes(40, NAN), no = operands<float>();
      std::vector<float> out(40);
      select[static_cast<std::size_t>(f32)](condition.data(), yes.data(), no.data(), out.data(),
                                            40);
      for (std::size_t i = 0; i < 40; ++i) {
        CHECK(std::bit_cast<std::uint32_t>(out[i]) ==
              std::bit_cast<std::uint32_t>(condition[i] ? yes[i] : no[i]));
      }
      std::int16_t a[] = {1, 2}, b[] = {3, 4}, c[2];
      const B two[] = {0, 1};
      select[static_cast<std::size_t>(i16)](two, a, b, c, 2);
      CHECK(c[0] == 3);
      CHECK(c[1] == 2);
    }
  }

  TEST_CASE("conversions truncate, keep bounds and see NaN as true") {
    const auto convert = [](const kernel::Kernels& kernels, auto from, auto& to) {
      return kernels.map
          .convert[static_cast<std::size_t>(dtype_of<decltype(from)>)][static_cast<std::size_t>(
              dtype_of<std::remove_reference_t<decltype(to)>>)](&from, nullptr, nullptr, &to, 1);
    };
    for (const kernel::Kernels* table : kernel::supported_kernels()) {
      const kernel::Kernels& k = *table;
      std::int64_t l = 0;
      std::int32_t i = 0;
      std::int8_t c = 0;
      bool b = false;
      float f = 0;
      CHECK(convert(k, 2.9, l) == MapFault::none);
      CHECK(l == 2);
      CHECK(convert(k, -2.9f, l) == MapFault::none);
      CHECK(l == -2);
      CHECK(convert(k, -0x1p63, l) == MapFault::none);
      CHECK(l == kLeast);
      CHECK(convert(k, 0x1p63, l) == MapFault::out_of_range);
      CHECK(convert(k, std::nextafter(-0x1p63, -INFINITY), l) == MapFault::out_of_range);
      CHECK(convert(k, static_cast<double>(NAN), l) == MapFault::out_of_range);
      CHECK(convert(k, -INFINITY, l) == MapFault::out_of_range);
      CHECK(convert(k, 127.9, c) == MapFault::none);
      CHECK(c == 127);
      CHECK(convert(k, -128.9f, c) == MapFault::none);
      CHECK(c == -128);
      CHECK(convert(k, 128.0f, c) == MapFault::out_of_range);
      CHECK(convert(k, -129.0, c) == MapFault::out_of_range);
      CHECK(convert(k, 0x1p31f, i) == MapFault::out_of_range);
      CHECK(convert(k, std::int64_t{300}, c) == MapFault::out_of_range);
      CHECK(convert(k, std::int64_t{-128}, c) == MapFault::none);
      CHECK(c == -128);
      CHECK(convert(k, static_cast<double>(NAN), b) == MapFault::none);
      CHECK(b);
      CHECK(convert(k, -0.0f, b) == MapFault::none);
      CHECK_FALSE(b);
      CHECK(convert(k, std::int64_t{1} << 40, b) == MapFault::none);
      CHECK(b);
      CHECK(convert(k, true, f) == MapFault::none);
      CHECK(f == 1.0f);
      CHECK(convert(k, (std::int64_t{1} << 24) + 1, f) == MapFault::none);
      CHECK(f == 0x1p24f);
      CHECK(convert(k, 1e300, f) == MapFault::none);
      CHECK(std::isinf(f));
      CHECK(convert(k, std::int8_t{-3}, l) == MapFault::none);
      CHECK(l == -3);
    }
  }

  TEST_CASE("a program over a tile of strided operands") {
    // out = index0 <= index1 ? a * s + b : tanh(a), transposed b, broadcast a.
    map::Program program;
    const auto a = program.emit({Op::load, f32});
    const auto b = program.emit({.op = Op::load, .dtype = f32, .arg = 1});
    const auto s = program.emit({Op::scalar, f32});
    const auto product = program.emit({Op::mul, f32, a, s});
    const auto sum = program.emit({Op::add, f32, product, b});
    const auto tanh = program.emit({Op::tanh, f32, a});
    const auto row = program.emit({Op::index, i64});
    const auto column = program.emit({.op = Op::index, .dtype = i64, .arg = 1});
    const auto below = program.emit({Op::less_equal, boolean, row, column});
    program.emit({Op::select, f32, below, sum, tanh});
    map::verify(program, 2, 1, 2);
    const map::Scalar scalar = map::Scalar::of(1.5);

    constexpr std::int64_t kRows = 7, kColumns = 9;
    std::vector<float> x(kColumns), y(kRows * kColumns);
    for (std::size_t i = 0; i < x.size(); ++i) x[i] = 0.25f * static_cast<float>(i) - 1;
    for (std::size_t i = 0; i < y.size(); ++i) y[i] = static_cast<float>(i) / 16;
    for (const kernel::Kernels* kernels : kernel::supported_kernels()) {
      const TileProgram tiles(program, std::span(&scalar, 1), kernels->map);
      const Block block(tiles);
      CHECK(tiles.capacity() >= 64);
      CHECK(tiles.prepare(block.memory, kRows * kColumns) == kNoFault);
      for (const std::int64_t gap : {0, 3}) {  // contiguous output, then rows apart
        std::vector<float> out(kRows * (kColumns + gap), -9);
        const kernel::TileOperand inputs[] = {{bytes(x), 0, 1}, {bytes(y), 1, kRows}};
        const kernel::TileIndex indices[] = {{2, 1, 0}, {0, 0, 1}};
        CHECK(tiles.run({.rows = kRows,
                         .columns = kColumns,
                         .inputs = inputs,
                         .indices = indices,
                         .out = {bytes(out), kColumns + gap, 1}},
                        block.memory) == kNoFault);
        for (std::int64_t r = 0; r < kRows; ++r) {
          for (std::int64_t c = 0; c < kColumns + gap; ++c) {
            const float got = out[static_cast<std::size_t>(r * (kColumns + gap) + c)];
            if (c >= kColumns) {
              CHECK(got == -9);
              continue;
            }
            const float first = x[static_cast<std::size_t>(c)];
            const float second = y[static_cast<std::size_t>(c * kRows + r)];
            const float scaled = first * 1.5f;
            const double want = r + 2 <= c ? static_cast<double>(scaled + second)
                                           : std::tanh(static_cast<double>(first));
            CHECK(got == doctest::Approx(want).epsilon(3e-7));
          }
        }
      }
    }
  }

  TEST_CASE("programs that only load, only hold a scalar, or use one register twice") {
    for (const kernel::Kernels* kernels : kernel::supported_kernels()) {
      std::vector<double> x{1, 2, 3}, out(3);
      const kernel::TileOperand input{bytes(x), 0, 1};
      const auto run = [&](const map::Program& program) {
        const map::Scalar scalar = map::Scalar::of(std::int64_t{6});
        const TileProgram tiles(program, std::span(&scalar, 1), kernels->map);
        const Block block(tiles);
        CHECK(tiles.prepare(block.memory, 3) == kNoFault);
        CHECK(tiles.run({.columns = 3, .inputs = std::span(&input, 1), .out = {bytes(out), 0, 1}},
                        block.memory) == kNoFault);
      };
      map::Program load;
      load.emit({Op::load, f64});
      run(load);
      CHECK(out == x);
      map::Program scalar;
      scalar.emit({Op::scalar, f64});
      run(scalar);
      CHECK(out == std::vector<double>{6, 6, 6});
      map::Program square;
      square.emit({Op::load, f64});
      square.emit({Op::mul, f64, 0, 0});
      square.emit({Op::add, f64, 1, 1});
      run(square);
      CHECK(out == std::vector<double>{2, 8, 18});
    }
  }

  TEST_CASE("registers of long programs are reused") {
    map::Program program;
    auto value = program.emit({Op::load, f32});
    for (int i = 0; i < 200; ++i) value = program.emit({i % 2 ? Op::neg : Op::abs, f32, value});
    const TileProgram tiles(program, {}, kernel::supported_kernels().front()->map);
    CHECK(tiles.capacity() == 1024);
    CHECK(tiles.scratch_bytes() < 16384);
  }

  TEST_CASE("the fault of the earliest instruction is told") {
    map::Program program;
    const auto x = program.emit({Op::load, i64});
    const auto y = program.emit({.op = Op::load, .dtype = i64, .arg = 1});
    const auto sum = program.emit({Op::add, i64, x, x});
    program.emit({Op::floordiv, i64, sum, y});
    std::vector<std::int64_t> a{1, kMost}, b{0, 1}, out(2);
    for (const kernel::Kernels* kernels : kernel::supported_kernels()) {
      const TileProgram tiles(program, {}, kernels->map);
      const Block block(tiles);
      tiles.prepare(block.memory, 2);
      const kernel::TileOperand inputs[] = {{bytes(a), 0, 1}, {bytes(b), 0, 1}};
      CHECK(tiles.run({.columns = 2, .inputs = inputs, .out = {bytes(out), 0, 1}}, block.memory) ==
            kernel::tile_fault(2, MapFault::overflow));
      CHECK(tiles.run({.columns = 1, .inputs = inputs, .out = {bytes(out), 0, 1}}, block.memory) ==
            kernel::tile_fault(3, MapFault::division_by_zero));
    }
  }
}
