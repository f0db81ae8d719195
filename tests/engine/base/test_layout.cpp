// SPDX-License-Identifier: Apache-2.0
// Checks shape and stride algebra against enumeration of the elements.
#include <doctest/doctest.h>

#include <algorithm>
#include <limits>
#include <vector>

#include "../../../engine/base/error.h"
#include "../../../engine/base/layout.h"

using namespace einkern;

namespace {

// Offsets of all elements, in C order.
std::vector<std::int64_t> offsets(const Layout& layout) {
  std::vector<std::int64_t> all{layout.offset};
  for (std::size_t axis = 0; axis < layout.rank(); ++axis) {
    std::vector<std::int64_t> next;
    for (const std::int64_t offset : all) {
      for (std::int64_t i = 0; i < layout.shape[axis]; ++i) {
        next.push_back(offset + i * layout.strides[axis]);
      }
    }
    all = next;
  }
  return all;
}

}  // namespace

TEST_SUITE("base") {
  TEST_CASE("element_count multiplies, and refuses what offsets cannot reach") {
    CHECK(element_count({}) == 1);
    CHECK(element_count({2, 3, 4}) == 24);
    CHECK(element_count({5, 0, 7}) == 0);
    CHECK(element_count({std::int64_t{1} << 60}) == std::int64_t{1} << 60);
    CHECK_THROWS_WITH_AS(element_count({2, -1}, "zeros"), "zeros: negative size in shape (2, -1)",
                         ShapeError);
    CHECK_THROWS_WITH_AS(element_count({1 << 30, 1 << 30, 2}, "zeros"),
                         "zeros: shape (1073741824, 1073741824, 2) has more elements than 64-bit "
                         "offsets can reach",
                         ShapeError);
    // A zero does not excuse the rest: strides are products of it.
    CHECK_THROWS_AS(element_count({0, 1 << 30, 1 << 30, 2}), ShapeError);
    CHECK_THROWS_AS(element_count({std::numeric_limits<std::int64_t>::max()}), ShapeError);
  }

  TEST_CASE("contiguous strides count from the right; empty axes count as one") {
    CHECK(contiguous_strides({}) == Dims{});
    CHECK(contiguous_strides({2, 3, 4}) == Dims{12, 4, 1});
    CHECK(contiguous_strides({2, 0, 4}) == Dims{4, 4, 1});
    CHECK(contiguous({2, 3}) == Layout{{2, 3}, {3, 1}, 0});
  }

  TEST_CASE("is_contiguous ignores the strides of unit axes and of empty views") {
    CHECK(is_contiguous({{}, {}, 0}));
    CHECK(is_contiguous({{2, 3}, {3, 1}, 0}));
    CHECK(is_contiguous({{2, 1, 3}, {3, 99, 1}, 0}));
    CHECK(is_contiguous({{2, 0}, {7, 7}, 0}));
    CHECK_FALSE(is_contiguous({{2, 3}, {1, 2}, 0}));
    CHECK_FALSE(is_contiguous({{2, 3}, {4, 1}, 0}));
    CHECK_FALSE(is_contiguous({{3}, {-1}, 0}));
    CHECK_FALSE(is_contiguous({{3}, {0}, 0}));
  }

  TEST_CASE("touched and may_self_overlap agree with all offsets") {
    for (const std::int64_t s0 : {-4, -1, 0, 1, 3, 12}) {
      for (const std::int64_t s1 : {-3, 0, 1, 2, 4}) {
        for (const std::int64_t n1 : {1, 2, 4}) {
          const Layout layout{{3, n1}, {s0, s1}, 5};
          std::vector<std::int64_t> all = offsets(layout);
          std::sort(all.begin(), all.end());
          const Range range = touched(layout);
          CHECK(range.first == all.front());
          CHECK(range.last == all.back());
          if (std::adjacent_find(all.begin(), all.end()) != all.end())
            CHECK(may_self_overlap(layout));
        }
      }
    }
    CHECK(touched({{2, 0}, {1, 1}, 3}).last == -1);
    CHECK_FALSE(may_self_overlap({{2, 3}, {3, 1}, 0}));
    CHECK_FALSE(may_self_overlap({{2, 3}, {-1, 2}, 0}));
    CHECK_FALSE(may_self_overlap({{0, 3}, {0, 0}, 0}));
    CHECK_FALSE(may_self_overlap({{1, 3}, {0, 1}, 0}));
  }

  TEST_CASE("permuted moves sizes with their strides") {
    CHECK(permuted({{2, 3, 4}, {12, 4, 1}, 6}, {2, 0, 1}) == Layout{{4, 2, 3}, {1, 12, 4}, 6});
  }

  TEST_CASE("shapes print as Python tuples") {
    CHECK(to_string(Dims{}) == "()");
    CHECK(to_string(Dims{4}) == "(4,)");
    CHECK(to_string(Dims{2, -3}) == "(2, -3)");
  }
}
