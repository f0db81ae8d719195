// SPDX-License-Identifier: Apache-2.0
// Makes random programs over all operations and dtypes, and elements of their boxes.
#include "random_program.h"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <limits>

#include "../../support/extremes.h"
#include "element.h"

namespace einkern::test {
namespace {

using map::Instruction;
using map::Op;
using map::Range;
using map::Scalar;

constexpr DType kLoadable[] = {boolean, i8, i16, i32, i64, f16, bf16, f32, f64};
constexpr DType kComputed[] = {i64, f32, f64};

std::int64_t below(Random& random, std::int64_t n) {
  return static_cast<std::int64_t>(random() % static_cast<std::uint64_t>(n));
}
bool chance(Random& random, int percent) { return below(random, 100) < percent; }
template <class Values>
auto pick(Random& random, const Values& values) {
  return values[static_cast<std::size_t>(below(random, std::ssize(values)))];
}

double random_real(Random& random, DType dtype) {
  if (is_half_float(dtype)) return rounded(random_real(random, f32), dtype);
  const double tiny = dtype == f32 ? 0x1p-149 : 0x1p-1074;
  const double normal = dtype == f32 ? 0x1p-126 : 0x1p-1022;
  const double most = dtype == f32 ? 0x1.fffffep127 : 0x1.fffffffffffffp1023;
  switch (below(random, 6)) {
    case 0:
      return pick(random, std::vector<double>{0.0, -0.0, 1.0, -1.0, 2.0, -2.0, 0.5, 3.0});
    case 1:
      return pick(random, std::vector<double>{kInfinity, -kInfinity, most, -most, tiny, -tiny,
                                              normal, -normal, 1e4, -1e4, 88.7, -104.0, -745.0});
    case 2:
      return rounded(std::ldexp(1.0 + static_cast<double>(below(random, 1000)) / 1000,
                                static_cast<int>(below(random, 60)) - 30) *
                         (chance(random, 50) ? 1 : -1),
                     dtype);
    default:
      return static_cast<double>(below(random, 161) - 80) / 8;
  }
}

std::int64_t random_integer(Random& random) {
  switch (below(random, 8)) {
    case 0:
      return pick(random, std::vector<std::int64_t>{kLeast, kMost, kLeast + 1, kMost - 1,
                                                    (1ll << 53) + 1, -(1ll << 53) - 1, 1ll << 62});
    case 1:
      return static_cast<std::int64_t>(random()) >> below(random, 64);
    default:
      return below(random, 21) - 10;
  }
}

Range random_range(Random& random, DType dtype) {
  if (!is_float(dtype)) {
    const int bits = static_cast<int>(size_of(dtype)) * 8;
    const double least = dtype == boolean ? 0 : -std::ldexp(1.0, bits - 1);
    const double most = dtype == boolean ? 1 : -least - 1;  // of i64: 2^63, which no element is
    const auto end = [&] {
      return std::clamp(static_cast<double>(random_integer(random)), least, most);
    };
    if (chance(random, 10)) return map::kAnything;
    const double a = end(), b = chance(random, 30) ? a : end();
    return {std::min(a, b), std::max(a, b), false};
  }
  const bool nan = chance(random, 15);
  if (chance(random, 4)) return {1, 0, true};
  if (chance(random, 5)) return map::kAnything;
  const double a = random_real(random, dtype);
  const double b = chance(random, 30) ? a : random_real(random, dtype);
  return {std::min(a, b), std::max(a, b), nan};
}

Scalar random_scalar(Random& random, DType dtype) {
  if (dtype == boolean) return Scalar::of(chance(random, 50));
  if (dtype == i64) return Scalar::of(random_integer(random));
  if (chance(random, 5)) return Scalar::of(std::numeric_limits<double>::quiet_NaN());
  if (chance(random, 10)) return Scalar::of(below(random, 9) - 4);
  return Scalar::of(random_real(random, dtype) * (chance(random, 20) ? 0.1 : 1));
}

class Maker {
 public:
  explicit Maker(Random& random) : random_(random) {}

