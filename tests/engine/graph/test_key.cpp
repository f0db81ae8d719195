// SPDX-License-Identifier: Apache-2.0
// Keys: different sequences differ, at any length. The cache of plans: bounded, the newest kept.
#include <doctest/doctest.h>

#include <limits>
#include <set>
#include <string>
#include <utility>

#include "../../../engine/graph/collect.h"
#include "../../../engine/graph/expr.h"
#include "../../../engine/graph/key.h"
#include "../../../engine/graph/plan_cache.h"
#include "../../../engine/tensor/create.h"

using namespace einkern::graph;

namespace {

std::string key_of(const std::vector<std::int64_t>& numbers) {
  Key key;
  for (const std::int64_t number : numbers) key.put(number);
  return std::string(key.view());
}

/// Of the graph of these roots.
std::string structure_of(const std::vector<einkern::Expr>& roots) {
  std::vector<NodePtr> nodes;
  for (const einkern::Expr& root : roots) nodes.push_back(root.node());
  return std::string(collect(nodes).key.view());
}

/// How many bytes stand for a number.
std::size_t bytes_of(std::int64_t number) { return key_of({number}).size(); }

}  // namespace

TEST_SUITE("graph") {
  TEST_CASE("numbers of a key: small ones take a byte, no two sequences are the same bytes") {
    CHECK(bytes_of(0) == 1);
    CHECK(bytes_of(63) == 1);
    CHECK(bytes_of(-64) == 1);
    CHECK(bytes_of(64) == 2);
    CHECK(bytes_of(-65) == 2);
    CHECK(bytes_of(std::numeric_limits<std::int64_t>::max()) == 10);
    CHECK(bytes_of(std::numeric_limits<std::int64_t>::min()) == 10);
    const std::vector<std::int64_t> some{0,
                                         1,
                                         -1,
                                         63,
                                         64,
                                         -64,
                                         -65,
                                         127,
                                         128,
                                         255,
                                         8191,
                                         8192,
                                         -8192,
                                         -8193,
                                         1 << 20,
                                         -(1 << 20),
                                         std::int64_t{1} << 40,
                                         std::numeric_limits<std::int64_t>::max(),
                                         std::numeric_limits<std::int64_t>::min()};
    std::set<std::string> keys;
    for (const std::int64_t a : some) {
      keys.insert(key_of({a}));
      for (const std::int64_t b : some) keys.insert(key_of({a, b}));
    }
    CHECK(keys.size() == some.size() * (some.size() + 1));
  }

  TEST_CASE("texts of a key carry their length, lists theirs") {
    const auto texts = [](std::string_view a, std::string_view b) {
      Key key;
      key.put(a);
      key.put(b);
      return std::string(key.view());
    };
    CHECK(texts("ab", "c") != texts("a", "bc"));
    CHECK(texts("", "abc") != texts("abc", ""));
    const auto lists = [](const std::vector<std::vector<std::int32_t>>& values) {
      Key key;
      key.put(values);
      return std::string(key.view());
    };
    CHECK(lists({{1, 2}, {3}}) != lists({{1}, {2, 3}}));
    CHECK(lists({{1, 2, 3}}) != lists({{1, 2, 3}, {}}));
  }

  TEST_CASE("a list of roots is not the node that its numbers would describe") {
    using namespace einkern;
    std::vector<Expr> x;
    for (int i = 0; i < 4; ++i) x.emplace_back(zeros({3}));
    // As a root, a scalar i64 gives the number that begins a fifth leaf, and so on.
    const Expr seven = 7;
    const Expr fifth = zeros({6}, boolean).slice(0, {}, {}, -5);
    REQUIRE(fifth.shape() == Shape{2});
    CHECK(structure_of({seven, x[0], x[1], seven, x[0], x[1], x[2], x[3]}) !=
          structure_of({x[0], x[1], x[2], x[3], fifth}));
    CHECK(structure_of({x[0]}) != structure_of({x[0], x[0]}));
    CHECK(structure_of({x[0], x[1]}) == structure_of({x[2], x[3]}));
  }

  TEST_CASE("a key outgrows its object, is cut and moved") {
    Key key;
    std::string expected;
    for (int i = 0; i < 3000; ++i) {
      const std::int64_t number = i % 7 == 0 ? std::int64_t{1} << (i % 60) : i % 50;
      key.put(number);
      expected += key_of({number});
      REQUIRE(key.view() == expected);
    }
    const std::string text(5000, 'x');
    const std::size_t before = key.size();
    key.put(text);
    CHECK(key.view().substr(key.size() - text.size()) == text);
    key.truncate(before);
    CHECK(key.view() == expected);
    const Key moved(std::move(key));
    CHECK(moved.view() == expected);

    Key small;
    small.put(std::int64_t{5});
    Key taken(std::move(small));
    CHECK(taken.view() == key_of({5}));
    taken.put(std::int64_t{300});
    CHECK(taken.view() == key_of({5, 300}));
  }

  TEST_CASE("a full cache forgets what was used longest ago") {
    PlanCache<int> cache(2);
    CHECK(cache.find("a") == nullptr);
    cache.insert("a", std::make_shared<const int>(1));
    cache.insert("b", std::make_shared<const int>(2));
    CHECK(*cache.find("a") == 1);
    cache.insert("c", std::make_shared<const int>(3));
    CHECK(cache.size() == 2);
    CHECK(cache.find("b") == nullptr);
    CHECK(*cache.find("a") == 1);
    CHECK(*cache.find("c") == 3);
    CHECK(*cache.insert("c", std::make_shared<const int>(4)) == 3);  // the first to come stays
  }
}
