// SPDX-License-Identifier: Apache-2.0
// Elementwise functions of floats against libm in a wider type, on every SIMD target.
#include <doctest/doctest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <random>
#include <string>
#include <vector>

#include "../../../engine/kernel/kernels.h"
#include "../../support/sanitizer.h"

using namespace einkern;
using kernel::MapFault;
using map::Op;

namespace {

struct Function {
  Op op;
  long double (*exact)(long double);
  double bound;  // units in the last place; the largest errors seen are in math-inl.h
};

long double exact_sigmoid(long double x) { return 1 / (1 + std::exp(-x)); }
long double exact_rsqrt(long double x) { return 1 / std::sqrt(x); }

const Function kFunctions[] = {
    {Op::exp, [](long double x) { return std::exp(x); }, 2},
    {Op::log, [](long double x) { return std::log(x); }, 2},
    {Op::sqrt, [](long double x) { return std::sqrt(x); }, 0.5001},
    {Op::rsqrt, exact_rsqrt, 2},
    {Op::sin, [](long double x) { return std::sin(x); }, 1},
    {Op::cos, [](long double x) { return std::cos(x); }, 1},
    {Op::tanh, [](long double x) { return std::tanh(x); }, 3},
    {Op::sigmoid, exact_sigmoid, 3},
    {Op::erf, [](long double x) { return std::erf(x); }, 3},
};

template <class T>
kernel::MapKernels::Function kernel_of(const kernel::Kernels& kernels, Op op) {
  return kernels.map.apply[static_cast<std::size_t>(op)][static_cast<std::size_t>(dtype_of<T>)];
}

/// Distance in units of the last place of T at `want`; infinity counts as the power of two after
/// the largest number.
template <class T>
double ulps(T got, long double want) {
  using Limits = std::numeric_limits<T>;
  if (std::isnan(got) || std::isnan(want)) {
    return std::isnan(got) && std::isnan(want) ? 0 : INFINITY;
  }
  const long double beyond = std::ldexp(1.0L, Limits::max_exponent);
  const long double g = std::clamp<long double>(got, -beyond, beyond);
  const long double w = std::clamp<long double>(want, -beyond, beyond);
  if (g == w) return 0;
  const int exponent =
      w == 0 ? Limits::min_exponent - 1 : std::max(std::ilogb(w), Limits::min_exponent - 1);
  const int last = std::min(exponent, Limits::max_exponent - 1) - (Limits::digits - 1);
  return static_cast<double>(std::abs(g - w) / std::ldexp(1.0L, last));
}

/// Largest error of every function over the arguments, on every target.
template <class T>
void check(const std::vector<T>& x, std::vector<double>& worst) {
  std::vector<T> y(x.size());
  std::vector<long double> want(x.size());
  for (std::size_t f = 0; f < std::size(kFunctions); ++f) {
    const Function& function = kFunctions[f];
    for (std::size_t i = 0; i < x.size(); ++i) want[i] = function.exact(x[i]);
    for (const kernel::Kernels* kernels : kernel::supported_kernels()) {
      kernel_of<T>(*kernels, function.op)(x.data(), nullptr, nullptr, y.data(),
                                          static_cast<std::int64_t>(x.size()));
      for (std::size_t i = 0; i < x.size(); ++i) {
        const double error = ulps(y[i], want[i]);
        if (error > worst[f]) worst[f] = error;
        if (!(error <= function.bound)) {
          FAIL_CHECK(map::name_of(function.op), " of ", x[i], " on ", kernels->target.name, " is ",
                     y[i], ", off by ", error);
          return;
        }
      }
    }
  }
}

template <class T>
std::vector<T> special_values() {
  using Limits = std::numeric_limits<T>;
  std::vector<T> values;
  for (const T x : {T{0},
                    T{1},
                    T{0.5},
                    T{2},
                    T{3},
                    Limits::denorm_min(),
                    Limits::min(),
                    Limits::epsilon(),
                    Limits::min() / 2,
                    std::nextafter(Limits::min(), T{0}),
                    Limits::max(),
                    Limits::infinity(),
                    Limits::quiet_NaN(),
                    std::nextafter(T{1}, T{0}),
                    std::nextafter(T{1}, T{2}),
                    T{88.7},
                    T{88.8},
                    T{87.3},
                    T{103.9},
                    T{104},
                    T{150},
                    T{709.7},
                    T{709.8},
                    T{708.4},
                    T{745.1},
                    T{745.2},
                    T{746},
                    T{800},
                    T{0.625},
                    T{9},
                    T{10},
                    T{19},
                    T{20},
                    T{3.9},
                    T{4},
                    T{5.9},
                    T{6}}) {
    values.push_back(x);
    values.push_back(-x);
  }
  return values;
}

void report(const std::string& what, const std::vector<double>& worst) {
  for (std::size_t f = 0; f < worst.size(); ++f) {
    MESSAGE(what, " ", map::name_of(kFunctions[f].op), ": ", worst[f], " ulp");
  }
}

template <class T>
void check_positions() {
  // One long run gives the bits that every shorter, displaced run must give too.
  std::mt19937 random(11);
  std::vector<T> x(96), whole(96);
  for (T& value : x) value = std::ldexp(static_cast<T>(static_cast<int>(random())), -29);
  for (const kernel::Kernels* kernels : kernel::supported_kernels()) {
    const std::size_t most =
        2 * static_cast<std::size_t>(kernels->target.vector_bytes) / sizeof(T) + 1;
    for (const Function& function : kFunctions) {
      const auto apply = kernel_of<T>(*kernels, function.op);
      CHECK(apply(x.data(), nullptr, nullptr, whole.data(), 96) == MapFault::none);
      for (std::size_t n = 0; n <= most; ++n) {
        for (const std::size_t skew : {0, 1, 3}) {
          const T guard = 77;
          std::vector<T> y(most + 8, guard);
          apply(x.data() + skew, nullptr, nullptr, y.data() + skew + 1,
                static_cast<std::int64_t>(n));
          const bool same =
              std::memcmp(y.data() + skew + 1, whole.data() + skew, n * sizeof(T)) == 0;
          const bool untouched = y[skew] == guard && y[skew + 1 + n] == guard;
          if (!same || !untouched) {
            FAIL_CHECK(map::name_of(function.op), " n ", n, " skew ", skew, " on ",
                       kernels->target.name);
          }
        }
      }
    }
  }
}

}  // namespace

