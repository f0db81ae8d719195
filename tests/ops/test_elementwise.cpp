// SPDX-License-Identifier: Apache-2.0
// Arithmetic, functions and promotion against plain doubles.
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

struct Function {
  const char* name;
  Expr (*word)(const Expr&);
  double (*reference)(double);
  double shift;  // moves inputs of [-3, 3) into the domain
};

const Function kFunctions[] = {
    {"negative", [](const Expr& x) { return -x; }, [](double x) { return -x; }, 0},
    {"abs", einkern::abs, [](double x) { return std::fabs(x); }, 0},
    {"exp", einkern::exp, [](double x) { return std::exp(x); }, 0},
    {"log", einkern::log, [](double x) { return std::log(x); }, 3.01},
    {"sqrt", einkern::sqrt, [](double x) { return std::sqrt(x); }, 3.01},
    {"rsqrt", einkern::rsqrt, [](double x) { return 1 / std::sqrt(x); }, 3.5},
    {"tanh", einkern::tanh, [](double x) { return std::tanh(x); }, 0},
    {"sigmoid", einkern::sigmoid, [](double x) { return 1 / (1 + std::exp(-x)); }, 0},
    {"erf", einkern::erf, [](double x) { return std::erf(x); }, 0},
    {"relu", einkern::relu, [](double x) { return x > 0 ? x : 0; }, 0},
    {"gelu", [](const Expr& x) { return gelu(x); },
     [](double x) { return 0.5 * x * (1 + std::erf(x / std::sqrt(2.0))); }, 0},
    {"gelu tanh", [](const Expr& x) { return gelu(x, Gelu::tanh); },
     [](double x) {
       return 0.5 * x *
              (1 + std::tanh(std::sqrt(2 / std::acos(-1.0)) * (x + 0.044715 * std::pow(x, 3))));
     },
     0},
    {"silu", silu, [](double x) { return x / (1 + std::exp(-x)); }, 0},
};

struct Operation {
  const char* name;
  Expr (*word)(const Expr&, const Expr&);
  double (*reference)(double, double);
};

const Operation kOperations[] = {
    {"add", [](const Expr& a, const Expr& b) { return a + b; },
     [](double a, double b) { return a + b; }},
    {"subtract", [](const Expr& a, const Expr& b) { return a - b; },
     [](double a, double b) { return a - b; }},
    {"multiply", [](const Expr& a, const Expr& b) { return a * b; },
     [](double a, double b) { return a * b; }},
    {"divide", [](const Expr& a, const Expr& b) { return a / b; },
     [](double a, double b) { return a / b; }},
    {"floordiv", floordiv, [](double a, double b) { return std::floor(a / b); }},
    {"mod", mod, [](double a, double b) { return a - std::floor(a / b) * b; }},
    {"minimum", minimum, [](double a, double b) { return b < a ? b : a; }},
    {"maximum", maximum, [](double a, double b) { return b > a ? b : a; }},
    {"pow", [](const Expr& a, const Expr& b) { return pow(abs(a), b); },
     [](double a, double b) { return std::pow(std::fabs(a), b); }},
};

Array evaluated(const Expr& e) { return to_array(Tensor(e)); }
std::vector<std::int64_t> integers(const Expr& e) {
  const Tensor t = e;
  CHECK(t.dtype() == i64);
  return t.to_vector<std::int64_t>();
}

}  // namespace