  RandomProgram make() {
    for (int axis = 0; axis < 2; ++axis) {
      const std::int64_t first = chance(random_, 10) ? (1ll << 53) - 2 : below(random_, 30);
      made_.axes.push_back({first, first + (chance(random_, 30) ? 0 : below(random_, 12))});
    }
    const std::int64_t length = 1 + below(random_, 9);
    for (std::int64_t i = 0; i < length; ++i) operation();
    if (chance(random_, 50)) {
      const DType dtype = pick(random_, std::vector<DType>{f32, f64});
      const std::int32_t condition = chance(random_, 70) ? comparison() : operand(boolean);
      made_.scalars.push_back(Scalar::of(-kInfinity));
      const std::int32_t hidden = emit({.op = Op::scalar, .dtype = dtype, .arg = last_scalar()});
      emit({Op::select, dtype, condition, operand(dtype), hidden});
    }
    return std::move(made_);
  }

 private:
  std::int32_t emit(Instruction code) { return made_.program.emit(code); }
  std::int32_t last_scalar() const { return static_cast<std::int32_t>(made_.scalars.size()) - 1; }

  std::int32_t source(DType dtype) {
    const bool by_cast = dtype != i8 && dtype != i16 && dtype != i32 && chance(random_, 25);
    if (by_cast && !made_.program.code.empty()) {
      const auto from = below(random_, std::ssize(made_.program.code));
      return emit({Op::cast, dtype, static_cast<std::int32_t>(from)});
    }
    if (dtype == i64 && chance(random_, 50)) {
      return emit({.op = Op::index, .dtype = i64, .arg = static_cast<std::int32_t>(random_() % 2)});
    }
    const bool storage = dtype != boolean && dtype != compute_dtype(dtype);
    if (storage || chance(random_, 60)) {
      made_.input_dtypes.push_back(dtype);
      made_.inputs.push_back(random_range(random_, dtype));
      const auto arg = static_cast<std::int32_t>(made_.inputs.size()) - 1;
      return emit({.op = Op::load, .dtype = dtype, .arg = arg});
    }
    made_.scalars.push_back(random_scalar(random_, dtype));
    return emit({.op = Op::scalar, .dtype = dtype, .arg = last_scalar()});
  }

  std::int32_t operand(DType dtype) {
    std::vector<std::int32_t> fitting;
    for (std::size_t i = 0; i < made_.program.code.size(); ++i) {
      if (made_.program.code[i].dtype == dtype) fitting.push_back(static_cast<std::int32_t>(i));
    }
    return fitting.empty() || chance(random_, 35) ? source(dtype) : pick(random_, fitting);
  }

  std::int32_t comparison() {
    const Op op =
        pick(random_, std::vector<Op>{Op::less, Op::less_equal, Op::equal, Op::not_equal});
    const DType dtype = pick(random_, std::vector<DType>{boolean, i64, i64, f32, f64});
    const std::int32_t a = operand(dtype), b = operand(dtype);
    return emit({op, boolean, a, b});
  }

