// SPDX-License-Identifier: Apache-2.0
// Reductions against plain loops.
#include <doctest/doctest.h>

#include <cmath>
#include <functional>

#include "../../engine/base/error.h"
#include "../../engine/tensor/create.h"
#include "../../ops/ops.h"
#include "../support/arrays.h"

using namespace einkern;
using namespace einkern::test;

namespace {

/// Folds the axes marked in `reduced`, which stay with size 1.
Array fold(const Array& x, const std::vector<bool>& reduced, double start,
           const std::function<double(double, double)>& f) {
  Sizes kept = x.shape;
  for (std::size_t d = 0; d < kept.size(); ++d) {
    if (reduced[d]) kept[d] = 1;
  }
  Array result(kept, start);
  for_each_index(x.shape, [&](const Sizes& i) { result.at(i) = f(result.at(i), x.at(i)); });
  return result;
}

Array without(const Array& x, const std::vector<bool>& reduced) {
  Sizes shape;
  for (std::size_t d = 0; d < x.shape.size(); ++d) {
    if (!reduced[d]) shape.push_back(x.shape[d]);
  }
  return {shape, x.data};
}

double add(double a, double b) { return a + b; }
double multiply(double a, double b) { return a * b; }
double larger(double a, double b) { return b > a ? b : a; }
double smaller(double a, double b) { return b < a ? b : a; }

double scalar(const Expr& e) { return Tensor(e).item<double>(); }

}  // namespace

TEST_SUITE("ops") {
  TEST_CASE("reductions over every subset of axes, kept or not") {
    const Array x = noise({3, 5, 7}, 21);
    const Tensor t = to_tensor(x).with_labels(Labels({"a", "b", "c"}));
    const char* labels[] = {"a", "b", "c"};
    for (unsigned subset = 1; subset < 8; ++subset) {
      std::vector<bool> reduced;
      std::vector<Axis> axes;
      double count = 1;
      for (unsigned d = 0; d < 3; ++d) {
        reduced.push_back((subset >> d & 1) != 0);
        if (!reduced.back()) continue;
        // By label, by number and by negative number in turn.
        if (d == 0) axes.emplace_back(labels[d]);
        if (d == 1) axes.emplace_back(1);
        if (d == 2) axes.emplace_back(-1);
        count *= static_cast<double>(x.shape[d]);
      }
      CAPTURE(subset);
      const Array total = fold(x, reduced, 0, add);
      Array average = total;
      for (double& v : average.data) v /= count;
      CHECK(worst_error(Tensor(sum(t, axes, {.keep = true})), total) < 1e-13);
      CHECK(worst_error(Tensor(sum(t, axes)), without(total, reduced)) < 1e-13);
      CHECK(worst_error(Tensor(mean(t, axes, {.keep = true})), average) < 1e-13);
      CHECK(worst_error(Tensor(mean(t, axes)), without(average, reduced)) < 1e-13);
      CHECK(worst_error(Tensor(prod(t, axes)), without(fold(x, reduced, 1, multiply), reduced)) <
            1e-13);
      CHECK(worst_error(Tensor(max(t, axes)),
                        without(fold(x, reduced, -INFINITY, larger), reduced)) == 0);
      CHECK(worst_error(Tensor(min(t, axes, {.keep = true})),
                        fold(x, reduced, INFINITY, smaller)) == 0);
    }
  }

  TEST_CASE("without axes everything is reduced; with none nothing is") {
    const Array x = noise({4, 3}, 22);
    const Tensor t = to_tensor(x);
    double total = 0;
    for (const double v : x.data) total += v;
    CHECK(scalar(sum(t)) == doctest::Approx(total));
    CHECK(scalar(mean(t)) == doctest::Approx(total / 12));
    CHECK(Tensor(sum(t, {.keep = true})).shape() == Shape{1, 1});
    CHECK(worst_error(Tensor(sum(t, std::vector<Axis>{})), x) == 0);
    CHECK(Tensor(sum(t, {0})).shape() == Shape{3});
    CHECK(scalar(max(t)) == *std::max_element(x.data.begin(), x.data.end()));
    CHECK(scalar(min(t)) == *std::min_element(x.data.begin(), x.data.end()));
  }

  TEST_CASE("labels of the remaining axes stay") {
    const Expr s = einsum("bq,bk->bqk", ones({2, 3}), ones({2, 4}));
    CHECK(sum(s, "q").labels().to_vector(2) == std::vector<std::string>{"b", "k"});
    CHECK(max(s, "q", {.keep = true}).labels().to_vector(3) ==
          std::vector<std::string>{"b", "q", "k"});
  }

  TEST_CASE("nothing to reduce") {
    const Tensor t = zeros({0, 3}, f64);
    CHECK(to_array(Tensor(sum(t, 0))).data == std::vector<double>{0, 0, 0});
    CHECK(to_array(Tensor(prod(t, 0))).data == std::vector<double>{1, 1, 1});
    for (const double v : to_array(Tensor(mean(t, 0))).data) CHECK(std::isnan(v));
    CHECK(std::isnan(scalar(mean(t))));
    CHECK(Tensor(max(t, 1)).shape() == Shape{0});
    CHECK_THROWS_WITH_AS(max(t, 0), "max: axis 0 of (0, 3) is empty and has no max", ValueError);
    CHECK_THROWS_WITH_AS(min(named(t, "qk"), "q"),
                         "min: axis 0 of (q=0, k=3) is empty and has no min", ValueError);
  }

  TEST_CASE("dtypes: integers stay exact, their mean is f64, truth values count") {
    const std::int64_t big = std::int64_t{1} << 53;
    const Tensor whole = tensor<std::int64_t>({big, 1, 1});
    CHECK(Tensor(sum(whole)).dtype() == i64);
    CHECK(Tensor(sum(whole)).item<std::int64_t>() == big + 2);
    CHECK(Tensor(max(whole)).item<std::int64_t>() == big);
    const Tensor half = mean(tensor<std::int32_t>({1, 2}));
    CHECK(half.dtype() == f64);
    CHECK(half.item<double>() == 1.5);
    const Tensor three = sum(tensor<bool>({true, false, true, true}));
    CHECK(three.dtype() == i64);
    CHECK(three.item<std::int64_t>() == 3);
    CHECK(Tensor(mean(ones({3}, f32))).dtype() == f32);
    CHECK_THROWS_AS(eval(sum(full({4}, 4611686018427387904.0, i64))), ValueError);
  }

  TEST_CASE("NaN is the largest and the smallest") {
    const Tensor t = tensor<double>({1, NAN, INFINITY, -INFINITY});
    CHECK(std::isnan(scalar(max(t))));
    CHECK(std::isnan(scalar(min(t))));
    CHECK(scalar(max(tensor<double>({1, -INFINITY}))) == 1);
  }

  TEST_CASE("axes that are not there") {
    const Tensor t = zeros({2, 3});
    CHECK_THROWS_AS(sum(t, 2), ShapeError);
    CHECK_THROWS_AS(sum(t, "k"), ShapeError);
    CHECK_THROWS_WITH_AS(sum(t, {0, -2}), "sum: axis 0 is named twice", ShapeError);
  }
}
