// SPDX-License-Identifier: Apache-2.0
// take against a loop, over layouts, dtypes and axes; toeplitz as a view.
#include <doctest/doctest.h>

#include "../../engine/base/error.h"
#include "../../engine/graph/compiled.h"
#include "../../ops/ops.h"
#include "../support/arrays.h"

using namespace einkern;
using namespace einkern::test;

namespace {

Array taken(const Array& x, const Array& at, std::size_t axis) {
  const auto cut = static_cast<std::ptrdiff_t>(axis);
  Sizes shape(x.shape.begin(), x.shape.begin() + cut);
  shape.insert(shape.end(), at.shape.begin(), at.shape.end());
  shape.insert(shape.end(), x.shape.begin() + cut + 1, x.shape.end());
  Array out(shape);
  const auto count = static_cast<std::ptrdiff_t>(at.shape.size());
  for_each_index(shape, [&](const Sizes& i) {
    Sizes from(i.begin(), i.begin() + cut);
    from.push_back(
        static_cast<std::int64_t>(at.at(Sizes(i.begin() + cut, i.begin() + cut + count))));
    from.insert(from.end(), i.begin() + cut + count, i.end());
    out.at(i) = x.at(from);
  });
  return out;
}

Array places(Sizes shape, std::int64_t size, unsigned seed) {
  Array at = noise(std::move(shape), seed);
  for (double& x : at.data) x = std::floor((x + 1) / 2 * static_cast<double>(size));
  return at;
}

}  // namespace

TEST_SUITE("ops") {
  TEST_CASE("take: every axis, dtype and layout") {
    const Array x = places({4, 5, 6}, 100, 91);
    for (const DType dtype : {boolean, i8, i16, i32, i64, f16, bf16, f32, f64}) {
      Array held = x;
      if (dtype == boolean) {
        for (double& v : held.data) v = v < 50 ? 0 : 1;
      }
      const Tensor t = to_tensor(held, dtype);
      for (std::size_t axis = 0; axis < 3; ++axis) {
        const Axis a(static_cast<std::int64_t>(axis));
        for (const DType kind : {i8, i32, i64}) {
          const Array at = places({3, 2}, held.shape[axis], 92);
          const Expr picked = take(t, to_tensor(at, kind), a);
          CHECK(picked.dtype() == dtype);
          CHECK(worst_error(Tensor(picked), taken(held, at, axis)) == 0);
        }
        const Array one({}, 2);
        CHECK(worst_error(Tensor(take(t, to_tensor(one, i64), a)), taken(held, one, axis)) == 0);
        CHECK(Tensor(take(t, zeros({0}, i64), a)).size() == 0);
      }
    }
    const Tensor turned = to_tensor(x, f32).permute({2, 0, 1}).slice(1, {}, {}, -1);
    const Array at = places({3}, 4, 93);
    CHECK(worst_error(Tensor(take(turned, to_tensor(at, i64), 1)),
                      taken(to_array(turned), at, 1)) == 0);
    CHECK(worst_error(
              Tensor(take(turned, to_tensor(at, i64).slice(0, {}, {}, -1), 2)),
              taken(to_array(turned), Array({3}, {at.data[2], at.data[1], at.data[0]}), 2)) == 0);
  }

  TEST_CASE("take: a large table, in parallel, and an expression of positions") {
    const Tensor table = random({1000, 129}, 3);
    const Array at = places({40, 50}, 1000, 94);
    CHECK(worst_error(Tensor(take(table, to_tensor(at, i64), 0)), taken(to_array(table), at, 0)) ==
          0);
    const Expr lazy = 2 * table;
    const Expr reversed = 999 - Expr(to_tensor(at, i64));
    Array back = at;
    for (double& p : back.data) p = 999 - p;
    Array want = taken(to_array(table), back, 0);
    for (double& v : want.data) v = 2 * v;
    CHECK(worst_error(Tensor(take(lazy, reversed, 0)), want) == 0);
    CHECK(worst_error(eval(take(lazy, reversed, 0), {.fuse = false}), want) == 0);
  }

  TEST_CASE("take: labels, and what it refuses") {
    const Expr table = named(zeros({5, 3}), "vd"), words = named(zeros({2, 4}, i32), "bn");
    const Expr rows = take(table, words, "v");
    CHECK(rows.labels().to_vector(3) == std::vector<std::string>{"b", "n", "d"});
    CHECK(take(table, named(zeros({2}, i32), "d"), 0).labels()[0].empty());
    CHECK_THROWS_WITH_AS(take(table, zeros({2}), 0), "take: positions are f32, not integers",
                         TypeError);
    CHECK_THROWS_AS(take(table, words, 2), ShapeError);
    const auto get = [&](std::int64_t position) {
      return Tensor(take(table, full({2}, static_cast<double>(position), i64), 0));
    };
    CHECK_THROWS_WITH_AS(get(5), "take: index 5 is out of range for axis 0 of size 5", ValueError);
    CHECK_THROWS_WITH_AS(get(-1), "take: index -1 is out of range for axis 0 of size 5",
                         ValueError);
    CHECK_THROWS_WITH_AS(Tensor(take(zeros({2, 0}), zeros({1}, i64), 1)),
                         "take: index 0 is out of range for axis 1 of size 0", ValueError);
    // An output is not touched when a position is wrong.
    const Tensor out = full({2, 3}, 7);
    CHECK_THROWS_AS(eval_into(out, take(table, full({2}, 9, i64), 0)), ValueError);
    CHECK(out.to_vector<float>() == std::vector<float>(6, 7));
  }

  TEST_CASE("toeplitz: differences of positions, as a view") {
    const Array t = noise({2, 9}, 95);
    for (const std::int64_t queries : {1, 4, 9, 10}) {
      const std::int64_t keys = 9 - queries + 1;
      Array want({2, queries, keys});
      for_each_index(want.shape, [&](const Sizes& i) {
        want.at(i) = t.at({i[0], i[2] - i[1] + queries - 1});
      });
      const Expr m = toeplitz(to_tensor(t), 1, queries);
      CHECK(m.labels().to_vector(3) == std::vector<std::string>{"", "q", "k"});
      CHECK(worst_error(Tensor(m), want) == 0);
      CHECK(worst_error(Tensor(m + 1.0), Array(Tensor(to_tensor(want) + 1.0).rank() == 3
                                                   ? to_array(Tensor(Expr(to_tensor(want)) + 1.0))
                                                   : want)) == 0);
    }
    // Half a million elements of a matrix, added up where a thousand lie.
    const Tensor ramp = arange(1023, f64);
    const Expr total = sum(toeplitz(ramp, 0, 512));
    CHECK(Tensor(total).item<double>() == 511.0 * 512 * 512);
    CHECK(explain_json({total}).find("\"kind\": \"copy\"") == std::string::npos);
    CHECK_THROWS_WITH_AS(toeplitz(ramp, 0, 1025),
                         "toeplitz: 1023 diagonals in axis 0 of (1023,) do not hold 1025 rows",
                         ShapeError);
    CHECK_THROWS_AS(toeplitz(ramp, 0, 0), ShapeError);
    // A negative number is no size that is known later, however many such sizes there are.
    for (const char* name : {"one", "two", "three", "four"}) dyn(name);
    CHECK_THROWS_AS(toeplitz(ramp, 0, -1), ShapeError);
    CHECK_THROWS_AS(toeplitz(ramp, 0, -3), ShapeError);
  }
}
