// SPDX-License-Identifier: Apache-2.0
// Eager calls: which of them share a plan, and that none gets the plan of another.
#include <doctest/doctest.h>

#include <atomic>
#include <string>
#include <thread>
#include <vector>

#include "graph_words.h"

using namespace einkern;
using namespace einkern::test;

namespace {

/// sum_j a[i, j] b[j, k] of f64, element by element.
std::vector<double> product(const Tensor& a, const Tensor& b) {
  std::vector<double> sums;
  for (std::int64_t i = 0; i < a.shape()[0]; ++i) {
    for (std::int64_t k = 0; k < b.shape()[1]; ++k) {
      double sum = 0;
      for (std::int64_t j = 0; j < a.shape()[1]; ++j) {
        sum += a(i, j).item<double>() * b(j, k).item<double>();
      }
      sums.push_back(sum);
    }
  }
  return sums;
}

/// How many plans this makes.
template <class Call>
std::int64_t plans_of(const Call& call) {
  const std::int64_t before = plans_made();
  call();
  return plans_made() - before;
}

}  // namespace

// Sizes occur in one test case only: plans are shared by the process.
TEST_SUITE("graph") {
  TEST_CASE("an eager einsum plans once for its equation, shapes, strides and dtypes") {
    const Tensor a = counted({3, 7}), b = counted({7, 5});
    const auto multiply = [](const Tensor& x, const Tensor& y) {
      const Tensor c = einsum("ij,jk->ik", x, y);
      CHECK(c.is_contiguous());
      CHECK(c.labels()[0] == "i");
      CHECK(c.labels()[1] == "k");
      CHECK(c.astype(f64).to_vector<double>() == product(x.astype(f64), y.astype(f64)));
    };
    const auto check = [&](const Tensor& x, const Tensor& y) {
      CHECK(plans_of([&] { multiply(x, y); }) == 1);
      CHECK(plans_of([&] { multiply(x, y); }) == 0);
    };
    check(a, b);
    // Other tensors of the same layouts, labels or none.
    const Tensor more = add(a, 1);
    CHECK(plans_of([&] { multiply(more, b.copy()); }) == 0);
    CHECK(plans_of([&] { multiply(a.with_labels(Labels({"x", "y"})), b); }) == 0);
    // Other strides.
    const Tensor turned = counted({5, 7}).permute({1, 0});
    check(a, turned);
    check(counted({7, 3}).permute({1, 0}), b);
    check(counted({6, 7}).slice(0, {}, {}, 2), b);
    check(a.slice(1, {}, {}, -1), b);
    check(counted({7}).broadcast({3, 7}), b);
    // Other dtypes and sizes.
    check(a.astype(f32), b.astype(f32));
    check(a.astype(f32), b);
    check(a.astype(i64), b.astype(i64));
    check(counted({3, 9}), counted({9, 5}));
    // The first is still there.
    CHECK(plans_of([&] { multiply(a, b); }) == 0);
  }

  TEST_CASE("one tensor twice is not two tensors") {
    const Tensor a = counted({11, 11}), b = add(counted({11, 11}), 3);
    const auto multiply = [](const Tensor& x, const Tensor& y) {
      const Tensor c = einsum("ij,jk->ik", x, y);
      CHECK(c.to_vector<double>() == product(x, y));
    };
    multiply(a, a);
    multiply(a, b);
    multiply(b, a);
    multiply(b, b);
    CHECK(plans_of([&] {
            multiply(a, a);
            multiply(a, b);
          }) == 0);
    // A view that begins where the tensor does, with its strides, is not the tensor.
    const Tensor c = einsum("ij,jk->ik", a.slice(0, 0, 4), a);
    CHECK(c.to_vector<double>() == product(a.slice(0, 0, 4), a));
  }

  TEST_CASE("equations by what they say: blanks do not count, names and order do") {
    const Tensor a = counted({13, 2}), b = counted({2, 13});
    const auto value = [&](const char* equation) { return Tensor(einsum(equation, a, b)); };
    const std::vector<double> expected = product(a, b);
    CHECK(value("ij,jk->ik").to_vector<double>() == expected);
    CHECK(plans_of([&] { CHECK(value(" ij , jk -> ik ").to_vector<double>() == expected); }) == 0);
    const Tensor renamed = value("ab,bc->ac");
    CHECK(renamed.to_vector<double>() == expected);
    CHECK(renamed.labels()[1] == "c");
    const Tensor turned = value("ij,jk->ki");
    CHECK(turned.to_vector<double>() == Tensor(renamed.permute({1, 0})).to_vector<double>());
    CHECK(turned.labels()[0] == "k");
    CHECK(Tensor(einsum("jk,ij->ik", b, a)).to_vector<double>() == expected);
    CHECK(value("ij,jk").to_vector<double>() == expected);
    CHECK(value("ij,ji->").item<double>() == Tensor(einsum("ij,ji", a, b)).item<double>());
    CHECK(value("ij,jk->i").shape() == Shape{13});
    // The same text over other ranks.
    const Tensor x = counted({2, 13});
    CHECK(Tensor(einsum("...->...", x)).to_vector<double>() == x.to_vector<double>());
    CHECK(Tensor(einsum("...->...", x(0))).to_vector<double>() == x(0).to_vector<double>());
  }

  TEST_CASE("options of an eager call choose its plan") {
    const Tensor a = random({17, 3}, 1, f64), b = random({3, 19}, 2, f64),
                 c = random({19, 2}, 3, f64);
    const auto chain = [&](const char* path) {
      return einsum("ij,jk,kl->il", {a, b, c}, {parse_path(path)});
    };
    CHECK(explain({chain("0,1;0,1")}) != explain({chain("1,2;0,1")}));
    CHECK(plans_of([&] {
            const Tensor first = chain("0,1;0,1"), second = chain("1,2;0,1");
            CHECK(allclose(first, second));
          }) == 0);
    const Expr s = exp(chain("auto"));
    const Tensor fused = s;
    CHECK(plans_of([&] { CHECK(allclose(eval(s, {.fuse = false}), fused)); }) == 1);
    CHECK(plans_of([&] { eval(s, {.fuse = false, .threads = 1}); }) == 0);
  }

  TEST_CASE("outputs given as contiguous tensors share the plan of new ones, others do not") {
    const Tensor a = counted({3, 23}), b = counted({23, 4});
    const Tensor c = einsum("ij,jk->ik", a, b), memory = zeros({4, 3}, f64);
    const Tensor out = zeros({3, 4}, f64), turned = memory.permute({1, 0});
    CHECK(plans_of([&] {
            einsum_into(out, "ij,jk->ik", {a, b});
            eval_into(out, einsum("ij,jk->ik", a, b));
          }) == 0);
    CHECK(out.to_vector<double>() == c.to_vector<double>());
    CHECK(plans_of([&] { einsum_into(turned, "ij,jk->ik", {a, b}); }) == 1);
    CHECK(plans_of([&] { einsum_into(turned, "ij,jk->ik", {a, b}); }) == 0);
    CHECK(turned.to_vector<double>() == c.to_vector<double>());
    // Several outputs of one evaluation have plans of their own, in their order.
    const Expr product = einsum("ij,jk->ik", a, b), sum = einsum("ij->i", a);
    const auto both = eval({product, sum}), swapped = eval({sum, product});
    CHECK(both[0].to_vector<double>() == swapped[1].to_vector<double>());
    CHECK(both[1].to_vector<double>() == swapped[0].to_vector<double>());
    CHECK(both[0].labels()[1] == "k");
    CHECK(eval(std::vector<Expr>{}).empty());
  }

  TEST_CASE("operands that do not fit are refused whatever was planned before") {
    const Tensor a = counted({3, 29}), b = counted({29, 4});
    const Tensor out = full({3, 4}, -1, f64);
    for (int round = 0; round < 2; ++round) {
      const Tensor c = einsum("ij,jk->ik", a, b);
      CHECK_THROWS_WITH_AS(einsum("ij,jk->ik", a, counted({28, 4})),
                           "einsum: label 'j' is 29 in operand 0 but 28 in operand 1\n"
                           "    ij,jk->ik\n"
                           "     ^ ^",
                           ShapeError);
      CHECK_THROWS_WITH_AS(einsum("ij,jk->ik", a, b.astype(boolean)),
                           "einsum: operand 1 is bool; convert it with astype first", TypeError);
      CHECK_THROWS_WITH_AS(einsum("ij,jk->ik", a),
                           "einsum: the equation has 2 terms but 1 operand was given\n"
                           "    ij,jk->ik\n"
                           "       ^^",
                           ShapeError);
      CHECK_THROWS_WITH_AS(einsum_into(zeros({4, 3}, f64), "ij,jk->ik", {a, b}),
                           "einsum_into: the result is (i=3, k=4) but out is (4, 3)", ShapeError);
      CHECK_THROWS_WITH_AS(einsum_into(zeros({1}, f64).broadcast({3, 4}), "ij,jk->ik", {a, b}),
                           "einsum_into: the tensor is read-only", ValueError);
      CHECK(out.to_vector<double>() == std::vector<double>(12, -1));
    }
  }

  TEST_CASE("threads call eagerly at once, known layouts among new ones") {
    std::vector<Tensor> left, right;
    std::vector<std::vector<double>> expected;
    for (std::int64_t n = 1; n <= 12; ++n) {
      left.push_back(n % 2 == 0 ? counted({n, 31}) : counted({31, n}).permute({1, 0}));
      right.push_back(counted({31, 3}));
      expected.push_back(product(left.back(), right.back()));
    }
    std::atomic<int> wrong{0};
    std::vector<std::thread> threads;
    for (std::size_t t = 0; t < 4; ++t) {
      threads.emplace_back([&, t] {
        const Tensor out = zeros({1, 3}, f64);
        for (std::size_t round = 0; round < 60; ++round) {
          const std::size_t i = (round * (t + 1)) % left.size();
          const Tensor c = einsum("ij,jk->ik", left[i], right[i]);
          if (c.to_vector<double>() != expected[i]) ++wrong;
          einsum_into(out, "ij,jk->ik", {left[0], right[0]});
          if (out.to_vector<double>() != expected[0]) ++wrong;
        }
      });
    }
    for (std::thread& thread : threads) thread.join();
    CHECK(wrong == 0);
  }
}