TEST_SUITE("kernel") {
  TEST_CASE("f32 functions over the whole range of bit patterns") {
    std::vector<double> worst(std::size(kFunctions));
    std::vector<float> x;
    // Prime: all exponents, all low bits.
    constexpr std::uint64_t kStep = test::kSanitized ? 7919 : 1511;
    for (std::uint64_t bits = 0; bits < (std::uint64_t{1} << 32); bits += kStep) {
      x.push_back(std::bit_cast<float>(static_cast<std::uint32_t>(bits)));
      if (x.size() == 65536) {
        check(x, worst);
        x.clear();
      }
    }
    check(x, worst);
    report("f32", worst);
  }

  TEST_CASE("f64 functions over random bits and where they bend") {
    std::vector<double> worst(std::size(kFunctions));
    std::mt19937_64 random(5);
    std::vector<double> x;
    for (int i = 0; i < 60000; ++i) x.push_back(std::bit_cast<double>(random()));
    for (const double scale : {1e-3, 0.5, 1.0, 2.0, 7.0, 40.0, 750.0}) {
      std::uniform_real_distribution<double> uniform(-scale, scale);
      for (int i = 0; i < 40000; ++i) x.push_back(uniform(random));
    }
    std::uniform_real_distribution<double> near_one(0.6, 1.5), denormal(-745.2, -708.0);
    for (int i = 0; i < 40000; ++i) x.push_back(near_one(random));
    for (int i = 0; i < 40000; ++i) x.push_back(denormal(random));
    check(x, worst);
    report("f64", worst);
  }

  TEST_CASE("f32 functions densely where they bend") {
    std::vector<double> worst(std::size(kFunctions));
    std::mt19937_64 random(6);
    std::vector<float> x;
    for (const float scale : {1.0f, 4.0f, 20.0f, 110.0f}) {
      std::uniform_real_distribution<float> uniform(-scale, scale);
      for (int i = 0; i < 200000; ++i) x.push_back(uniform(random));
    }
    check(x, worst);
    report("f32 dense", worst);
  }

  TEST_CASE("functions of special values") {
    std::vector<double> worst(std::size(kFunctions));
    check(special_values<float>(), worst);
    check(special_values<double>(), worst);
    const auto& table = *kernel::supported_kernels().front();
    const float x[] = {-0.0f, -INFINITY};
    float y[2];
    kernel_of<float>(table, Op::tanh)(x, nullptr, nullptr, y, 2);
    CHECK(std::signbit(y[0]));
    CHECK(y[1] == -1.0f);
    kernel_of<float>(table, Op::erf)(x, nullptr, nullptr, y, 2);
    CHECK(std::signbit(y[0]));
    kernel_of<float>(table, Op::exp)(x, nullptr, nullptr, y, 2);
    CHECK(y[1] == 0.0f);
  }

  TEST_CASE("an element's bits do not depend on its position") {
    check_positions<float>();
    check_positions<double>();
  }
}
