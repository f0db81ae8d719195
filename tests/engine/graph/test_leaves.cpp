// SPDX-License-Identifier: Apache-2.0
// Who keeps leaves alive: expressions do, plans do not. Outputs that are leaves, or lie across
// them.
#include <doctest/doctest.h>

#include <memory>
#include <thread>
#include <utility>
#include <vector>

#include "../../../engine/graph/compiled.h"
#include "../../../engine/tensor/borrow.h"
#include "graph_words.h"

using namespace einkern;
using namespace einkern::test;

namespace {

using Owner = std::shared_ptr<std::vector<double>>;

/// 1, 2, 3, ... in memory whose owner counts its users.
Owner owner_of(std::size_t count) {
  auto owner = std::make_shared<std::vector<double>>();
  for (std::size_t i = 0; i < count; ++i) owner->push_back(static_cast<double>(i + 1));
  return owner;
}
Tensor lent(const Owner& owner) {
  return borrow(owner->data(), {static_cast<std::int64_t>(owner->size())}, {1}, owner);
}

/// The tensor that it is made of is gone when it returns.
Expr made_elsewhere(double value) {
  const Tensor x = full({5}, value, f64);
  const Expr leaf = x;
  return mul(leaf, add(leaf, 1));
}

}  // namespace

TEST_SUITE("graph") {
  TEST_CASE("an expression outlives its tensors, wherever its handle goes") {
    const auto check = [](const Expr& expr, double value) {
      CHECK(Tensor(expr).to_vector<double>() == std::vector<double>(5, value));
    };
    check(made_elsewhere(2), 6);
    Expr expr = made_elsewhere(3);
    const Expr copy = expr;
    const Expr moved = std::move(expr);
    expr = made_elsewhere(4);
    check(copy, 12);
    check(moved, 12);
    check(expr, 20);
    expr = eval(expr);  // replaces what it was evaluated from
    expr = Tensor(add(expr, expr));
    check(expr, 40);
    // A list that moves its elements while it grows.
    std::vector<Expr> many;
    for (int i = 0; i < 40; ++i) {
      many.push_back(made_elsewhere(i));
      many.push_back(add(many.front(), many.back()));
    }
    const std::vector<Tensor> values = eval(many);
    REQUIRE(values.size() == 80);
    for (std::size_t i = 0; i < 40; ++i) {
      CHECK(values[2 * i](4).item<double>() == static_cast<double>(i * (i + 1)));
      CHECK(values[2 * i + 1](0).item<double>() == static_cast<double>(i * (i + 1)));
    }
    // Results live on their own.
    Tensor kept;
    {
      const Expr last = made_elsewhere(6);
      kept = eval({last, last})[1];
    }
    CHECK(kept.to_vector<double>() == std::vector<double>(5, 42));
  }

  TEST_CASE("memory is released with the last expression: no plan holds a tensor") {
    const Owner owner = owner_of(13);
    {
      const Tensor x = lent(owner);
      CHECK(Tensor(einsum("i,i->", x, x)).item<double>() == 819);
      const Tensor out = zeros({13}, f64);
      eval_into(out, add(x, x));
      einsum_into(out, "i->i", {x}, {.beta = 1});
      CHECK(out(12).item<double>() == 39);
      CHECK(owner.use_count() == 2);
    }
    CHECK(owner.use_count() == 1);
    {
      Expr sum = add(lent(owner), 1);
      CHECK(owner.use_count() == 2);
      const std::vector<Tensor> values = eval({sum, mul(sum, sum)});
      CHECK(values[1](0).item<double>() == 4);
      CHECK(owner.use_count() == 2);
      sum = 1;
      CHECK(owner.use_count() == 1);
      CHECK(values[0](12).item<double>() == 14);
    }
    // What a compiled plan is given is not kept, what is part of it is, until it goes.
    {
      const Owner part = owner_of(13);
      const Expr x = input(f64, {13});
      const Compiled f = compile({x}, {add(x, lent(part))});
      CHECK(f({lent(owner)})[0](12).item<double>() == 26);
      CHECK(owner.use_count() == 1);
      CHECK(part.use_count() > 1);
      CHECK(f({lent(owner)})[0](0).item<double>() == 2);
    }
    CHECK(owner.use_count() == 1);
    CHECK_THROWS_AS(einsum("i,j->ij", {lent(owner)}), ShapeError);
    CHECK_THROWS_AS(eval(add(lent(owner), input(f64, {13}))), ValueError);
    CHECK(owner.use_count() == 1);
  }

  TEST_CASE("threads evaluate one expression while others let go of it") {
    const Owner owner = owner_of(7);
    std::vector<std::thread> threads;
    std::vector<double> first(4);
    {
      const Expr shared = mul(add(lent(owner), 1), lent(owner));
      for (std::size_t t = 0; t < 4; ++t) {
        threads.emplace_back([&first, t, mine = shared]() mutable {
          for (int round = 0; round < 50; ++round) {
            const Expr more = add(mine, mine);
            first[t] = Tensor(more)(6).item<double>();
          }
          mine = 0;
        });
      }
    }
    for (std::thread& thread : threads) thread.join();
    CHECK(first == std::vector<double>(4, 112));
    CHECK(owner.use_count() == 1);
  }

  TEST_CASE("outputs at any distance from the operands that they lie across") {
    // out[i] = x[i] + x[3 - i] y[i] in one memory: every place of out, either way round.
    constexpr std::int64_t kSize = 16;
    for (std::int64_t at = 0; at + 4 <= kSize; ++at) {
      for (const bool backwards : {false, true}) {
        CAPTURE(at);
        CAPTURE(backwards);
        const Tensor memory = counted({kSize});
        const Tensor x = memory.slice(0, 4, 8), y = memory.slice(0, 6, 14, 2);
        const Expr value = add(x, mul(x.slice(0, {}, {}, -1), y));
        const std::vector<double> want = Tensor(value).to_vector<double>();
        const Tensor place = memory.slice(0, at, at + 4);
        const Tensor out = backwards ? place.slice(0, {}, {}, -1) : place;
        std::vector<double> all = memory.to_vector<double>();
        for (std::int64_t i = 0; i < 4; ++i) {
          all[static_cast<std::size_t>(backwards ? at + 3 - i : at + i)] =
              want[static_cast<std::size_t>(i)];
        }
        eval_into(out, value);
        CHECK(memory.to_vector<double>() == all);
      }
    }
  }

  TEST_CASE("a contiguous output that is an operand, an alias of one, or read through beta") {
    const std::vector<double> square{7, 10, 15, 22};
    const auto fresh = [] { return tensor<double>({1, 2, 3, 4}, {2, 2}); };
    const Tensor a = fresh();
    einsum_into(a, "ij,jk->ik", {a, a});
    CHECK(a.to_vector<double>() == square);
    const Tensor b = fresh();
    einsum_into(b, "ij,jk->ik", {b, b}, {.alpha = 2, .beta = -1});
    CHECK(b.to_vector<double>() == std::vector<double>{13, 18, 27, 40});
    // The same memory lent twice shares no storage.
    std::vector<double> memory{1, 2, 3, 4};
    const Tensor c = borrow(memory.data(), {2, 2}, {2, 1}),
                 d = borrow(memory.data(), {2, 2}, {2, 1});
    einsum_into(c, "ij,jk->ik", {d, c});
    CHECK(memory == square);
    // Right, left and across the boundary of an operand: only what is shared forces a copy.
    const Tensor row = counted({6});
    einsum_into(row.slice(0, 3, {}), "i->i", {row.slice(0, 0, 3)});
    CHECK(row.to_vector<double>() == std::vector<double>{0, 1, 2, 0, 1, 2});
    einsum_into(row.slice(0, 1, 4), "i->i", {row.slice(0, 0, 3)});
    CHECK(row.to_vector<double>() == std::vector<double>{0, 0, 1, 2, 1, 2});
    // An output of no elements is written nowhere.
    einsum_into(row.slice(0, 2, 2), "i->i", {row.slice(0, 3, 3)});
    CHECK(row.to_vector<double>() == std::vector<double>{0, 0, 1, 2, 1, 2});
    // Of a compiled plan, with outputs that lie across each other too.
    const Expr x = input(f64, {3});
    const Compiled f = compile({x}, {add(x, 1), mul(x, 2)});
    const Tensor line = counted({5});
    CHECK(line.slice(0, 2, {}).is_contiguous());
    f.into({line.slice(0, 0, 3), line.slice(0, 2, {})}, {line.slice(0, 1, 4)});
    CHECK(line.to_vector<double>() == std::vector<double>{2, 3, 2, 4, 6});
  }
}
