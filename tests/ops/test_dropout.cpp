// SPDX-License-Identifier: Apache-2.0
// dropout: what it keeps depends on seed and position, and on nothing else.
#include <doctest/doctest.h>

#include <array>
#include <cmath>
#include <cstdint>

#include "../../engine/base/error.h"
#include "../../engine/graph/compiled.h"
#include "../../ops/ops.h"
#include "../support/arrays.h"

using namespace einkern;
using namespace einkern::test;

namespace {

/// The first two of the four words of Philox 4x32-10, as 62 bits: written from the paper.
std::int64_t philox_bits(std::int64_t counter, std::int64_t key) {
  const auto words = [](std::int64_t x) {
    return std::array<std::uint64_t, 2>{static_cast<std::uint64_t>(x) & 0xffffffff,
                                        static_cast<std::uint64_t>(x) >> 32};
  };
  std::array<std::uint64_t, 4> c{words(counter)[0], words(counter)[1], 1, 0};
  std::array<std::uint64_t, 2> k = words(key);
  for (int round = 0; round < 10; ++round) {
    const std::uint64_t a = 0xD2511F53 * c[0], b = 0xCD9E8D57 * c[2];
    c = {(b >> 32) ^ c[1] ^ k[0], b & 0xffffffff, (a >> 32) ^ c[3] ^ k[1], a & 0xffffffff};
    k = {(k[0] + 0x9E3779B9) & 0xffffffff, (k[1] + 0xBB67AE85) & 0xffffffff};
  }
  return static_cast<std::int64_t>((c[1] << 32 | c[0]) >> 2);
}

/// Is the element at this position kept? By the definition in ops/dropout.cpp.
bool keeps(const Sizes& i, std::int64_t seed, double p) {
  const std::size_t rank = i.size();
  std::int64_t bits = rank == 0 ? philox_bits(0, seed) : seed;
  for (std::size_t d = 0; d < rank; d += rank % 2 == 1 && d == 0 ? 1 : 2) {
    const bool single = rank % 2 == 1 && d == 0;
    bits = philox_bits(single ? i[0] : i[d + 1] + (i[d] << 32), bits);
  }
  return static_cast<double>(bits) < std::ldexp(1 - p, 62);
}

}  // namespace

TEST_SUITE("ops") {
  TEST_CASE("dropout keeps by seed and position: any rank, dtype, route and number of threads") {
    for (const Sizes& shape : {Sizes{}, Sizes{300}, Sizes{20, 30}, Sizes{3, 20, 70},
                               Sizes{2, 3, 50, 60}, Sizes{2, 1, 3, 5, 7}}) {
      for (const double p : {0.1, 0.5}) {
        Array want(shape);
        for_each_index(shape,
                       [&](const Sizes& i) { want.at(i) = keeps(i, 42, p) ? 1 / (1 - p) : 0; });
        for (const DType dtype : {f32, f64}) {
          const Expr y = dropout(ones(Shape(shape), dtype), p, 42);
          CHECK(worst_error(eval(y, {.threads = 1}), want) <= 1e-7);
          CHECK(eval(y, {.threads = 3}).to_vector<double>() ==
                eval(y, {.fuse = false, .threads = 2}).to_vector<double>());
        }
      }
    }
  }

  TEST_CASE(
      "dropout: the share that is kept, other seeds, and neighbours that do not go together") {
    const double n = 400 * 500, p = 0.3;
    const Tensor a(dropout(ones({400, 500}), p, 1)), b(dropout(ones({400, 500}), p, 2));
    const Array x = to_array(a), y = to_array(b);
    double kept = 0, both = 0, beside = 0, below = 0;
    for_each_index({400, 500}, [&](const Sizes& i) {
      const bool here = x.at(i) != 0;
      kept += here;
      both += here && y.at(i) != 0;
      beside += here && x.at({i[0], (i[1] + 1) % 500}) != 0;
      below += here && x.at({(i[0] + 1) % 400, i[1]}) != 0;
    });
    // Five standard deviations of a count of independent choices.
    const auto near = [&](double count, double share) {
      return std::fabs(count - n * share) <= 5 * std::sqrt(n * share * (1 - share));
    };
    CHECK(near(kept, 0.7));
    CHECK(near(both, 0.49));
    CHECK(near(beside, 0.49));
    CHECK(near(below, 0.49));
  }

  TEST_CASE("dropout: nothing, everything, and sizes that a plan learns when it is called") {
    const Tensor x = random({7, 9}, 5);
    CHECK(Tensor(dropout(x, 0, 1)).to_vector<float>() == x.to_vector<float>());
    CHECK(Tensor(dropout(x, 1, 1)).to_vector<float>() == std::vector<float>(63, 0));
    const Expr in = input(f32, {dyn("q"), dyn("k")}), seed = input(i64, {});
    const Compiled f = compile({in, seed}, {dropout(in, 0.5, seed)});
    const Tensor whole(dropout(x, 0.5, 9));
    CHECK(f({x, full({}, 9, i64)})[0].to_vector<float>() == whole.to_vector<float>());
    // Position by position: a part drops what the whole drops there.
    const Tensor part = x.slice(0, 0, 4).slice(1, 0, 5);
    CHECK(f({part, full({}, 9, i64)})[0].to_vector<float>() ==
          whole.slice(0, 0, 4).slice(1, 0, 5).to_vector<float>());
  }

  TEST_CASE("dropout: what it refuses") {
    CHECK_THROWS_WITH_AS(dropout(ones({2}), 1.5, 1),
                         "dropout: p is 1.5; it must be between 0 and 1", ValueError);
    CHECK_THROWS_AS(dropout(ones({2}), NAN, 1), ValueError);
    CHECK_THROWS_WITH_AS(dropout(ones({2}), 0.5, 0.5), "dropout: seed is f64, not an integer",
                         TypeError);
    CHECK_THROWS_WITH_AS(dropout(ones({2}), 0.5, zeros({3}, i64)),
                         "dropout: seed has shape (3,), not ()", ShapeError);
  }
}
