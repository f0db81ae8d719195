// SPDX-License-Identifier: Apache-2.0
// Checks new tensors: their values, bounds, and the published answers of the random generator.
#include <doctest/doctest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <vector>

#include "../../../engine/base/error.h"
#include "../../../engine/base/philox.h"
#include "../../../engine/tensor/create.h"

using namespace einkern;

TEST_SUITE("tensor") {
  TEST_CASE("zeros, ones, full and empty have the asked shape and dtype") {
    for (const DType dtype : {boolean, i8, i16, i32, i64, f16, bf16, f32, f64}) {
      const Tensor t = zeros({2, 3}, dtype);
      CHECK(t.dtype() == dtype);
      CHECK(t.is_contiguous());
      CHECK(t.to_vector<double>() == std::vector<double>(6, 0));
      CHECK(ones({4}, dtype).to_vector<double>() == std::vector<double>(4, 1));
      CHECK(empty({0, 3}, dtype).size() == 0);
    }
    CHECK(zeros({}).rank() == 0);
    CHECK(full({2}, -1.5).to_vector<float>() == std::vector<float>{-1.5, -1.5});
    CHECK(full({2}, -1.5, i16).to_vector<int>() == std::vector<int>{-1, -1});
    CHECK_THROWS_WITH_AS(full({2}, 1e5, i16), "full: 100000 does not fit i16", ValueError);
    CHECK_THROWS_WITH_AS(full({2}, NAN, i64), "full: nan does not fit i64", ValueError);
    CHECK_THROWS_WITH_AS(zeros({-1}), "empty: negative size in shape (-1,)", ShapeError);
  }

  TEST_CASE("arange counts") {
    CHECK(arange(3).to_vector<std::int64_t>() == std::vector<std::int64_t>{0, 1, 2});
    CHECK(arange(3, f32).dtype() == f32);
    CHECK(arange(128, i8)(-1).item<int>() == 127);
    CHECK(arange(0).shape() == Shape{0});
    CHECK(arange(-4).shape() == Shape{0});
    CHECK_THROWS_WITH_AS(arange(129, i8), "arange: 128 does not fit i8", ValueError);
    CHECK_THROWS_WITH_AS(arange(2, boolean), "arange: dtype bool does not count", TypeError);
  }

  TEST_CASE("arange with a step stops before its end") {
    CHECK(arange(1, 2, 0.25, f64).to_vector<double>() == std::vector<double>{1, 1.25, 1.5, 1.75});
    CHECK(arange(5, 0, -2, i32).to_vector<int>() == std::vector<int>{5, 3, 1});
    CHECK(arange(0, 1, 0.3, f64).size() == 4);
    CHECK(arange(3, 3, 1, f32).size() == 0);
    CHECK(arange(3, 0, 1, f32).size() == 0);
    CHECK_THROWS_WITH_AS(arange(0, 1, 0, f32), "arange: step is 0", ValueError);
    CHECK_THROWS_WITH_AS(arange(0, INFINITY, 1, f32), "arange: no range from 0 to inf by 1",
                         ValueError);
    CHECK_THROWS_WITH_AS(arange(0, NAN, 1, f32), "arange: no range from 0 to nan by 1", ValueError);
    CHECK_THROWS_WITH_AS(arange(0, 1, INFINITY, f32), "arange: no range from 0 to 1 by inf",
                         ValueError);
    CHECK_THROWS_WITH_AS(arange(0, 1e30, 1, f32),
                         "arange: shape (4611686018427387904,) has more elements than 64-bit "
                         "offsets can reach",
                         ShapeError);
    CHECK_THROWS_WITH_AS(arange(0, 300, 100, i8), "arange: 200 does not fit i8", ValueError);
  }

  TEST_CASE("tensors of given values") {
    const Tensor t = tensor<std::int16_t>({1, 2, 3, 4}, {2, 2});
    CHECK(t.dtype() == i16);
    CHECK(t(1, 0).item<int>() == 3);
    CHECK(tensor({1.5, 2.5}).dtype() == f64);
    CHECK(tensor({true, false}).to_vector<bool>() == std::vector<bool>{true, false});
    CHECK(tensor<long long>({7}).item<long>() == 7);
    CHECK(tensor<float>({}).shape() == Shape{0});
    CHECK(tensor<float>({3}, {}).rank() == 0);
    CHECK_THROWS_WITH_AS(tensor<float>({1, 2, 3}, {2, 2}),
                         "from_values: 3 values for shape (2, 2) of 4 elements", ShapeError);
  }

  TEST_CASE("Philox gives the known answers of its authors") {
    // Random123 1.09, kat_vectors, philox4x32 with 10 rounds.
    using Words = std::array<std::uint32_t, 4>;
    CHECK(philox4x32({0, 0, 0, 0}, {0, 0}) ==
          Words{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8});
    constexpr std::uint32_t kOnes = 0xffffffff;
    CHECK(philox4x32({kOnes, kOnes, kOnes, kOnes}, {kOnes, kOnes}) ==
          Words{0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd});
    CHECK(philox4x32({0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344}, {0xa4093822, 0x299f31d0}) ==
          Words{0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1});
  }

  TEST_CASE("random numbers are the generator's words, by flat index") {
    // Counter 0 under key 0, as above: 24 bits a float, 53 bits (low word first) a double.
    CHECK(random({5}, 0).slice(0, 0, 4).to_vector<float>() ==
          std::vector<float>{0x6627e8p-24f, 0xe169c5p-24f, 0xbc57acp-24f, 0x9b00dbp-24f});
    CHECK(random({2}, 0, f64).to_vector<double>() ==
          std::vector<double>{static_cast<double>(0xe169c58d6627e8d5 >> 11) * 0x1p-53,
                              static_cast<double>(0x9b00dbd8bc57ac4c >> 11) * 0x1p-53});
    const std::uint64_t seed = 0x123456789abcdef0;
    const auto words = philox4x32({2, 0, 0, 0}, {0x9abcdef0, 0x12345678});
    CHECK(random({11}, seed)(9).item<float>() == static_cast<float>(words[1] >> 8) * 0x1p-24f);
    // A prefix does not depend on the size or the shape.
    const auto longer = random({7, 3}, seed).to_vector<float>();
    for (std::int64_t n = 0; n < 9; ++n) {
      const auto prefix = random({n}, seed).to_vector<float>();
      CHECK(std::equal(prefix.begin(), prefix.end(), longer.begin()));
      CHECK(random({n}, seed, f64).size() == n);
    }
    // Narrower floats are the leading bits of the same words.
    CHECK(random({11}, seed, f16)(9).item<float>() ==
          static_cast<float>(words[1] >> 21) * 0x1p-11f);
    CHECK(random({11}, seed, bf16)(9).item<float>() ==
          static_cast<float>(words[1] >> 24) * 0x1p-8f);
    CHECK_FALSE(allclose(random({8}, 1), random({8}, 2)));
    CHECK_THROWS_WITH_AS(random({2}, 1, i32),
                         "random: dtype is i32 but must be f16, bf16, f32 or f64", TypeError);
  }

  TEST_CASE("random numbers lie in [0, 1) and have the mean and variance of a uniform") {
    for (const DType dtype : {f16, f32, f64}) {
      const auto values = random({100000}, 42, dtype).to_vector<double>();
      double sum = 0, squares = 0;
      for (const double x : values) {
        if (!(x >= 0 && x < 1)) FAIL("out of range: ", x);
        sum += x;
        squares += x * x;
      }
      const double mean = sum / 1e5;
      // Four standard errors: sqrt(1/12 / 1e5) = 9.1e-4, and sqrt(1/180 / 1e5) = 2.4e-4.
      CHECK(std::abs(mean - 0.5) < 3.7e-3);
      CHECK(std::abs(squares / 1e5 - mean * mean - 1.0 / 12) < 9.5e-4);
    }
  }
}
