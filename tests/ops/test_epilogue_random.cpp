// SPDX-License-Identifier: Apache-2.0
// Random graphs of einsums and elementwise words, with views, shared terms and several results:
// joined steps give the bits of single ones, and the numbers of plain loops in double.
#include <doctest/doctest.h>

#include <cmath>
#include <cstring>
#include <map>
#include <random>
#include <string>
#include <vector>

#include "../../ops/ops.h"
#include "../support/arrays.h"

using namespace einkern;
using namespace einkern::test;

namespace {

using I = std::int64_t;

/// A square matrix as an expression and as numbers.
struct Matrix {
  Expr expr;
  Array value;
};

class Graph {
 public:
  Graph(unsigned seed, DType dtype, std::map<std::string, int>& seen)
      : random_(seed), dtype_(dtype), seen_(seen) {
    n_ = pick({1, 4, 6, 12, 48, 100});
    for (unsigned i = 0; i < 3; ++i) terms_.push_back(leaf({n_, n_}, 10 * seed + i));
    const std::size_t words = 3 + random_() % 8;
    for (std::size_t i = 0; i < words; ++i) terms_.push_back(next());
  }

  /// One result or two: the last term, and one that others may use.
  std::vector<Matrix> results() {
    std::vector<Matrix> chosen{terms_.back()};
    if (random_() % 3 == 0) {
      ++seen_["two results"];
      chosen.push_back(terms_[random_() % terms_.size()]);
    }
    return chosen;
  }

 private:
  template <class T>
  T pick(std::initializer_list<T> choices) {
    return choices.begin()[random_() % choices.size()];
  }

  Matrix leaf(const Sizes& shape, unsigned seed) {
    Array value = noise(shape, seed);
    if (dtype_ == f32) {
      for (double& x : value.data) x = static_cast<double>(static_cast<float>(x));
    }
    const Tensor tensor = to_tensor(value, dtype_);
    return {tensor, std::move(value)};
  }

  /// Recent terms more often than old ones, so that chains grow and terms are shared.
  const Matrix& some() {
    const std::size_t back = random_() % 3 == 0 ? random_() % terms_.size() : random_() % 2;
    return terms_[terms_.size() - 1 - std::min(back, terms_.size() - 1)];
  }

  template <class F>
  Array each(const F& f) const {
    Array out({n_, n_});
    for_each_index(out.shape, [&](const Sizes& at) { out.at(at) = f(at[0], at[1]); });
    return out;
  }

  Matrix product() {
    const I steps = pick({1, 3, 20, 65});
    const auto seed = static_cast<unsigned>(random_());
    const Matrix a = leaf({n_, steps}, seed), b = leaf({steps, n_}, seed + 1);
    const Array value = each([&](I i, I j) {
      double sum = 0;
      for (I k = 0; k < steps; ++k) sum += a.value.at({i, k}) * b.value.at({k, j});
      return sum;
    });
    return {unnamed(einsum("ik,kj->ij", a.expr, b.expr)), value};
  }

  Matrix next() {
    const std::string word = pick<const char*>({"product", "product", "product", "add", "add",
                                                "multiply", "tanh", "silu", "gelu", "bias", "row",
                                                "where", "transpose", "split", "reduce", "named"});
    ++seen_[word];
    if (word == "product") return product();
    const Matrix x = some(), y = some();
    const Array &u = x.value, &v = y.value;
    if (word == "add") {
      return {x.expr + y.expr, each([&](I i, I j) { return u.at({i, j}) + v.at({i, j}); })};
    }
    if (word == "multiply") {
      return {tanh(x.expr) * y.expr, each([&](I i, I j) {
                return std::tanh(u.at({i, j})) * v.at({i, j});
              })};
    }
    if (word == "tanh") {
      return {tanh(x.expr), each([&](I i, I j) { return std::tanh(u.at({i, j})); })};
    }
    if (word == "silu") {
      return {silu(x.expr), each([&](I i, I j) {
                return u.at({i, j}) / (1 + std::exp(-u.at({i, j})));
              })};
    }
    if (word == "gelu") {
      return {gelu(x.expr), each([&](I i, I j) {
                return 0.5 * u.at({i, j}) * (1 + std::erf(u.at({i, j}) / std::sqrt(2.0)));
              })};
    }
    if (word == "bias" || word == "row") {
      const bool row = word == "row";
      const Matrix b = leaf(row ? Sizes{n_, 1} : Sizes{n_}, static_cast<unsigned>(random_()));
      return {b.expr + x.expr, each([&](I i, I j) { return u.at({i, j}) + b.value.at({i, j}); })};
    }
    if (word == "where") {
      const Expr below = index(-1) <= index(-2);
      return {where(below, x.expr, y.expr), each([&](I i, I j) {
                return j <= i ? u.at({i, j}) : v.at({i, j});
              })};
    }
    if (word == "transpose") {
      return {permute(x.expr, {1, 0}), each([&](I i, I j) { return u.at({j, i}); })};
    }
    if (word == "split") {
      const I part = n_ % 4 == 0 ? 4 : 1;
      const auto cut = [&](const Expr& z) { return split(z, 1, {"s", "t"}, {-1, part}); };
      return {unnamed(merge(cut(x.expr) + unnamed(cut(y.expr)), {1, 2})), each([&](I i, I j) {
                return u.at({i, j}) + v.at({i, j});
              })};
    }
    if (word == "reduce") {
      std::vector<double> sums(static_cast<std::size_t>(n_));
      for_each_index(u.shape, [&](const Sizes& at) {
        sums[static_cast<std::size_t>(at[1])] += u.at(at) / static_cast<double>(n_);
      });
      return {mean(x.expr, 0) + y.expr, each([&](I i, I j) {
                return sums[static_cast<std::size_t>(j)] + v.at({i, j});
              })};
    }
    return {unnamed(named(x.expr, "pq") * 0.5), each([&](I i, I j) { return 0.5 * u.at({i, j}); })};
  }

  std::mt19937 random_;
  DType dtype_;
  std::map<std::string, int>& seen_;
  I n_ = 1;
  std::vector<Matrix> terms_;
};

}  // namespace

TEST_SUITE("ops") {
  TEST_CASE("random graphs of einsums and elementwise words") {
    std::map<std::string, int> seen;
    int epilogues = 0;
    for (unsigned seed = 0; seed < 800; ++seed) {
      CAPTURE(seed);
      const DType dtype = seed % 2 == 0 ? f32 : f64;
      Graph graph(seed, dtype, seen);
      const std::vector<Matrix> results = graph.results();
      std::vector<Expr> exprs;
      for (const Matrix& term : results) exprs.push_back(term.expr);
      const std::string text = explain(exprs);
      CAPTURE(text);
      if (text.find(" + map (") != std::string::npos) ++epilogues;
      const std::vector<Tensor> fused = eval(exprs), plain = eval(exprs, {.fuse = false});
      for (std::size_t i = 0; i < exprs.size(); ++i) {
        REQUIRE(fused[i].size() == plain[i].size());
        CHECK(std::memcmp(fused[i].bytes(), plain[i].bytes(),
                          static_cast<std::size_t>(fused[i].size()) * size_of(dtype)) == 0);
        // A dozen words deep, over sums of up to 65 products.
        CHECK(worst_error(fused[i], results[i].value) <= 20 * tolerance(dtype));
      }
    }
    CHECK(epilogues >= 150);
    for (const char* word : {"product", "add", "multiply", "tanh", "silu", "gelu", "bias", "row",
                             "where", "transpose", "split", "reduce", "named", "two results"}) {
      CAPTURE(word);
      CHECK(seen[word] >= 20);
    }
  }
}
