// SPDX-License-Identifier: Apache-2.0
// Every SIMD target's elements against the ranges of random programs, and programs cut to a box.
#include <doctest/doctest.h>

#include <cmath>
#include <cstring>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#if defined(__SSE2__)
#include <xmmintrin.h>
#endif

#include "../../../engine/kernel/kernels.h"
#include "../../support/sanitizer.h"
#include "../map/random_program.h"

using namespace einkern;
using kernel::kNoFault;
using kernel::TileProgram;
using map::Op;
using test::Value;

namespace {

/// Eight bytes that hold a value as an element of the dtype, and back.
void store(DType dtype, const Value& value, std::byte* to) {
  dispatch(dtype, [&]<class T>(std::type_identity<T>) {
    const T element = is_float(dtype) ? static_cast<T>(value.real) : static_cast<T>(value.integer);
    std::memcpy(to, &element, sizeof(T));
  });
}
Value load(DType dtype, const std::byte* from) {
  return dispatch(dtype, [&]<class T>(std::type_identity<T>) {
    T element;
    std::memcpy(&element, from, sizeof(T));
    return is_float(dtype) ? Value{static_cast<double>(widen(element)), 0}
                           : Value{0, static_cast<std::int64_t>(widen(element))};
  });
}

/// A program of one target, run one element at a time.
class Runner {
 public:
  Runner(const map::Program& program, const test::RandomProgram& made,
         const kernel::Kernels& kernels)
      : made_(made), dtype_(program.dtype()), tiles_(program, made.scalars, kernels.map) {
    space_ = std::make_unique<std::byte[]>(tiles_.scratch_bytes() + 64);
    void* start = space_.get();
    std::size_t bytes = tiles_.scratch_bytes() + 64;
    scratch_ = static_cast<std::byte*>(std::align(64, tiles_.scratch_bytes(), start, bytes));
    faulty_ = tiles_.prepare(scratch_, 1) != kNoFault;
  }

  std::optional<Value> run(const test::Element& element) const {
    if (faulty_) return std::nullopt;
    std::vector<std::byte> memory((element.inputs.size() + 1) * 8);
    std::vector<kernel::TileOperand> inputs;
    for (std::size_t i = 0; i < element.inputs.size(); ++i) {
      store(made_.input_dtypes[i], element.inputs[i], &memory[i * 8]);
      inputs.push_back({&memory[i * 8], 1, 1});
    }
    std::vector<kernel::TileIndex> indices;
    for (const std::int64_t position : element.positions) indices.push_back({position, 0, 0});
    std::byte* const out = &memory[element.inputs.size() * 8];
    const kernel::Tile tile{.inputs = inputs, .indices = indices, .out = {out, 1, 1}};
    if (tiles_.run(tile, scratch_) != kNoFault) return std::nullopt;
    return load(dtype_, out);
  }

 private:
  const test::RandomProgram& made_;
  DType dtype_;
  TileProgram tiles_;
  std::unique_ptr<std::byte[]> space_;
  std::byte* scratch_ = nullptr;
  bool faulty_ = false;
};

/// Denormals read and written as 0 while it lives, where the processor can.
class FlushDenormals {
 public:
#if defined(__SSE2__)
  FlushDenormals() : before_(_mm_getcsr()) { _mm_setcsr(before_ | 0x8040u); }
  ~FlushDenormals() { _mm_setcsr(before_); }

