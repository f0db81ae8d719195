// SPDX-License-Identifier: Apache-2.0
// Copies between random views of all dtypes, transposes, and thread counts.
#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <random>
#include <vector>

#include "../../../engine/base/error.h"
#include "threads.h"
#include "views.h"

using namespace einkern;
using namespace einkern::test;

namespace {

template <class From, class To>
void check_random_copies(std::uint32_t seed, int count, std::size_t rank, std::int64_t most) {
  std::mt19937 random(seed);
  const auto& tables = kernel::supported_kernels();
  for (int i = 0; i < count; ++i) {
    const Dims shape = random_shape(random, rank, most);
    View<From> in(shape, random, true);
    View<To> out(shape, random, false);
    in.fill([&] {
      return std::is_same_v<From, bool> ? static_cast<double>(random() % 2)
                                        : uniform(random, -100, 100);
    });
    run_step(plan::Copy{in.operand(0), out.operand(1)}, {in.bytes(), out.bytes()},
             *tables[static_cast<std::size_t>(i) % tables.size()]);
    bool right = true;
    for (std::int64_t p = 0; p < out.size(); ++p) {
      const Stored<To> want = std::is_same_v<To, bool> ? static_cast<Stored<To>>(in[p] != 0)
                                                       : static_cast<Stored<To>>(in[p]);
      right &= out[p] == want;
    }
    CAPTURE(to_string(shape));
    CHECK(right);
    CHECK(out.gaps_untouched());
  }
}

template <class From>
void check_from() {
  check_random_copies<From, bool>(11, 40, 4, 9);
  check_random_copies<From, std::int8_t>(12, 40, 4, 9);
  check_random_copies<From, std::int16_t>(13, 40, 4, 9);
  check_random_copies<From, std::int32_t>(14, 40, 4, 9);
  check_random_copies<From, std::int64_t>(15, 40, 4, 9);
  check_random_copies<From, float>(16, 40, 4, 9);
  check_random_copies<From, double>(17, 40, 4, 9);
}

template <class From, class To>
void convert_one(From value) {
  View<From> in(Dims{});
  View<To> out(Dims{});
  in[0] = value;
  run_step(plan::Copy{in.operand(0), out.operand(1)}, {in.bytes(), out.bytes()}, kernel::kernels());
}

/// `in` viewed with its axes in `order`, copied to C order.
template <class T>
void check_permutation(const Dims& shape, const SmallVector<std::int64_t, 6>& order) {
  View<T> in(shape);
  for (std::size_t i = 0; i < in.memory.size(); ++i) in.memory[i] = static_cast<T>(i);
  View<T> view(shape);
  view.layout = permuted(in.layout, order);
  view.memory = in.memory;
  View<T> want(view.layout.shape);
  for (std::int64_t p = 0; p < want.size(); ++p) want[p] = view[p];
  for (const kernel::Kernels* kernels : kernel::supported_kernels()) {
    with_threads([&](int threads) {
      View<T> out(want.layout.shape);
      run_step(plan::Copy{view.operand(0), out.operand(1)}, {in.bytes(), out.bytes()}, *kernels);
      CAPTURE(threads);
      CHECK(same_bits(out.memory, want.memory));  // the guards too
    });
  }
}

}  // namespace

TEST_SUITE("exec") {
  TEST_CASE("copies between random views of one dtype") {
    check_random_copies<float, float>(1, 400, 5, 9);
    check_random_copies<double, double>(2, 200, 5, 9);
    check_random_copies<float, float>(3, 60, 3, 70);
    check_random_copies<double, double>(4, 40, 3, 50);
    check_random_copies<std::int8_t, std::int8_t>(5, 60, 3, 50);
    check_random_copies<std::int16_t, std::int16_t>(6, 60, 3, 50);
    check_random_copies<bool, bool>(7, 60, 3, 50);
  }

  TEST_CASE("conversions between all dtypes") {
    check_from<bool>();
    check_from<std::int8_t>();
    check_from<std::int16_t>();
    check_from<std::int32_t>();
    check_from<std::int64_t>();
    check_from<float>();
    check_from<double>();
  }

  TEST_CASE("values that do not fit are ValueErrors") {
    CHECK_THROWS_WITH_AS((convert_one<double, std::int64_t>(NAN)),
                         "astype: a value does not fit i64", ValueError);
    CHECK_THROWS_WITH_AS((convert_one<float, std::int64_t>(0x1p63f)),
                         "astype: a value does not fit i64", ValueError);
    CHECK_THROWS_WITH_AS((convert_one<std::int64_t, std::int32_t>(1LL << 31)),
                         "astype: a value does not fit i32", ValueError);
    CHECK_THROWS_WITH_AS((convert_one<double, std::int8_t>(-129)),
                         "astype: a value does not fit i8", ValueError);
    CHECK_NOTHROW((convert_one<double, std::int64_t>(-0x1p63)));
    CHECK_NOTHROW((convert_one<double, bool>(NAN)));
  }

  TEST_CASE("large permutations, streamed and transposed") {
    // All larger than an L2 of 2 MiB, so that stores are streamed.
    check_permutation<float>({20, 18, 45, 41}, {3, 2, 1, 0});
    check_permutation<float>({20, 18, 45, 41}, {1, 0, 3, 2});
    check_permutation<float>({20, 18, 45, 41}, {2, 1, 0, 3});
    check_permutation<float>({16, 16, 48, 48}, {3, 2, 1, 0});
    check_permutation<double>({610, 530}, {1, 0});
    check_permutation<double>({20, 15, 35, 30}, {3, 0, 2, 1});
    // Rows of the input a multiple of 4 KiB apart.
    check_permutation<float>({70, 8, 1024}, {2, 1, 0});
    check_permutation<float>({70, 8, 1024}, {1, 2, 0});
    check_permutation<double>({130, 5, 512}, {1, 2, 0});
    // Short runs.
    check_permutation<float>({40, 30, 8, 70}, {2, 0, 1, 3});
    check_permutation<float>({40, 30, 8, 70}, {0, 2, 1, 3});
    check_permutation<float>({3, 200000}, {1, 0});
    check_permutation<float>({200000, 3}, {1, 0});
    check_permutation<float>({2000, 300}, {0, 1});
  }

  TEST_CASE("NaN payloads and negative zeros are moved as bits") {
    View<float> in({2, 40}), out({2, 40});
    for (std::int64_t i = 0; i < 80; ++i) in[i] = i % 2 == 0 ? -0.0f : std::nanf("77");
    run_step(plan::Copy{in.operand(0), out.operand(1)}, {in.bytes(), out.bytes()},
             kernel::kernels());
    CHECK(same_bits(in.elements(), out.elements()));
  }
}
