// SPDX-License-Identifier: Apache-2.0
// Checks that loop nests visit every element of their views once, and fuse what nests.
#include <doctest/doctest.h>

#include <algorithm>
#include <utility>
#include <vector>

#include "../../../engine/tensor/nest.h"

using namespace einkern;

namespace {

using Pairs = std::vector<std::pair<std::int64_t, std::int64_t>>;

Pairs visited(const Dims& shape, const Dims& a, const Dims& b, int& rows) {
  Pairs pairs;
  Nest<2>(shape, {&a, &b}).for_each_row([&](std::int64_t count, const auto& at, const auto& step) {
    ++rows;
    for (std::int64_t i = 0; i < count; ++i) {
      pairs.emplace_back(at[0] + i * step[0], at[1] + i * step[1]);
    }
  });
  std::sort(pairs.begin(), pairs.end());
  return pairs;
}

Pairs enumerated(const Dims& shape, const Dims& a, const Dims& b) {
  Pairs pairs{{0, 0}};
  for (std::size_t axis = 0; axis < shape.size(); ++axis) {
    Pairs next;
    for (const auto& [x, y] : pairs) {
      for (std::int64_t i = 0; i < shape[axis]; ++i)
        next.emplace_back(x + i * a[axis], y + i * b[axis]);
    }
    pairs = next;
  }
  std::sort(pairs.begin(), pairs.end());
  return pairs;
}

}  // namespace

TEST_SUITE("tensor") {
  TEST_CASE("every pair of elements is visited once, whatever the strides") {
    const std::vector<Dims> strides{{12, 4, 1}, {1, 2, 6}, {-12, -4, -1}, {-12, 4, -1},
                                    {0, 4, 1},  {0, 0, 0}, {24, 8, 2},    {1, -2, 6}};
    for (const Dims& shape :
         {Dims{2, 3, 4}, Dims{1, 3, 4}, Dims{2, 1, 1}, Dims{2, 0, 4}, Dims{1, 1, 1}}) {
      for (const Dims& a : strides) {
        for (const Dims& b : strides) {
          int rows = 0;
          CHECK(visited(shape, a, b, rows) == enumerated(shape, a, b));
        }
      }
    }
  }

  TEST_CASE("views that run through memory alike are one row") {
    int rows = 0;
    visited({2, 3, 4}, {12, 4, 1}, {12, 4, 1}, rows);
    CHECK(rows == 1);
    rows = 0;
    visited({2, 3, 4}, {1, 2, 6}, {1, 2, 6}, rows);  // both in Fortran order
    CHECK(rows == 1);
    rows = 0;
    visited({2, 3, 4}, {-12, -4, -1}, {-12, -4, -1}, rows);
    CHECK(rows == 1);
    rows = 0;
    visited({2, 3, 4}, {12, 4, 1}, {16, 4, 1}, rows);  // only the two inner axes nest
    CHECK(rows == 2);
    rows = 0;
    visited({}, {}, {}, rows);
    CHECK(rows == 1);
    rows = 0;
    visited({3, 0}, {1, 1}, {1, 1}, rows);
    CHECK(rows == 0);
  }
}