TEST_SUITE("ops") {
  TEST_CASE("functions of one element") {
    for (const Function& f : kFunctions) {
      for (const DType dtype : {f32, f64}) {
        CAPTURE(f.name);
        const Array x = noise({3, 5, 7}, 11);
        const Tensor t = to_tensor(x, dtype);
        const Array seen = to_array(t);  // as rounded to the dtype
        const Tensor input = Tensor(3 * t + f.shift);
        Array want = to_array(input);
        for (double& v : want.data) v = f.reference(v);
        const Tensor got = f.word(input);
        CHECK(got.dtype() == dtype);
        CHECK(worst_error(got, want) <= (dtype == f32 ? 1e-6 : 1e-14));
      }
    }
  }

  TEST_CASE("operations on two elements broadcast as NumPy's") {
    for (const Operation& op : kOperations) {
      for (const DType dtype : {f32, f64}) {
        CAPTURE(op.name);
        const Array a = to_array(to_tensor(noise({4, 1, 5}, 12), dtype));
        const Array b = to_array(to_tensor(noise({3, 1}, 13), dtype));
        Array want({4, 3, 5});
        for_each_index(want.shape,
                       [&](const Sizes& i) { want.at(i) = op.reference(a.at(i), b.at(i)); });
        const Tensor got = op.word(to_tensor(a, dtype), to_tensor(b, dtype));
        CHECK(got.dtype() == dtype);
        // A quotient next to a whole number may fall on either side of it in f32.
        if (dtype == f64 || (op.name != std::string("floordiv") && op.name != std::string("mod"))) {
          CHECK(worst_error(got, want) <= (dtype == f32 ? 2e-6 : 1e-13));
        }
      }
    }
  }

  TEST_CASE("integers divide and wrap with floor signs") {
    const Tensor a = tensor<std::int64_t>({7, -7, 7, -7, 6, 0}),
                 b = tensor<std::int64_t>({2, 2, -2, -2, 3, 5});
    CHECK(integers(floordiv(a, b)) == std::vector<std::int64_t>{3, -4, -4, 3, 2, 0});
    CHECK(integers(mod(a, b)) == std::vector<std::int64_t>{1, 1, -1, -1, 0, 0});
    CHECK(evaluated(a / b).data == std::vector<double>{3.5, -3.5, -3.5, 3.5, 2, 0});
    CHECK(Tensor(a / b).dtype() == f64);
    CHECK(integers(pow(a, 3)) == std::vector<std::int64_t>{343, -343, 343, -343, 216, 0});
  }

  TEST_CASE("scalars and positions are weak, tensors are not") {
    const Tensor x32 = ones({2}, f32), x64 = ones({2}, f64), whole = ones({2}, i64);
    const auto dtype = [](const Expr& e) { return Tensor(e).dtype(); };
    CHECK(dtype(x32 + 1) == f32);
    CHECK(dtype(x32 * 2.5) == f32);
    CHECK(dtype(x32 + x64) == f64);
    CHECK(dtype(whole + x32) == f32);
    CHECK(dtype(whole + x64) == f64);
    CHECK(dtype(whole + 1) == i64);
    CHECK(dtype(whole + 1.5) == f64);
    CHECK(dtype(x32 + index(-1) / 2) == f32);
    CHECK(dtype(ones({2}, boolean) * x32) == f32);
    CHECK(dtype(exp(whole)) == f64);
    CHECK(dtype(ones({2}, i8) + ones({2}, i16)) == i64);
    CHECK(dtype(abs(whole)) == i64);
  }

  TEST_CASE("what integers cannot hold is an error of the evaluation") {
    const Tensor big = full({3}, 4611686018427387904.0, i64);
    CHECK_THROWS_AS(eval(big + big), ValueError);
    CHECK_THROWS_AS(eval(big * 2), ValueError);
    CHECK_THROWS_AS(eval(floordiv(big, 0)), ValueError);
    CHECK_THROWS_AS(eval(mod(big, 0)), ValueError);
    CHECK_THROWS_AS(eval(pow(ones({1}, i64) * 2, -1)), ValueError);
  }

  TEST_CASE("NaN passes through minimum, maximum and relu") {
    const Tensor a = tensor<double>({NAN, 1, 2}), b = tensor<double>({1, NAN, 3});
    CHECK(std::isnan(evaluated(minimum(a, b)).data[0]));
    CHECK(std::isnan(evaluated(minimum(a, b)).data[1]));
    CHECK(std::isnan(evaluated(maximum(a, b)).data[1]));
    CHECK(evaluated(maximum(a, b)).data[2] == 3);
    CHECK(std::isnan(evaluated(relu(a)).data[0]));
  }

  TEST_CASE("compound assignment makes a new expression") {
    const Tensor x = tensor<double>({1, 2, 3});
    Expr y = x;
    const Expr before = y;
    y += 1;
    y *= x;
    y -= 0.5;
    y /= 2;
    CHECK(evaluated(y).data == std::vector<double>{0.75, 2.75, 5.75});
    CHECK(evaluated(before).data == std::vector<double>{1, 2, 3});
    CHECK(evaluated(1 - Expr(x)).data == std::vector<double>{0, -1, -2});
  }

  TEST_CASE("empty operands give empty results") {
    CHECK(Tensor(exp(zeros({0, 3})) + 1).shape() == Shape{0, 3});
    CHECK(Tensor(zeros({0, 3}) * ones({1, 3})).shape() == Shape{0, 3});
  }
}
