// SPDX-License-Identifier: Apache-2.0
// Elementwise arithmetic: one plain loop per operation and dtype, compiled for every target.
#include "map_fill.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "map_arithmetic.cpp"
#include <hwy/foreach_target.h>  // IWYU pragma: keep
#include <hwy/highway.h>

#include <cmath>
#include <cstdint>
#include <limits>
#include <type_traits>

#include "../base/philox.h"
#include "half-inl.h"

HWY_BEFORE_NAMESPACE();
namespace einkern::kernel::HWY_NAMESPACE {

using Int = std::int64_t;
using Word = std::uint64_t;  // wraps where Int may not
constexpr Int kLeast = std::numeric_limits<Int>::min();

// An integer operation returns its result and says in `bad` whether there is none: a number that is
// negative (sign bit set) where it failed, so that a loop can OR all of them without a branch.

struct Neg {
  static constexpr MapFault kFault = MapFault::overflow;
  static Int call(Int a, Int& bad) {
    bad =
        a & static_cast<Int>(Word{0} - static_cast<Word>(a));  // only the least is its own negative
    return static_cast<Int>(Word{0} - static_cast<Word>(a));
  }
  template <class T>
  static T call(T a) {
    return -a;
  }
};
struct Abs {
  static constexpr MapFault kFault = MapFault::overflow;
  static Int call(Int a, Int& bad) {
    const Word word = static_cast<Word>(a);
    bad = static_cast<Int>(a < 0 ? Word{0} - word : word);
    return bad;
  }
  template <class T>
  static T call(T a) {
    return std::fabs(a);
  }
};
struct Add {
  static constexpr MapFault kFault = MapFault::overflow;
  static Int call(Int a, Int b, Int& bad) {
    const Int sum = static_cast<Int>(static_cast<Word>(a) + static_cast<Word>(b));
    bad = (a ^ sum) & (b ^ sum);
    return sum;
  }
  template <class T>
  static T call(T a, T b) {
    return a + b;
  }
};
struct Sub {
  static constexpr MapFault kFault = MapFault::overflow;
  static Int call(Int a, Int b, Int& bad) {
    const Int difference = static_cast<Int>(static_cast<Word>(a) - static_cast<Word>(b));
    bad = (a ^ b) & (a ^ difference);
    return difference;
  }
  template <class T>
  static T call(T a, T b) {
    return a - b;
  }
};
struct Mul {
  static constexpr MapFault kFault = MapFault::overflow;
  static Int call(Int a, Int b, Int& bad) {
    Int product;
    bad = __builtin_mul_overflow(a, b, &product) ? -1 : 0;
    return product;
  }
  template <class T>
  static T call(T a, T b) {
    return a * b;
  }
};
struct Div {
  template <class T>
  static T call(T a, T b) {
    return a / b;
  }
};
struct Maximum {
  static constexpr MapFault kFault = MapFault::none;
  static Int call(Int a, Int b, Int& /*bad*/) { return a > b ? a : b; }
  template <class T>
  static T call(T a, T b) {
    return ((a > b) | (a != a)) ? a : b;
  }
};
struct Minimum {
  static constexpr MapFault kFault = MapFault::none;
  static Int call(Int a, Int b, Int& /*bad*/) { return a < b ? a : b; }
  template <class T>
  static T call(T a, T b) {
    return ((a < b) | (a != a)) ? a : b;
  }
};

/// Quotient and remainder with the sign of the divisor, as Python and NumPy define them.
struct FloorDiv {
  template <class T>
  static T call(T a, T b) {
    if (b == 0) return a / b;
    const T rest = std::fmod(a, b);
    T quotient = (a - rest) / b;  // whole but for rounding
    if (rest != 0 && (rest < 0) != (b < 0)) quotient -= 1;
    if (quotient == 0) return std::copysign(T{0}, a / b);
    const T floor = std::floor(quotient);
    return quotient - floor > T{0.5} ? floor + 1 : floor;
  }
};
struct Mod {
  template <class T>
  static T call(T a, T b) {
    const T rest = std::fmod(a, b);
    if (rest == 0) return std::copysign(T{0}, b);
    return (rest < 0) != (b < 0) ? rest + b : rest;
  }
};
struct Pow {
  template <class T>
  static T call(T a, T b) {
    return std::pow(a, b);
  }
};

struct Less {
  template <class T>
  static bool call(T a, T b) {
    return a < b;
  }
};
struct LessEqual {
  template <class T>
  static bool call(T a, T b) {
    return a <= b;
  }
};
struct Equal {
  template <class T>
  static bool call(T a, T b) {
    return a == b;
  }
};
struct NotEqual {
  template <class T>
  static bool call(T a, T b) {
    return a != b;
  }
};
// Bytes, not bools: `&` of 0 and 1 becomes one vector instruction.
struct And {
  template <class T>
  static T call(T a, T b) {
    return static_cast<T>(a & b);
  }
};
struct Or {
  template <class T>
  static T call(T a, T b) {
    return static_cast<T>(a | b);
  }
};
struct Not {
  template <class T>
  static T call(T a) {
    return static_cast<T>(a ^ 1);
  }
};

template <class T, class Operation>
MapFault unary(const void* a, const void*, const void*, void* out, std::int64_t n) noexcept {
  const T* x = static_cast<const T*>(a);
  T* y = static_cast<T*>(out);
  if constexpr (std::is_same_v<T, Int>) {
    Int bad = 0;
    for (std::int64_t i = 0; i < n; ++i) {
      Int wrong = 0;
      y[i] = Operation::call(x[i], wrong);
      bad |= wrong;
    }
    return bad < 0 ? Operation::kFault : MapFault::none;
  } else {
    for (std::int64_t i = 0; i < n; ++i) y[i] = Operation::call(x[i]);
    return MapFault::none;
  }
}

template <class T, class Operation>
MapFault binary(const void* a, const void* b, const void*, void* out, std::int64_t n) noexcept {
  const T* x = static_cast<const T*>(a);
  const T* y = static_cast<const T*>(b);
  T* z = static_cast<T*>(out);
  if constexpr (std::is_same_v<T, Int>) {
    Int bad = 0;
    for (std::int64_t i = 0; i < n; ++i) {
      Int wrong = 0;
      z[i] = Operation::call(x[i], y[i], wrong);
      bad |= wrong;
    }
    return bad < 0 ? Operation::kFault : MapFault::none;
  } else {
    for (std::int64_t i = 0; i < n; ++i) z[i] = Operation::call(x[i], y[i]);
    return MapFault::none;
  }
}

template <class T, class Operation>
MapFault compare(const void* a, const void* b, const void*, void* out, std::int64_t n) noexcept {
  const T* x = static_cast<const T*>(a);
  const T* y = static_cast<const T*>(b);
  bool* z = static_cast<bool*>(out);
  for (std::int64_t i = 0; i < n; ++i) z[i] = Operation::call(x[i], y[i]);
  return MapFault::none;
}

/// Branches are moved as bits, by size.
template <class T>
MapFault select(const void* a, const void* b, const void* c, void* out, std::int64_t n) noexcept {
  const std::uint8_t* condition = static_cast<const std::uint8_t*>(a);
  const T* yes = static_cast<const T*>(b);
  const T* no = static_cast<const T*>(c);
  T* z = static_cast<T*>(out);
  for (std::int64_t i = 0; i < n; ++i) z[i] = condition[i] != 0 ? yes[i] : no[i];
  return MapFault::none;
}

MapFault floordiv_i64(const void* a, const void* b, const void*, void* out,
                      std::int64_t n) noexcept {
  const Int* x = static_cast<const Int*>(a);
  const Int* y = static_cast<const Int*>(b);
  Int* z = static_cast<Int*>(out);
  for (std::int64_t i = 0; i < n; ++i) {
    if (y[i] == 0) return MapFault::division_by_zero;
    if (y[i] == -1 && x[i] == kLeast) return MapFault::overflow;
    const Int quotient = x[i] / y[i], rest = x[i] % y[i];
    z[i] = quotient - (rest != 0 && (rest < 0) != (y[i] < 0));
  }
  return MapFault::none;
}

MapFault mod_i64(const void* a, const void* b, const void*, void* out, std::int64_t n) noexcept {
  const Int* x = static_cast<const Int*>(a);
  const Int* y = static_cast<const Int*>(b);
  Int* z = static_cast<Int*>(out);
  for (std::int64_t i = 0; i < n; ++i) {
    if (y[i] == 0) return MapFault::division_by_zero;
    const Int rest = y[i] == -1 ? 0 : x[i] % y[i];  // the least modulo -1 traps on x86
    z[i] = rest != 0 && (rest < 0) != (y[i] < 0) ? rest + y[i] : rest;
  }
  return MapFault::none;
}

/// By squaring; `bad` when the result does not fit.
Int power(Int base, Int exponent, bool& bad) {
  Int result = 1;
  while (true) {
    if ((exponent & 1) != 0) bad |= __builtin_mul_overflow(result, base, &result);
    exponent >>= 1;
    if (exponent == 0) return result;
    bad |= __builtin_mul_overflow(base, base, &base);  // a later factor needs this square
  }
}

MapFault pow_i64(const void* a, const void* b, const void*, void* out, std::int64_t n) noexcept {
  const Int* x = static_cast<const Int*>(a);
  const Int* y = static_cast<const Int*>(b);
  Int* z = static_cast<Int*>(out);
  bool bad = false;
  for (std::int64_t i = 0; i < n; ++i) {
    if (y[i] < 0) return MapFault::negative_power;
    z[i] = power(x[i], y[i], bad);
    if (bad) return MapFault::overflow;
  }
  return MapFault::none;
}

MapFault random_i64(const void* a, const void* b, const void*, void* out, std::int64_t n) noexcept {
  const Int* counter = static_cast<const Int*>(a);
  const Int* key = static_cast<const Int*>(b);
  Int* z = static_cast<Int*>(out);
  for (std::int64_t i = 0; i < n; ++i) z[i] = random_bits(counter[i], key[i]);
  return MapFault::none;
}

/// Elements of `From` as `To`: non-zero (NaN too) is true, floats to integers go toward zero, and
/// what `To` cannot hold is out of range.
template <class From, class To>
MapFault convert(const void* a, const void*, const void*, void* out, std::int64_t n) noexcept {
  const From* x = static_cast<const From*>(a);
  To* z = static_cast<To*>(out);
  if constexpr (is_half<From> && std::is_same_v<To, float>) {
    widen_row(x, z, n);
  } else if constexpr (std::is_same_v<To, bool>) {
    for (std::int64_t i = 0; i < n; ++i) z[i] = widen(x[i]) != Widened<From>{0};
  } else if constexpr (is_float(dtype_of<To>) || std::is_same_v<From, bool>) {
    for (std::int64_t i = 0; i < n; ++i) z[i] = static_cast<To>(widen(x[i]));
  } else if constexpr (is_float(dtype_of<From>)) {
    // Both bounds are exact: -2^k - 1 < x < 2^k, where the left one only matters below 53 bits.
    constexpr double kEnd = 2.0 * static_cast<double>(std::int64_t{1} << (sizeof(To) * 8 - 2));
    constexpr double kStart = sizeof(To) == 8 ? -kEnd : -kEnd - 1;
    bool bad = false;
    for (std::int64_t i = 0; i < n; ++i) {
      const double value = static_cast<double>(widen(x[i]));
      const bool holds = (sizeof(To) == 8 ? value >= kStart : value > kStart) && value < kEnd;
      z[i] = holds ? static_cast<To>(widen(x[i])) : To{0};
      bad |= !holds;
    }
    if (bad) return MapFault::out_of_range;
  } else {
    bool bad = false;
    for (std::int64_t i = 0; i < n; ++i) {
      z[i] = static_cast<To>(x[i]);
      bad |= static_cast<From>(z[i]) != x[i];
    }
    if (bad) return MapFault::out_of_range;
  }
  return MapFault::none;
}

MapKernels::Function& at(MapKernels& kernels, map::Op op, DType dtype) {
  return kernels.apply[static_cast<std::size_t>(op)][static_cast<std::size_t>(dtype)];
}

template <class Operation>
void set_unary(MapKernels& kernels, map::Op op) {
  at(kernels, op, DType::i64) = unary<Int, Operation>;
  at(kernels, op, DType::f32) = unary<float, Operation>;
  at(kernels, op, DType::f64) = unary<double, Operation>;
}

template <class Operation>
void set_floats(MapKernels& kernels, map::Op op) {
  at(kernels, op, DType::f32) = binary<float, Operation>;
  at(kernels, op, DType::f64) = binary<double, Operation>;
}

template <class Operation>
void set_binary(MapKernels& kernels, map::Op op) {
  at(kernels, op, DType::i64) = binary<Int, Operation>;
  set_floats<Operation>(kernels, op);
}

template <class Operation>
void set_comparison(MapKernels& kernels, map::Op op) {
  at(kernels, op, DType::boolean) = compare<std::uint8_t, Operation>;
  at(kernels, op, DType::i64) = compare<Int, Operation>;
  at(kernels, op, DType::f32) = compare<float, Operation>;
  at(kernels, op, DType::f64) = compare<double, Operation>;
}

template <class From>
void set_conversions(MapKernels& kernels) {
  auto& row = kernels.convert[static_cast<std::size_t>(dtype_of<From>)];
  row[static_cast<std::size_t>(DType::boolean)] = convert<From, bool>;
  row[static_cast<std::size_t>(DType::i8)] = convert<From, std::int8_t>;
  row[static_cast<std::size_t>(DType::i16)] = convert<From, std::int16_t>;
  row[static_cast<std::size_t>(DType::i32)] = convert<From, std::int32_t>;
  row[static_cast<std::size_t>(DType::i64)] = convert<From, std::int64_t>;
  row[static_cast<std::size_t>(DType::f16)] = convert<From, Float16>;
  row[static_cast<std::size_t>(DType::bf16)] = convert<From, BFloat16>;
  row[static_cast<std::size_t>(DType::f32)] = convert<From, float>;
  row[static_cast<std::size_t>(DType::f64)] = convert<From, double>;
}

void fill_arithmetic(MapKernels& kernels) {
  using map::Op;
  set_unary<Neg>(kernels, Op::neg);
  set_unary<Abs>(kernels, Op::abs);
  set_binary<Add>(kernels, Op::add);
  set_binary<Sub>(kernels, Op::sub);
  set_binary<Mul>(kernels, Op::mul);
  set_binary<Maximum>(kernels, Op::maximum);
  set_binary<Minimum>(kernels, Op::minimum);
  set_floats<Div>(kernels, Op::div);
  set_floats<FloorDiv>(kernels, Op::floordiv);
  set_floats<Mod>(kernels, Op::mod);
  set_floats<Pow>(kernels, Op::pow);
  at(kernels, Op::floordiv, DType::i64) = floordiv_i64;
  at(kernels, Op::mod, DType::i64) = mod_i64;
  at(kernels, Op::pow, DType::i64) = pow_i64;
  at(kernels, Op::random, DType::i64) = random_i64;
  set_comparison<Less>(kernels, Op::less);
  set_comparison<LessEqual>(kernels, Op::less_equal);
  set_comparison<Equal>(kernels, Op::equal);
  set_comparison<NotEqual>(kernels, Op::not_equal);
  at(kernels, Op::logical_and, DType::boolean) = binary<std::uint8_t, And>;
  at(kernels, Op::logical_or, DType::boolean) = binary<std::uint8_t, Or>;
  at(kernels, Op::logical_not, DType::boolean) = unary<std::uint8_t, Not>;
  for (std::size_t dtype = 0; dtype < kDTypes; ++dtype) {
    const std::size_t bytes = size_of(static_cast<DType>(dtype));
    kernels.apply[static_cast<std::size_t>(Op::select)][dtype] =
        bytes == 1   ? select<std::uint8_t>
        : bytes == 2 ? select<std::uint16_t>
        : bytes == 4 ? select<std::uint32_t>
                     : select<std::uint64_t>;
  }
  set_conversions<bool>(kernels);
  set_conversions<std::int8_t>(kernels);
  set_conversions<std::int16_t>(kernels);
  set_conversions<std::int32_t>(kernels);
  set_conversions<std::int64_t>(kernels);
  set_conversions<Float16>(kernels);
  set_conversions<BFloat16>(kernels);
  set_conversions<float>(kernels);
  set_conversions<double>(kernels);
}

}  // namespace einkern::kernel::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace einkern::kernel {

HWY_EXPORT(fill_arithmetic);
void fill_map_arithmetic(MapKernels& kernels) { HWY_DYNAMIC_DISPATCH(fill_arithmetic)(kernels); }

}  // namespace einkern::kernel
#endif
