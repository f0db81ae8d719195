// SPDX-License-Identifier: Apache-2.0
// Einsum over 16-bit floats: bit for bit what f32 copies of the operands give.
#include <doctest/doctest.h>

#include <cstring>
#include <string>
#include <vector>

#include "../../support/oracle.h"
#include "graph_words.h"

using namespace einkern;
using namespace einkern::test;

namespace {

struct Problem {
  const char* equation;
  std::vector<Shape> shapes;
  bool stays_a = false, stays_b = false;  // 16 bits until it is packed
};

const std::vector<Problem> kProblems = {
    {"ik,kj->ij", {{70, 81}, {81, 90}}, true, true},
    {"ik,jk->ij", {{70, 81}, {90, 81}}, true, true},
    {"ki,kj->ij", {{33, 64}, {33, 64}}, true, true},
    {"ki,jk->ji", {{513, 40}, {65, 513}}, true, true},
    {"bhqd,bhkd->bhqk", {{2, 3, 40, 33}, {2, 3, 50, 33}}, true, true},
    {"bqhd,bkhd->bhqk", {{1, 40, 3, 33}, {1, 50, 3, 33}}, true, true},
    {"dabk,kc->dabc", {{5, 6, 7, 30}, {30, 35}}, true, true},
    {"abc,dc->adb", {{9, 20, 30}, {31, 30}}, true, true},
    {"ik,kj->ij", {{64, 4000}, {4000, 64}}, true, true},  // parts of a sum
    {"ik,kj->ij", {{3, 2000}, {2000, 300}}, true, true},
    {"ik,kj->ij", {{4, 5}, {5, 6}}},             // small
    {"bik,bkj->bij", {{40, 7, 8}, {40, 8, 9}}},  // many small ones
    {"ikb,kjb->ijb", {{12, 30, 64}, {30, 13, 64}}},
    {"ik,k->i", {{100, 200}, {200}}},
    {"k,k->", {{1000}, {1000}}},
    {"i,j->ij", {{60}, {70}}},
    {"ij,ij->ij", {{60, 70}, {60, 70}}},
    {"ij,ij->", {{60, 70}, {60, 70}}},
    {"ijx,jk->ik", {{60, 70, 3}, {70, 80}}, false, true},
    {"ii,ij->j", {{60, 60}, {60, 70}}},
    {"xik,jy->ijk", {{3, 600, 4}, {700, 2}}},
    {"ak,kc->ca", {{3000, 6}, {6, 300}}},  // streamed
};

bool same_bits(const Tensor& a, const Tensor& b) {
  return a.dtype() == b.dtype() && a.shape() == b.shape() &&
         std::memcmp(a.bytes(), b.bytes(),
                     static_cast<std::size_t>(a.size()) * size_of(a.dtype())) == 0;
}

/// Numbers of f16 and bf16 that have more digits than one another.
Tensor numbers(const Shape& shape, std::uint64_t seed, DType dtype) {
  return Tensor(sub(random(shape, seed), 0.5)).astype(dtype);
}

/// A tensor and its f32 copy, seen through the same views.
struct Pair {
  Tensor narrow, wide;
  template <class F>
  Pair viewed(const F& f) const {
    return {f(narrow), f(wide)};
  }
};

std::size_t copies_in(const Expr& output) {
  const std::string plan = explain_json({output});
  std::size_t count = 0;
  for (std::size_t at = 0; (at = plan.find("\"kind\": \"copy\"", at)) != plan.npos; ++at) ++count;
  return count;
}

}  // namespace

