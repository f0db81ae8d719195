// SPDX-License-Identifier: Apache-2.0
// scan against the recurrence in double.
#include <doctest/doctest.h>

#include "../../engine/base/error.h"
#include "../../ops/ops.h"
#include "../support/arrays.h"

using namespace einkern;
using namespace einkern::test;

namespace {

/// The gate broadcasts from the right.
Array recurrence(const Array& x, const Array& gate, std::size_t axis) {
  Array s(x.shape);
  for_each_index(x.shape, [&](const Sizes& i) {
    s.at(i) = x.at(i);
    if (i[axis] == 0) return;
    Sizes before = i;
    --before[axis];
    s.at(i) += gate.at(i) * s.at(before);
  });
  return s;
}

}  // namespace

TEST_SUITE("ops") {
  TEST_CASE("scan: every axis and kind of gate, in both dtypes, on both routes") {
    const Array one({1}, 1);
    for (const DType dtype : {f32, f64}) {
      for (const Sizes& shape : {Sizes{3, 5, 7}, Sizes{2, 1, 9}, Sizes{1, 40, 600}}) {
        const Array x = to_array(to_tensor(noise(shape, 71), dtype));
        for (const Sizes& gates : {shape, Sizes{shape[1], shape[2]}, Sizes{shape[1], 1}, Sizes{}}) {
          const Array g = to_array(to_tensor(noise(gates, 72), dtype));
          for (std::size_t axis = 0; axis < 3; ++axis) {
            const Axis a(static_cast<std::int64_t>(axis));
            const Expr s = scan(to_tensor(x, dtype), a, to_tensor(g, dtype));
            const Array want = recurrence(x, g, axis);
            CHECK(s.dtype() == dtype);
            CHECK(worst_error(Tensor(s), want) <= tolerance(dtype));
            CHECK(worst_error(eval(s, {.fuse = false}), want) <= tolerance(dtype));
            CHECK(worst_error(Tensor(scan(to_tensor(x, dtype), a)), recurrence(x, one, axis)) <=
                  10 * tolerance(dtype));
          }
        }
      }
    }
  }

  TEST_CASE("scan: views, an output that is one, and the same bits for any number of threads") {
    const Array x = noise({60, 50, 40}, 73), g = noise({60, 50, 40}, 74);
    const auto turned = [](const Array& array) {
      return to_tensor(array, f32).permute({2, 0, 1}).slice(0, {}, {}, -1);
    };
    const Tensor t = turned(x), u = turned(g);
    for (std::size_t axis = 0; axis < 3; ++axis) {
      const Expr s = scan(t, static_cast<std::int64_t>(axis), u);
      const Array want = recurrence(to_array(t), to_array(u), axis);
      const Tensor one = eval(s, {.threads = 1}), three = eval(s, {.threads = 3});
      CHECK(worst_error(one, want) <= 2e-6);
      CHECK(one.to_vector<float>() == three.to_vector<float>());
      const Tensor out = zeros({50, 40, 60}).permute({1, 2, 0});
      eval_into(out, s);
      CHECK(out.to_vector<float>() == one.to_vector<float>());
    }
  }

  TEST_CASE("scan: a gate of 0 forgets, lines of NaN stay alone, nothing is empty") {
    const Tensor x = to_tensor(Array({2, 3}, {1, 2, 3, NAN, 5, 6}));
    const Tensor g = to_tensor(Array({3}, {1, 0, 1}));
    const Array s = to_array(Tensor(scan(x, 1, g)));
    CHECK(s.data[2] == 5);  // 3 + 2: the first element is forgotten
    CHECK(std::isnan(s.data[3]));
    CHECK(s.data[5] != s.data[5]);  // 0 times NaN
    CHECK(Tensor(scan(zeros({0, 3}), 0)).size() == 0);
    CHECK(Tensor(scan(zeros({3, 0}), 0)).size() == 0);
    CHECK(Tensor(scan(arange(4), 0)).to_vector<double>() == std::vector<double>{0, 1, 3, 6});
  }

  TEST_CASE("scan: what it refuses, and labels") {
    const Expr x = named(zeros({2, 3}), "bn");
    CHECK(scan(x, "n", named(zeros({3}), "n")).labels()[1] == "n");
    CHECK_THROWS_WITH_AS(scan(zeros({2, 3}), 1, zeros({4, 1, 1})),
                         "scan: the gate (4, 1, 1) does not broadcast to (2, 3)", ShapeError);
    CHECK_THROWS_AS(scan(x, "k"), ShapeError);
    CHECK_THROWS_AS(scan(zeros({2, 3}), 1, zeros({2})), ShapeError);
  }
}
