// SPDX-License-Identifier: Apache-2.0
// rope against rotations of complex numbers in double.
#include <doctest/doctest.h>

#include <cmath>
#include <complex>
#include <functional>

#include "../../engine/base/error.h"
#include "../../engine/graph/compiled.h"
#include "../../ops/ops.h"
#include "../support/arrays.h"

using namespace einkern;
using namespace einkern::test;

namespace {

using I = std::int64_t;

struct Turning {
  I dims;
  bool interleaved = false;
  std::function<double(const Sizes& row)> position;  // of a row (..., n)
  std::function<double(I pair)> frequency;
};

Array turned_by(const Array& x, const Turning& t) {
  Array y = x;
  Sizes rows(x.shape.begin(), x.shape.end() - 1);
  for_each_index(rows, [&](const Sizes& row) {
    for (I j = 0; j < t.dims / 2; ++j) {
      Sizes a = row, b = row;
      a.push_back(t.interleaved ? 2 * j : j);
      b.push_back(t.interleaved ? 2 * j + 1 : j + t.dims / 2);
      const auto z = std::complex<double>(x.at(a), x.at(b)) *
                     std::polar(1.0, t.position(row) * t.frequency(j));
      y.at(a) = z.real();
      y.at(b) = z.imag();
    }
  });
  return y;
}

std::function<double(I)> powers(double base, I dims) {
  return [=](I j) {
    return std::pow(base, -2.0 * static_cast<double>(j) / static_cast<double>(dims));
  };
}

double last_of(const Sizes& row) { return static_cast<double>(row.back()); }

}  // namespace

