// SPDX-License-Identifier: Apache-2.0
// Checks the short vector on both sides of its inline capacity.
#include <doctest/doctest.h>

#include <cstdint>
#include <forward_list>
#include <span>
#include <utility>
#include <vector>

#include "../../../engine/base/small_vector.h"

using namespace einkern;
using Short = SmallVector<std::int64_t, 3>;

namespace {

Short counting(std::size_t size) {
  Short v;
  for (std::size_t i = 0; i < size; ++i) v.push_back(static_cast<std::int64_t>(i));
  return v;
}

std::vector<std::int64_t> list(const Short& v) { return {v.begin(), v.end()}; }

bool is_inline(const Short& v) {
  const auto* const object = reinterpret_cast<const std::byte*>(&v);
  const auto* const data = reinterpret_cast<const std::byte*>(v.data());
  return data >= object && data < object + sizeof v;
}

}  // namespace

TEST_SUITE("base") {
  TEST_CASE("braces list elements, parentheses count them") {
    CHECK(list(Short{4}) == std::vector<std::int64_t>{4});
    CHECK(list(Short(4)) == std::vector<std::int64_t>{0, 0, 0, 0});
    CHECK(list(Short(2, 7)) == std::vector<std::int64_t>{7, 7});
    CHECK(Short{}.empty());
    CHECK(list(Short(std::vector<std::int64_t>{1, 2, 3, 4})) ==
          std::vector<std::int64_t>{1, 2, 3, 4});
    const std::forward_list<int> chain{3, 2, 1};
    CHECK(list(Short(chain.begin(), chain.end())) == std::vector<std::int64_t>{3, 2, 1});
  }

  TEST_CASE("growth beyond the inline capacity keeps the elements") {
    for (std::size_t size : {0u, 1u, 2u, 3u, 4u, 5u, 6u, 7u, 100u}) {
      const Short v = counting(size);
      CAPTURE(size);
      REQUIRE(v.size() == size);
      CHECK(is_inline(v) == (size <= 3));
      for (std::size_t i = 0; i < size; ++i) CHECK(v[i] == static_cast<std::int64_t>(i));
      if (size > 0) CHECK((v.front() == 0 && v.back() == static_cast<std::int64_t>(size) - 1));
    }
  }

  TEST_CASE("copies are independent and moves leave an empty vector") {
    for (std::size_t size : {0u, 2u, 3u, 9u}) {
      CAPTURE(size);
      Short source = counting(size);
      Short copy = source;
      CHECK(copy == source);
      copy.push_back(-1);
      CHECK(source.size() == size);
      Short moved = std::move(source);
      CHECK(moved == counting(size));
      CHECK(source.empty());  // NOLINT(bugprone-use-after-move): the state after a move is promised
      source.push_back(5);
      CHECK(list(source) == std::vector<std::int64_t>{5});
    }
  }

  TEST_CASE("assignment between every pair of sizes, and to itself") {
    for (std::size_t from : {0u, 2u, 9u}) {
      for (std::size_t to : {0u, 3u, 12u}) {
        Short target = counting(to);
        const Short source = counting(from);
        target = source;
        CHECK(target == source);
        Short moved = counting(to);
        moved = counting(from);
        CHECK(moved == source);
      }
      Short self = counting(from);
      Short& alias = self;
      self = alias;
      CHECK(self == counting(from));
      self = std::move(alias);
      CHECK(self == counting(from));
    }
  }

  TEST_CASE("elements of the vector itself may be pushed and inserted while it grows") {
    Short v{1, 2, 3};
    v.push_back(v[0]);
    CHECK(list(v) == std::vector<std::int64_t>{1, 2, 3, 1});
    Short w{1, 2, 3};
    w.insert(0, w[2]);
    w.insert(4, 9);
    w.insert(2, 8);
    CHECK(list(w) == std::vector<std::int64_t>{3, 1, 8, 2, 3, 9});
    w.erase(0);
    w.erase(4);
    w.erase(1);
    CHECK(list(w) == std::vector<std::int64_t>{1, 2, 3});
  }

  TEST_CASE("ranges are inserted anywhere, past the inline elements too") {
    const std::vector<std::int64_t> more{7, 8, 9};
    for (const std::size_t at : {0u, 1u, 2u}) {
      Short v{1, 2};
      std::vector<std::int64_t> want{1, 2};
      v.insert(v.begin() + at, more.begin(), more.end());
      want.insert(want.begin() + static_cast<std::ptrdiff_t>(at), more.begin(), more.end());
      CHECK(list(v) == want);
      CHECK(std::vector<std::int64_t>(v.rbegin(), v.rend()) ==
            std::vector<std::int64_t>(want.rbegin(), want.rend()));
    }
  }

  TEST_CASE("resize fills, pop_back and clear shorten, equality looks at the elements") {
    Short v{0};
    v.resize(5, 7);
    CHECK(list(v) == std::vector<std::int64_t>{0, 7, 7, 7, 7});
    for (const std::size_t size : {4u, 2u, 2u, 0u}) {
      v.resize(size);
      CHECK(v.size() == size);
    }
    v.push_back(1);
    v.push_back(2);
    v.pop_back();
    CHECK(v == Short{1});
    CHECK_FALSE(v == Short{1, 1});
    CHECK_FALSE(v == Short{2});
    v.clear();
    CHECK(v.empty());
    CHECK(std::span<const std::int64_t>(v).empty());
  }
}