TEST_SUITE("engine") {
  TEST_CASE("16-bit operands give the bits of their f32 copies, in every form of a contraction") {
    std::uint64_t seed = 1;
    for (const Problem& problem : kProblems) {
      CAPTURE(std::string(problem.equation));
      for (const auto& [first, second] : {std::pair(f32, f16), std::pair(bf16, f32),
                                          std::pair(f16, bf16), std::pair(f32, bf16)}) {
        const Tensor a = numbers(problem.shapes[0], seed++, first);
        const Tensor b = numbers(problem.shapes[1], seed++, second);
        const Expr output = einsum(problem.equation, {a, b});
        CHECK(output.dtype() == f32);
        const Expr wide = einsum(problem.equation, {a.astype(f32), b.astype(f32)});
        CHECK(same_bits(output, wide));
        const std::size_t converted = (first != f32 && !problem.stays_a ? 1 : 0) +
                                      (second != f32 && !problem.stays_b ? 1 : 0);
        CHECK(copies_in(output) == copies_in(wide) + converted);
      }
    }
  }

  TEST_CASE("16-bit views of any strides give the bits of f32 views of the same strides") {
    const Tensor a = numbers({40, 3, 90}, 1, f16), b = numbers({2, 90, 100}, 2, bf16);
    const Pair left{a, a.astype(f32)}, right{b, b.astype(f32)};
    const auto reversed = [](const Tensor& t) { return t.slice(-1, {}, {}, -1); };
    const Pair rows = left.viewed([](const Tensor& t) {
      return t.slice(1, 1, 2).permute({1, 0, 2});
    });
    const auto check = [](const char* equation, const Pair& x, const Pair& y) {
      CAPTURE(std::string(equation));
      const Expr narrow = einsum(equation, {x.narrow, y.narrow});
      CHECK(same_bits(narrow, einsum(equation, {x.wide, y.wide})));
      CHECK(copies_in(narrow) == 0);
    };
    check("xik,bkj->bij", rows, right);
    check("xik,bkj->ijb", rows.viewed(reversed), right.viewed(reversed));
    const Pair columns = right.viewed([](const Tensor& t) { return t.slice(2, 0, {}, 2); });
    check("xik,bkj->bji", rows, columns);
    check("iak,bkj->abij", left, columns.viewed(reversed));
  }

  TEST_CASE("16-bit operands: the oracle, other dtypes, one operand, three") {
    const Tensor a = numbers({50, 60}, 3, bf16), b = numbers({60, 70}, 4, f16);
    const Tensor product = einsum("ik,kj->ij", {a, b});
    for (const std::int64_t i : {0, 17, 49}) {
      for (const std::int64_t j : {0, 33, 69}) {
        double want = 0;
        for (std::int64_t k = 0; k < 60; ++k) {
          want += a(i, k).item<double>() * b(k, j).item<double>();
        }
        CHECK(std::abs(product(i, j).item<double>() - want) <= 1e-6);
      }
    }
    const Tensor wide = numbers({60, 70}, 5, f64),
                 whole = arange(std::int64_t{60} * 70, i32).split(0, {}, {60, 70});
    const Expr doubles = einsum("ik,kj->ij", {a, wide});
    CHECK(doubles.dtype() == f64);
    CHECK(same_bits(doubles, einsum("ik,kj->ij", {a.astype(f64), wide})));
    const Expr integers = einsum("ik,kj->ij", {a, whole});
    CHECK(integers.dtype() == f32);
    CHECK(same_bits(integers, einsum("ik,kj->ij", {a.astype(f32), whole.astype(f32)})));
    for (const char* one : {"ij->ji", "ij->i", "ij->", "ij->ij"}) {
      CHECK(same_bits(einsum(one, {a}), einsum(one, {a.astype(f32)})));
    }
    const Tensor c = numbers({70, 40}, 6, f16);
    CHECK(same_bits(einsum("ik,kj,jl->il", {a, b, c}),
                    einsum("ik,kj,jl->il", {a.astype(f32), b.astype(f32), c.astype(f32)})));
  }

  TEST_CASE("infinities, NaN and denormals of 16 bits reach the products they belong to") {
    for (const DType dtype : {f16, bf16}) {
      const Tensor a = ones({40, 50}), b = zeros({50, 60}, dtype);
      b.slice(0, 3, 4).slice(1, 7, 8).fill(INFINITY);
      b.slice(0, 4, 5).slice(1, 8, 9).fill(NAN);
      const double tiny = dtype == f16 ? 0x1p-24 : 0x1p-133;  // the least of each
      b.slice(0, 5, 6).slice(1, 9, 10).fill(tiny);
      const Tensor c = einsum("ik,kj->ij", {a, b});
      CHECK(c(39, 6).item<float>() == 0);
      CHECK(c(39, 7).item<float>() == INFINITY);
      CHECK(std::isnan(c(39, 8).item<float>()));
      CHECK(c(39, 9).item<double>() == tiny);
    }
  }

  TEST_CASE("arithmetic over 16-bit tensors is f32; they come back only when asked for") {
    const Tensor a = numbers({30, 40}, 7, f16), b = numbers({30, 40}, 8, bf16);
    const Expr sum = add(a, b);
    CHECK(sum.dtype() == f32);
    CHECK(same_bits(sum, add(a.astype(f32), b.astype(f32))));
    CHECK(mul(a, 2).dtype() == f32);
    CHECK(add(a, 1.5).dtype() == f32);
    const Tensor back = graph::cast(sum, bf16);
    CHECK(back.dtype() == bf16);
    CHECK(same_bits(back, Tensor(sum).astype(bf16)));
    CHECK(same_bits(graph::cast(a, f64), a.astype(f64)));
    CHECK(same_bits(graph::permute("permute", a, {1, 0}), a.permute({1, 0}).copy()));
  }
}
