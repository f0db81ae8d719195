// SPDX-License-Identifier: Apache-2.0
// Contraction paths: their text, their checks, and the searches against all orders there are.
#include <doctest/doctest.h>

#include <algorithm>
#include <random>
#include <set>

#include "../../support/random_equation.h"
#include "../../support/sanitizer.h"
#include "plans.h"

namespace einkern::test {
namespace {

using LabelSet = std::set<LabelId>;

/// Products and intermediate elements of an order.
struct Cost {
  double flops = 0, memory = 0;
  bool operator<(const Cost& other) const {
    return flops != other.flops ? flops < other.flops : memory < other.memory;
  }
};

double product(const Spec& spec, const LabelSet& labels) {
  double size = 1;
  for (const LabelId label : labels) {
    size *= static_cast<double>(spec.sizes[static_cast<std::size_t>(label)]);
  }
  return size;
}

/// Operands as sets of labels: axes of size 1 do not count, nor do labels summed before anything
/// else.
std::vector<LabelSet> label_sets(const Spec& spec) {
  std::vector<LabelSet> sets(spec.inputs.size());
  std::vector<int> holders(spec.sizes.size());
  for (std::size_t p = 0; p < sets.size(); ++p) {
    for (std::size_t axis = 0; axis < spec.inputs[p].size(); ++axis) {
      if (spec.shapes[p][axis] != 1) sets[p].insert(spec.inputs[p][axis]);
    }
    for (const LabelId label : sets[p]) ++holders[static_cast<std::size_t>(label)];
  }
  for (LabelSet& set : sets) {
    std::erase_if(set, [&](LabelId label) {
      return holders[static_cast<std::size_t>(label)] == 1 &&
             std::count(spec.output.begin(), spec.output.end(), label) == 0;
    });
  }
  return sets;
}

/// Contracts two operands of the list as a path step does and returns what it cost.
Cost contract(const Spec& spec, std::vector<LabelSet>& list, std::size_t i, std::size_t j) {
  LabelSet all = list[i];
  all.insert(list[j].begin(), list[j].end());
  list.erase(list.begin() + static_cast<std::ptrdiff_t>(std::max(i, j)));
  list.erase(list.begin() + static_cast<std::ptrdiff_t>(std::min(i, j)));
  LabelSet kept(spec.output.begin(), spec.output.end());
  for (const LabelSet& other : list) kept.insert(other.begin(), other.end());
  const double flops = product(spec, all);
  std::erase_if(all, [&](LabelId label) { return !kept.contains(label); });
  list.push_back(all);
  return {flops, product(spec, all)};
}

Cost best_of_all(const Spec& spec, const std::vector<LabelSet>& list) {
  if (list.size() == 1) return {};
  Cost best{1e300, 1e300};
  for (std::size_t i = 0; i < list.size(); ++i) {
    for (std::size_t j = i + 1; j < list.size(); ++j) {
      std::vector<LabelSet> next = list;
      const Cost step = contract(spec, next, i, j);
      const Cost rest = best_of_all(spec, next);
      best = std::min(best, Cost{step.flops + rest.flops, step.memory + rest.memory});
    }
  }
  return best;
}

Cost cost_of(const Spec& spec, const Path& path) {
  std::vector<LabelSet> list = label_sets(spec);
  Cost cost;
  for (const std::vector<std::int32_t>& step : path) {
    REQUIRE(step.size() == 2);
    const Cost one =
        contract(spec, list, static_cast<std::size_t>(step[0]), static_cast<std::size_t>(step[1]));
    cost.flops += one.flops;
    cost.memory += one.memory;
  }
  REQUIRE(list.size() == 1);
  return cost;
}

/// A tensor network of `operands` terms: every label is shared by two of them, or more, or in the
/// output.
Spec random_network(std::mt19937& random, std::size_t operands, std::size_t labels) {
  Spec spec;
  spec.inputs.resize(operands);
  for (std::size_t l = 0; l < labels; ++l) {
    const auto label = static_cast<LabelId>(l);
    spec.sizes.push_back(2 + static_cast<std::int64_t>(random() % 2));
    const std::size_t holders = 1 + random() % 3;
    std::set<std::size_t> picked;
    for (std::size_t h = 0; h < holders; ++h) picked.insert(random() % operands);
    for (const std::size_t p : picked) spec.inputs[p].push_back(label);
    if (random() % 4 == 0) spec.output.push_back(label);
  }
  for (const std::vector<LabelId>& input : spec.inputs) {
    Shape& shape = spec.shapes.emplace_back();
    for (const LabelId label : input) shape.push_back(spec.sizes[static_cast<std::size_t>(label)]);
  }
  return spec;
}

PathChoice given(Path path) { return {PathMethod::given, std::move(path)}; }

}  // namespace

TEST_SUITE("plan") {
  TEST_CASE("a path is read and printed") {
    CHECK(parse_path("auto") == PathChoice{});
    CHECK(parse_path("optimal") == PathChoice{PathMethod::optimal, {}});
    CHECK(parse_path("greedy") == PathChoice{PathMethod::greedy, {}});
    CHECK(parse_path("0") == given({{0}}));
    CHECK(parse_path("0,2;1,0;0,1") == given({{0, 2}, {1, 0}, {0, 1}}));
    CHECK(parse_path("10,2,3") == given({{10, 2, 3}}));
    CHECK(to_string(Path{}) == "");
    CHECK(to_string(Path{{0, 2}, {1, 0}, {12}}) == "0,2;1,0;12");
  }

  TEST_CASE("a path that is none is an error") {
    for (const char* text : {"", "best", "0,", "0;", ";0", "0 1", "-1,0", "0,1;", "99999999999"}) {
      CAPTURE(text);
      const std::string message = "path: unknown path '" + std::string(text) +
                                  "'; choices: auto, optimal, greedy, or positions such as 0,1;0,1";
      CHECK_THROWS_WITH_AS(parse_path(text), message.c_str(), ValueError);
    }
  }

  TEST_CASE("a given path is checked") {
    const Spec spec = make_spec("ab,bc,cd->ad", {{2, 3}, {3, 4}, {4, 5}});
    CHECK(find_path(spec, given({{0, 1}, {0, 1}})) == Path{{0, 1}, {0, 1}});
    CHECK(find_path(spec, given({{2}, {2, 0, 1}})) == Path{{2}, {2, 0, 1}});
    CHECK_THROWS_WITH_AS(find_path(spec, given({{0, 1}, {0, 2}})),
                         "einsum: step 1 of the path names position 2 of a list of 2 operands",
                         ValueError);
    CHECK_THROWS_WITH_AS(find_path(spec, given({{0, -1}})),
                         "einsum: step 0 of the path names position -1 of a list of 3 operands",
                         ValueError);
    CHECK_THROWS_WITH_AS(find_path(spec, given({{0, 1, 2}, {0, 1}})),
                         "einsum: step 1 of the path names position 1 of a list of 1 operand",
                         ValueError);
    CHECK_THROWS_WITH_AS(find_path(spec, given({{1, 0, 1}})),
                         "einsum: step 0 of the path names position 1 twice", ValueError);
    CHECK_THROWS_WITH_AS(find_path(spec, given({{0, 1}, {}})),
                         "einsum: step 1 of the path is empty", ValueError);
    CHECK_THROWS_WITH_AS(find_path(spec, given({{0, 1}})),
                         "einsum: the path leaves 2 operands of 3 uncontracted", ValueError);
    CHECK_THROWS_WITH_AS(find_path(spec, given({})),
                         "einsum: the path leaves 3 operands of 3 uncontracted", ValueError);
  }

  TEST_CASE("a given path is checked even when there is nothing to compute") {
    CHECK_THROWS_WITH_AS(plan_of("ab,bc->ac", {{2, 0}, {0, 3}}, f32, given({{0}})),
                         "einsum: the path leaves 2 operands of 2 uncontracted", ValueError);
  }

  TEST_CASE("the optimal path of known contractions") {
    const PathChoice optimal{PathMethod::optimal, {}};
    CHECK(find_path(make_spec("->", {{}}), optimal) == Path{{0}});
    CHECK(find_path(make_spec("ab,bc->ac", {{2, 3}, {3, 4}}), optimal) == Path{{0, 1}});
    // Ties: from left to right.
    CHECK(find_path(make_spec("a,a,a->a", {{2}, {2}, {2}}), optimal) == Path{{0, 1}, {0, 1}});
    CHECK(find_path(make_spec("ab,bc,cd->ad", {{5, 5}, {5, 5}, {5, 5}}), optimal) ==
          Path{{0, 1}, {0, 1}});
    // 10 x 100 x 5 + 10 x 5 x 50 = 7,500 products against 100 x 5 x 50 + 10 x 100 x 50 = 75,000.
    CHECK(find_path(make_spec("ab,bc,cd->ad", {{10, 100}, {100, 5}, {5, 50}}), optimal) ==
          Path{{0, 1}, {0, 1}});
    CHECK(find_path(make_spec("ab,bc,cd->ad", {{50, 5}, {5, 100}, {100, 10}}), optimal) ==
          Path{{1, 2}, {0, 1}});
    // 2 x 3 x 6 + 2 x 6 x 3 products either way, but bd has 9 elements where ac has 12.
    CHECK(find_path(make_spec("ab,bc,cd->ad", {{2, 3}, {3, 6}, {6, 3}}), optimal) ==
          Path{{1, 2}, {0, 1}});
    // Two that share nothing first: 2 x 3 + 2 x 3 x 50 = 306 products against 300 + 3 x 50 = 450.
    CHECK(find_path(make_spec("abx,a,b->x", {{2, 3, 50}, {2}, {3}}), optimal) ==
          Path{{1, 2}, {0, 1}});
  }

  TEST_CASE("no order beats the optimal one") {
    std::mt19937 random(5);
    for (int i = 0; i < fewer_if_sanitized(300); ++i) {
      const std::size_t operands = 2 + random() % 5;
      const Spec spec = random_network(random, operands, 1 + random() % 8);
      CAPTURE(spec.str());
      const Cost best = best_of_all(spec, label_sets(spec));
      const Cost found = cost_of(spec, find_path(spec, {PathMethod::optimal, {}}));
      CHECK(found.flops == best.flops);
      CHECK(found.memory == best.memory);
      const Cost greedy = cost_of(spec, find_path(spec, {PathMethod::greedy, {}}));
      CHECK(greedy.flops >= best.flops);
    }
  }

  TEST_CASE("the optimal search has a bound, and the automatic one never reaches it") {
    const std::vector<std::vector<std::int64_t>> vectors(17, {0});
    const Spec spec = make_spec(vectors, std::vector<std::int64_t>{}, std::vector<Shape>(17, {3}));
    CHECK_THROWS_WITH_AS(find_path(spec, {PathMethod::optimal, {}}),
                         "einsum: the optimal path is searched for at most 16 operands, not 17; "
                         "use greedy or give a path",
                         ValueError);
    CHECK(cost_of(spec, find_path(spec, {})).flops == 16 * 3);
  }

  TEST_CASE("greedy takes the step that shrinks memory most") {
    const PathChoice greedy{PathMethod::greedy, {}};
    // cd,de gives 4 elements of 80; ab,bc gives 50 of 15.
    CHECK(find_path(make_spec("ab,bc,cd,de->ae", {{5, 1}, {1, 10}, {10, 20}, {20, 4}}), greedy) ==
          Path{{2, 3}, {1, 2}, {0, 1}});
    // What shares nothing comes last, the smallest first.
    CHECK(find_path(make_spec("a,b,cd,dc->ab", {{9}, {2}, {3, 4}, {4, 3}}), greedy) ==
          Path{{2, 3}, {1, 2}, {0, 1}});
  }

  TEST_CASE("greedy orders of large networks are valid and no worse than from left to right") {
    std::mt19937 random(6);
    for (int i = 0; i < 20; ++i) {
      const Spec spec = random_network(random, 40, 45);
      const Cost found = cost_of(spec, find_path(spec, {}));
      Path in_turn{{0, 1}};
      while (in_turn.size() < 39) {
        in_turn.push_back({0, static_cast<std::int32_t>(39 - in_turn.size())});
      }
      CHECK(found.flops <= cost_of(spec, in_turn).flops);
    }
  }

  TEST_CASE("52 vectors of 52 labels") {
    std::vector<std::vector<std::int64_t>> inputs;
    for (std::int64_t l = 0; l < 52; ++l) inputs.push_back({l});
    const Spec spec = make_spec(inputs, std::vector<std::int64_t>{}, std::vector<Shape>(52, {2}));
    CHECK(cost_of(spec, find_path(spec, {})).flops == 51);  // each is summed to a number first
  }

  TEST_CASE("65,535 operands are planned in a moment") {
    constexpr std::int64_t kMost = fewer_if_sanitized(65535);
    const std::vector<Shape> shapes(kMost, Shape{2, 2});
    std::vector<std::vector<std::int64_t>> chain, shared;
    for (std::int64_t p = 0; p < kMost; ++p) {
      chain.push_back({p, p + 1});
      shared.push_back({0, 1});
    }
    const Spec chained = make_spec(chain, std::vector<std::int64_t>{0, kMost}, shapes);
    CHECK(find_path(chained, {}).size() == kMost - 1);
    const plan::Plan plan = plan_of(chained);
    CHECK(plan.steps.size() == kMost - 1);
    CHECK(broken_rule(plan) == "");
    const Spec elementwise = make_spec(shared, std::vector<std::int64_t>{0, 1}, shapes);
    CHECK(plan_of(elementwise).steps.size() == kMost - 1);
  }
}

}  // namespace einkern::test