  void operation() {
    const auto op = static_cast<Op>(below(random_, static_cast<int>(Op::select) + 1));
    switch (op) {
      case Op::load:
      case Op::scalar:
      case Op::index:
        source(pick(random_, kComputed));
        return;
      case Op::cast: {
        const std::int32_t a = operand(pick(random_, kLoadable));
        emit({Op::cast, pick(random_, kLoadable), a});
        return;
      }
      case Op::exp:
      case Op::log:
      case Op::sqrt:
      case Op::rsqrt:
      case Op::sin:
      case Op::cos:
      case Op::tanh:
      case Op::sigmoid:
      case Op::erf: {
        const DType dtype = pick(random_, std::vector<DType>{f32, f64});
        const std::int32_t a = operand(dtype);
        emit({op, dtype, a});
        return;
      }
      case Op::random: {
        const std::int32_t a = operand(i64), b = operand(i64);
        emit({op, i64, a, b});
        return;
      }
      case Op::neg:
      case Op::abs: {
        const DType dtype = pick(random_, kComputed);
        const std::int32_t a = operand(dtype);
        emit({op, dtype, a});
        return;
      }
      case Op::logical_not: {
        const std::int32_t a = operand(boolean);
        emit({op, boolean, a});
        return;
      }
      case Op::less:
      case Op::less_equal:
      case Op::equal:
      case Op::not_equal:
        comparison();
        return;
      case Op::logical_and:
      case Op::logical_or: {
        const std::int32_t a = operand(boolean), b = operand(boolean);
        emit({op, boolean, a, b});
        return;
      }
      case Op::select: {
        const DType dtype = pick(random_, kLoadable);
        const std::int32_t a = operand(boolean), b = operand(dtype), c = operand(dtype);
        emit({op, dtype, a, b, c});
        return;
      }
      default: {
        const DType dtype =
            op == Op::div ? pick(random_, std::vector<DType>{f32, f64}) : pick(random_, kComputed);
        const std::int32_t a = operand(dtype), b = operand(dtype);
        emit({op, dtype, a, b});
      }
    }
  }

  Random& random_;
  RandomProgram made_;
};

std::int64_t integer_within(const Range& range, DType dtype, Random& random) {
  const int bits = static_cast<int>(size_of(dtype)) * 8;
  const std::int64_t least = dtype == boolean ? 0 : kLeast >> (64 - bits);
  const std::int64_t most = dtype == boolean ? 1 : kMost >> (64 - bits);
  const auto whole = [&](double end) {
    if (end >= static_cast<double>(most)) return most;
    return end <= static_cast<double>(least) ? least : static_cast<std::int64_t>(end);
  };
  const std::int64_t low = whole(range.low), high = whole(range.high);
  if (chance(random, 25)) return low;
  if (chance(random, 25)) return high;
  if (chance(random, 50)) return std::clamp(below(random, 21) - 10, low, high);
  const auto width = static_cast<std::uint64_t>(high) - static_cast<std::uint64_t>(low);
  const std::uint64_t offset = width == ~std::uint64_t{0} ? random() : random() % (width + 1);
  return static_cast<std::int64_t>(static_cast<std::uint64_t>(low) + offset);
}

double real_within(const Range& range, DType dtype, Random& random) {
  const bool none = range.low > range.high;
  if (none || (range.maybe_nan && chance(random, 15))) {
    return std::numeric_limits<double>::quiet_NaN();
  }
  if (chance(random, 25)) return range.low;
  if (chance(random, 25)) return range.high;
  if (range.low <= 0 && range.high >= 0 && chance(random, 20)) {
    return chance(random, 50) ? 0.0 : -0.0;
  }
  double x = random_real(random, dtype);
  if (std::isfinite(range.low) && std::isfinite(range.high) && chance(random, 60)) {
    const double share = static_cast<double>(below(random, 1001)) / 1000;
    x = rounded(range.low * (1 - share) + range.high * share, dtype);
  }
  return std::clamp(x, range.low, range.high);
}

}  // namespace

RandomProgram random_program(Random& random) { return Maker(random).make(); }

Element random_element(const RandomProgram& made, Random& random) {
  Element element;
  for (const map::IndexRange& axis : made.axes) {
    element.positions.push_back(axis.first + below(random, axis.last - axis.first + 1));
  }
  for (std::size_t i = 0; i < made.inputs.size(); ++i) {
    const DType dtype = made.input_dtypes[i];
    element.inputs.push_back(is_float(dtype)
                                 ? Value{real_within(made.inputs[i], dtype, random), 0}
                                 : Value{0, integer_within(made.inputs[i], dtype, random)});
  }
  return element;
}

}  // namespace einkern::test