TEST_SUITE("ops") {
  TEST_CASE("rope: both pairings, whole and partial, other bases and scales, in both dtypes") {
    for (const DType dtype : {f32, f64}) {
      const Array x = to_array(to_tensor(noise({2, 3, 11, 10}, 61), dtype));
      const Tensor t = to_tensor(x, dtype);
      for (const bool interleaved : {false, true}) {
        for (const I dims : {10, 6, 2}) {
          const RopeOptions options{.base = 500, .dims = dims, .interleaved = interleaved};
          const Turning want{dims, interleaved, last_of, powers(500, dims)};
          CHECK(worst_error(Tensor(rope(t, options)), turned_by(x, want)) <= tolerance(dtype));
          CHECK(worst_error(eval(rope(t, options), {.fuse = false}), turned_by(x, want)) <=
                tolerance(dtype));
        }
        const Turning slow{10, interleaved, [](const Sizes& r) { return last_of(r) / 4; },
                           powers(10000, 10)};
        CHECK(worst_error(Tensor(rope(t, {.interleaved = interleaved, .scale = 4})),
                          turned_by(x, slow)) <= tolerance(dtype));
      }
      CHECK(rope(t).dtype() == dtype);
    }
  }

  TEST_CASE("rope: explicit positions: of rows, of each batch entry, of the first row, far away") {
    const Array x = noise({2, 3, 4, 6}, 62);
    const Tensor t = to_tensor(x);
    const Array each({2, 4}, {5, 0, 2, 9, 100, 3, 3, 70000});
    const Turning by_entry{6, false,
                           [&](const Sizes& r) {
                             return each.at({r[0], r[2]});
                           },
                           powers(10000, 6)};
    CHECK(worst_error(Tensor(rope(t, {.positions = to_tensor(each, i32)})),
                      turned_by(x, by_entry)) <= 1e-10);
    const Turning by_row{6, false,
                         [&](const Sizes& r) {
                           return each.at({1, r[2]});
                         },
                         powers(10000, 6)};
    CHECK(worst_error(Tensor(rope(t, {.positions = to_tensor(each, i64).slice(0, 1, 2)})),
                      turned_by(x, by_row)) <= 1e-10);
    const Turning later{6, false, [](const Sizes& r) { return last_of(r) + 17; }, powers(10000, 6)};
    CHECK(worst_error(Tensor(rope(t, {.positions = 17})), turned_by(x, later)) <= 1e-13);
    // Angles are computed in f64: f32 keeps its precision at position 1e6.
    const Array single = to_array(to_tensor(x, f32));
    const Turning far{6, true, [](const Sizes& r) { return last_of(r) + 1e6; }, powers(10000, 6)};
    CHECK(worst_error(
              Tensor(rope(to_tensor(single, f32), {.interleaved = true, .positions = 1000000})),
              turned_by(single, far)) <= 1e-6);
  }

  TEST_CASE("rope: given frequencies, and the base that stretches the longest wave") {
    const Array x = noise({5, 8}, 63), f({4}, {1, 0.3, 0.02, 0});
    const Turning want{8, false, last_of, [&](I j) { return f.at({j}); }};
    CHECK(worst_error(Tensor(rope(to_tensor(x), {.frequencies = to_tensor(f)})),
                      turned_by(x, want)) <= 1e-13);
    const double base = rope_ntk_base(10000, 4, 8);
    CHECK(powers(base, 8)(0) == 1);
    CHECK(powers(base, 8)(3) == doctest::Approx(powers(10000, 8)(3) / 4).epsilon(1e-12));
  }

  TEST_CASE("rope: position 0 is the identity, lengths stay, products depend on distances") {
    const Tensor x = random({3, 1, 8}, 64, f64), y = random({3, 1, 8}, 65, f64);
    CHECK(Tensor(rope(x)).to_vector<double>() == x.to_vector<double>());
    for (const bool interleaved : {false, true}) {
      const auto product = [&](I p, I q) {
        const RopeOptions first{.interleaved = interleaved, .positions = p};
        const RopeOptions second{.interleaved = interleaved, .positions = q};
        return Tensor(einsum("bnd,bnd->b", rope(x, first), rope(y, second))).to_vector<double>();
      };
      const auto near = product(7, 3), shifted = product(1007, 1003), other = product(7, 4);
      for (std::size_t b = 0; b < 3; ++b) {
        CHECK(near[b] == doctest::Approx(shifted[b]).epsilon(1e-11));
        CHECK(near[b] != doctest::Approx(other[b]).epsilon(1e-6));
      }
    }
  }

  TEST_CASE("rope: labels, sizes that a plan learns when it is called, one table for q and k") {
    const Expr q = named(random({2, 5, 4}, 66), "bnd");
    CHECK(rope(q).labels().to_vector(3) == std::vector<std::string>{"b", "n", "d"});
    const Expr in = input(f32, {2, dyn("n"), 4}), start = input(i64, {});
    const Compiled f = compile({in, start}, {rope(in, {.positions = start}), rope(in)});
    for (const I n : {1, 5}) {
      const Tensor x = random({2, n, 4}, 67);
      const auto got = f({x, full({}, 3, i64)});
      CHECK(worst_error(got[0], to_array(Tensor(rope(x, {.positions = 3})))) <= 1e-6);
      CHECK(worst_error(got[1], to_array(Tensor(rope(x)))) <= 1e-6);
    }
    const auto steps = [](const std::vector<Expr>& exprs) {
      const std::string text = explain_json(exprs);
      I count = 0;
      for (std::size_t at = 0; (at = text.find("\"kind\":", at)) != std::string::npos; ++at)
        ++count;
      return count;
    };
    const Tensor a = random({2, 9, 4}, 68), b = random({2, 9, 4}, 69);
    CHECK(steps({rope(a), rope(b)}) == steps({rope(a)}) + 1);
  }

  TEST_CASE("rope: what it refuses") {
    const Tensor x = zeros({2, 3, 6});
    CHECK_THROWS_WITH_AS(rope(x, {.dims = 8}),
                         "rope: dims is 8; 6 features have an even number of them to turn",
                         ValueError);
    CHECK_THROWS_AS(rope(x, {.dims = 3}), ValueError);
    CHECK_THROWS_AS(rope(zeros({3, 5})), ValueError);
    CHECK_THROWS_WITH_AS(rope(zeros({4})), "rope: x (4,) has no axis of rows and one of features",
                         ShapeError);
    CHECK_THROWS_WITH_AS(rope(x, {.positions = zeros({4}, i64)}),
                         "rope: positions (4,) do not fit the rows of x (2, 3, 6)", ShapeError);
    CHECK_THROWS_AS(rope(x, {.positions = zeros({3, 3}, i64)}), ShapeError);
    CHECK_THROWS_WITH_AS(rope(x, {.frequencies = zeros({6})}),
                         "rope: frequencies (6,) for 3 pairs of features", ShapeError);
    CHECK_THROWS_AS(rope(x, {.base = 0}), ValueError);
    CHECK_THROWS_AS(rope(x, {.scale = -1}), ValueError);
    CHECK_THROWS_AS(rope_ntk_base(10000, 2, 2), ValueError);
  }
}
