// SPDX-License-Identifier: Apache-2.0
// The whole engine against the naive oracle: random equations and the checked examples.
#include <doctest/doctest.h>
#include <fmt/format.h>

#include <cmath>

#include "../../../engine/tensor/borrow.h"
#include "../../support/cases.h"
#include "../../support/oracle.h"
#include "../../support/random_equation.h"
#include "graph_words.h"

using namespace einkern;
using namespace einkern::test;

namespace {

Tensor view_of(RandomTensor& tensor) {
  return dispatch(tensor.dtype, [&](auto tag) {
    using T = typename decltype(tag)::type;
    return borrow(static_cast<T*>(tensor.data()), tensor.layout().shape, tensor.layout().strides);
  });
}

std::vector<RawView> raw_views(const std::vector<RandomTensor>& tensors) {
  std::vector<RawView> views;
  for (const RandomTensor& tensor : tensors) views.push_back(tensor.view());
  return views;
}

}  // namespace

TEST_SUITE("engine") {
  TEST_CASE("random equations over random strided operands agree with the oracle") {
    RandomEquations equations(20261129);
    for (int i = 0; i < 1500; ++i) {
      RandomEquation equation = equations.next();
      CAPTURE(i);
      CAPTURE(equation.text);
      std::vector<Expr> operands;
      for (RandomTensor& operand : equation.operands) operands.emplace_back(view_of(operand));
      // Operands are small integers: every dtype must give the exact sums.
      const std::vector<double> want = oracle_einsum(equation.spec, raw_views(equation.operands));
      const Tensor got = einsum(equation.text, operands);
      CHECK(got.dtype() == equation.out.dtype);
      CHECK(got.to_vector<double>() == want);
      const Tensor out = view_of(equation.out);
      eval_into(out, einsum(equation.text, operands));
      CHECK(out.to_vector<double>() == want);
    }
    INFO(equations.coverage());
    CHECK(equations.missing() == "");
  }

  TEST_CASE("larger random equations reach every kernel and stay exact") {
    RandomEquations equations(7,
                              {.operands = 3, .labels = 5, .work = 3e6, .dtypes = {f32, f64, i64}});
    for (int i = 0; i < 60; ++i) {
      RandomEquation equation = equations.next();
      CAPTURE(equation.text);
      std::vector<Expr> operands;
      for (RandomTensor& operand : equation.operands) operands.emplace_back(view_of(operand));
      const Tensor got = einsum(equation.text, operands);
      CHECK(got.to_vector<double>() == oracle_einsum(equation.spec, raw_views(equation.operands)));
    }
  }

  TEST_CASE("the checked examples give the stated answers and errors") {
    for (const EinsumCase& example : read_einsum_cases()) {
      CAPTURE(example.id);
      std::vector<Expr> operands;
      for (std::size_t p = 0; p < example.shapes.size(); ++p) {
        const std::vector<double> values = operand_values(example, p);
        operands.emplace_back(
            from_values(std::span<const double>(values), Shape(example.shapes[p])));
      }
      const auto run = [&]() -> Tensor {
        if (example.sublists) {
          return einsum(example.sublists->inputs, example.sublists->output, operands);
        }
        return einsum(example.spec, operands);
      };
      if (!example.ok) {
        CHECK_THROWS_AS(run(), Error);
        continue;
      }
      const Tensor value = run();
      CHECK(value.shape() == Shape(example.out_shape));
      const std::vector<double> elements = value.to_vector<double>();
      double sum = 0, weighted = 0;
      for (std::size_t i = 0; i < elements.size(); ++i) {
        sum += elements[i];
        weighted += static_cast<double>(i % 13 + 1) * elements[i];
      }
      CHECK(sum == example.out_sum);
      CHECK(weighted == example.out_wsum);
    }
  }

  TEST_CASE("every contraction path gives the same numbers") {
    const Tensor a = random({4, 5}, 1, f64), b = random({5, 6}, 2, f64), c = random({6, 3}, 3, f64);
    const Tensor want = einsum("ij,jk,kl->il", {a, b, c});
    for (const char* path : {"optimal", "greedy", "0,1;0,1", "1,2;0,1", "0,2;0,1", "0,1,2"}) {
      CAPTURE(path);
      CHECK(allclose(einsum("ij,jk,kl->il", {a, b, c}, {parse_path(path)}), want, 1e-13));
    }
  }
}