 private:
  unsigned before_;
#endif
};

struct Counts {
  int elements = 0, faults = 0, shorter = 0;
};

/// The first `length` instructions.
map::Program beginning_of(const map::Program& program, std::size_t length) {
  return {{program.code.begin(), program.code.begin() + static_cast<std::ptrdiff_t>(length)}};
}

void check_program(const test::RandomProgram& made, test::Random& random, bool flush,
                   Counts& counts) {
  const std::vector<map::Instruction>& code = made.program.code;
  const std::vector<map::Range> ranges =
      map::evaluate_ranges(made.program, made.axes, made.inputs, made.scalars);
  const map::Program cut = map::specialise(made.program, ranges);
  counts.shorter += cut.code.size() < code.size();
  std::vector<test::Element> elements;
  for (int i = 0; i < 12; ++i) elements.push_back(test::random_element(made, random));
  for (const kernel::Kernels* kernels : kernel::supported_kernels()) {
    const Runner whole(made.program, made, *kernels), shorter(cut, made, *kernels);
    for (std::size_t i = 0; i < code.size(); ++i) {
      const Runner runner(beginning_of(made.program, i + 1), made, *kernels);
      for (const test::Element& element : elements) {
        std::optional<Value> value;
        {
          std::optional<FlushDenormals> mode;
          if (flush) mode.emplace();
          value = runner.run(element);
        }
        ++(value ? counts.elements : counts.faults);
        if (value && test::contradicts(ranges[i], code[i].dtype, *value)) {
          FAIL("register ", i, " is ", value->real, " or ", value->integer, ", not in ",
               ranges[i].low, " .. ", ranges[i].high, " on ", kernels->target.name,
               flush ? " without denormals\n" : "\n", made.program.str());
        }
      }
    }
    for (const test::Element& element : elements) {
      const std::optional<Value> value = whole.run(element);
      if (!value) continue;  // a fault, which may be of what is removed
      const std::optional<Value> same = shorter.run(element);
      REQUIRE(same.has_value());
      if (!test::same_bits(cut.dtype(), *value, *same)) {
        FAIL(made.program.str(), "is not\n", cut.str(), " on ", kernels->target.name);
      }
    }
  }
}

/// The range over one argument holds what the targets compute there.
void check_at_points(Op op, DType dtype, test::Random& random) {
  test::RandomProgram made;
  made.program.emit({Op::load, dtype});
  made.program.emit({op, dtype, 0});
  made.input_dtypes = {dtype};
  for (int i = 0; i < test::fewer_if_sanitized(20000); ++i) {
    const double scale = std::ldexp(1.0, static_cast<int>(random() % 14) - 4);
    double x = std::ldexp(static_cast<double>(random() >> 11), -53) * scale;
    if (random() % 2 == 0 && op != Op::log) x = -x;
    if (dtype == f32) x = static_cast<double>(static_cast<float>(x));
    const map::Range at{x, x, false};
    const map::Range range = map::evaluate_ranges(made.program, {}, std::span(&at, 1), {}).back();
    for (const kernel::Kernels* kernels : kernel::supported_kernels()) {
      const auto value = Runner(made.program, made, *kernels).run({{}, {{x, 0}}});
      if (!value || test::contradicts(range, dtype, *value)) {
        FAIL(map::name_of(op), " of ", x, " on ", kernels->target.name, " is not in ", range.low,
             " .. ", range.high);
      }
    }
  }
}

}  // namespace

TEST_SUITE("kernel") {
  TEST_CASE("no target contradicts a range, nor changes a bit when a program is cut to its box") {
    test::Random random(31);
    Counts counts;
    for (int round = 0; round < test::fewer_if_sanitized(1500); ++round) {
      check_program(test::random_program(random), random, false, counts);
    }
    MESSAGE(counts.elements, " elements, ", counts.faults, " faults, ", counts.shorter, " shorter");
    CHECK(counts.elements > test::fewer_if_sanitized(100000));
    CHECK(counts.shorter > test::fewer_if_sanitized(500));
  }

  TEST_CASE("functions that are nearly right stay in the range of their argument alone") {
    test::Random random(33);
    for (const Op op : {Op::exp, Op::log, Op::sqrt, Op::rsqrt, Op::tanh, Op::sigmoid, Op::erf}) {
      for (const DType dtype : {f32, f64}) {
        check_at_points(op, dtype, random);
      }
    }
  }

  TEST_CASE("no target contradicts a range when it flushes denormals") {
    test::Random random(32);
    Counts counts;
    for (int round = 0; round < test::fewer_if_sanitized(1500); ++round) {
      const test::RandomProgram made = test::random_program(random);
      bool divides = false;  // floors a quotient by the sign of a remainder, denormal or not
      for (const map::Instruction& code : made.program.code) {
        divides |= code.op == Op::floordiv && is_float(code.dtype);
      }
      if (!divides) check_program(made, random, true, counts);
    }
    CHECK(counts.elements > test::fewer_if_sanitized(100000));
  }
}
