// SPDX-License-Identifier: Apache-2.0
// Checks astype, assign and to_vector: every pair of dtypes, every stride, overlapping views.
#include <doctest/doctest.h>

#include <cmath>
#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include "../../../engine/base/error.h"
#include "../../../engine/tensor/borrow.h"
#include "../../../engine/tensor/create.h"

using namespace einkern;

namespace {

constexpr DType kAll[] = {boolean, i8, i16, i32, i64, f16, bf16, f32, f64};

Tensor full_of(double value, DType dtype) { return full({3}, value, dtype); }

std::vector<double> doubles(const Tensor& t) { return t.to_vector<double>(); }

}  // namespace

TEST_SUITE("tensor") {
  TEST_CASE("astype between every pair of dtypes keeps small whole numbers") {
    for (const DType from : kAll) {
      for (const DType to : kAll) {
        CAPTURE(std::string(name_of(from)));
        CAPTURE(std::string(name_of(to)));
        for (const double value : {0.0, 1.0, 7.0, -5.0}) {
          const bool flag = from == boolean || to == boolean;
          const Tensor t = full_of(value, from).astype(to);
          CHECK(t.dtype() == to);
          CHECK(doubles(t) == std::vector<double>(3, flag ? value != 0 : value));
        }
      }
    }
  }

  TEST_CASE("floats truncate toward zero and must fit") {
    CHECK(doubles(tensor<double>({2.9, -2.9, 0.5, -0.5}).astype(i32)) ==
          std::vector<double>{2, -2, 0, 0});
    // The borders of each integer, from each float.
    CHECK(tensor<double>({127.99, -128.99}).astype(i8).to_vector<int>() ==
          std::vector<int>{127, -128});
    CHECK(tensor<double>({2147483647.5}).astype(i32).item<int>() == 2147483647);
    CHECK(tensor<float>({-9223372036854775808.0f}).astype(i64).item<std::int64_t>() ==
          std::numeric_limits<std::int64_t>::min());
    CHECK_THROWS_WITH_AS(tensor<double>({128}).astype(i8), "astype: 128 does not fit i8",
                         ValueError);
    CHECK_THROWS_WITH_AS(tensor<float>({1, -129.5}).astype(i8), "astype: -129.5 does not fit i8",
                         ValueError);
    CHECK_THROWS_WITH_AS(tensor<float>({32768}).astype(i16), "astype: 32768 does not fit i16",
                         ValueError);
    CHECK_THROWS_WITH_AS(tensor<float>({2147483648.0f}).astype(i32),
                         "astype: 2147483648 does not fit i32", ValueError);
    CHECK_THROWS_WITH_AS(tensor<double>({9223372036854775808.0}).astype(i64),
                         "astype: 9.223372036854776e+18 does not fit i64", ValueError);
    CHECK_THROWS_WITH_AS(tensor<double>({NAN}).astype(i64), "astype: nan does not fit i64",
                         ValueError);
    CHECK_THROWS_WITH_AS(tensor<float>({-INFINITY}).astype(i64), "astype: -inf does not fit i64",
                         ValueError);
  }

  TEST_CASE("integers do not wrap") {
    CHECK(tensor<std::int64_t>({-32768, 32767}).astype(i16).to_vector<int>() ==
          std::vector<int>{-32768, 32767});
    CHECK_THROWS_WITH_AS(tensor<std::int64_t>({32768}).astype(i16),
                         "astype: 32768 does not fit i16", ValueError);
    CHECK_THROWS_WITH_AS(tensor<std::int16_t>({-129}).astype(i8), "astype: -129 does not fit i8",
                         ValueError);
    const std::int64_t large = (std::int64_t{1} << 53) + 1;
    CHECK(tensor<std::int64_t>({large}).copy().item<std::int64_t>() == large);
    CHECK(tensor<std::int64_t>({large}).astype(f64).item<double>() == 0x1p53);
  }

  TEST_CASE(
      "whatever is not zero is true, NaN too; foreign bool bytes other than 1 count as true") {
    CHECK(tensor<double>({0, -0.0, 0.1, NAN, -INFINITY}).astype(boolean).to_vector<bool>() ==
          std::vector<bool>{false, false, true, true, true});
    std::vector<std::int8_t> bytes{0, 1, 2, -1};
    const Tensor flags = borrow(reinterpret_cast<const bool*>(bytes.data()), {4});
    CHECK(flags.astype(i32).to_vector<int>() == std::vector<int>{0, 1, 1, 1});
  }

  TEST_CASE("astype keeps labels, makes a new contiguous tensor, and reads any stride") {
    const Tensor t = tensor<float>({0, 1, 2, 3, 4, 5}, {2, 3}).with_labels(Labels({"q", "k"}));
    const Tensor c = t.permute({1, 0}).slice(0, {}, {}, -1).astype(i32);
    CHECK(c.labels().to_vector(2) == std::vector<std::string>{"k", "q"});
    CHECK(c.is_contiguous());
    CHECK(c.to_vector<int>() == std::vector<int>{2, 5, 1, 4, 0, 3});
    CHECK_FALSE(may_share_memory(t, t.astype(f32)));
    CHECK(zeros({2, 0}).astype(i8).shape() == Shape{2, 0});
    CHECK(zeros({}).astype(i8).rank() == 0);
  }

  TEST_CASE("to_vector converts, in C order") {
    const Tensor t = tensor<std::int64_t>({0, 1, 2, 3}, {2, 2}).permute({1, 0});
    CHECK(t.to_vector<float>() == std::vector<float>{0, 2, 1, 3});
    CHECK(t.to_vector<bool>() == std::vector<bool>{false, true, true, true});
    CHECK(zeros({0, 3}).to_vector<float>().empty());
    CHECK_THROWS_WITH_AS(tensor<double>({0, 1e3}).to_vector<std::int8_t>(),
                         "to_vector: 1000 does not fit i8", ValueError);
  }

  TEST_CASE("assign writes every element for all pairs of strides") {
    // Views of shape (3, 4) in all orders and directions of a larger block.
    std::vector<Tensor (*)(const Tensor&)> views{
        [](const Tensor& t) { return t.slice(0, 0, 3).slice(1, 0, 4); },
        [](const Tensor& t) { return t.slice(0, 5, 2, -1).slice(1, 7, {}, -2); },
        [](const Tensor& t) {
          return t.permute({1, 0}).slice(0, 0, 3).slice(1, 1, 5);
        },
        [](const Tensor& t) {
          return t.permute({1, 0}).slice(0, 6, 0, -2).slice(1, 4, 0, -1);
        },
        [](const Tensor& t) { return t.slice(0, 0, 6, 2).slice(1, 3, 7); }};
    const Tensor values = arange(64, f32).split(0, {}, {8, 8});
    for (const auto& target_of : views) {
      for (const auto& source_of : views) {
        const Tensor source = source_of(values);
        const Tensor block = full({8, 8}, -1, i32);
        const Tensor target = target_of(block);
        target.assign(source);
        CHECK(doubles(target) == doubles(source));
        std::size_t written = 0;
        for (const double x : doubles(block)) written += x != -1;
        CHECK(written == 12);
      }
    }
  }

  TEST_CASE("assign between overlapping views reads the source as it was") {
    const auto fresh = [] { return arange(10); };
    const auto after = [](const Tensor& t) { return t.to_vector<std::int64_t>(); };
    using Ints = std::vector<std::int64_t>;
    Tensor t = fresh();
    t.slice(0, 1, 10).assign(t.slice(0, 0, 9));
    CHECK(after(t) == Ints{0, 0, 1, 2, 3, 4, 5, 6, 7, 8});
    t = fresh();
    t.slice(0, 0, 9).assign(t.slice(0, 1, 10));
    CHECK(after(t) == Ints{1, 2, 3, 4, 5, 6, 7, 8, 9, 9});
    t = fresh();
    t.assign(t.slice(0, {}, {}, -1));
    CHECK(after(t) == Ints{9, 8, 7, 6, 5, 4, 3, 2, 1, 0});
    t = fresh();
    t.assign(t);
    CHECK(after(t) == after(fresh()));
    const Tensor square = arange(9).split(0, {}, {3, 3});
    square.assign(square.permute({1, 0}));
    CHECK(after(square) == Ints{0, 3, 6, 1, 4, 7, 2, 5, 8});
    // The same bytes under another dtype.
    std::vector<std::int64_t> bytes{1, 2, 3, 4};
    const Tensor wide = borrow(bytes);
    const Tensor narrow = borrow(reinterpret_cast<float*>(bytes.data()), {4});
    narrow.fill(0.5);
    narrow.assign(tensor<float>({5, 6, 7, 8}));
    const auto expected = wide.slice(0, 0, 2).to_vector<float>();
    narrow.slice(0, 2, 4).assign(wide.slice(0, 0, 2));
    CHECK(narrow.slice(0, 2, 4).to_vector<float>() == expected);
  }

  TEST_CASE("assign wants the same shape, and writes nothing when a value does not fit") {
    const Tensor t = zeros({3}, i8);
    CHECK_THROWS_WITH_AS(t.assign(zeros({2})),
                         "assign: source has shape (2,) but the view has (3,)", ShapeError);
    CHECK_THROWS_WITH_AS(t.assign(tensor<double>({1, 2, 300})), "assign: 300 does not fit i8",
                         ValueError);
    CHECK(t.to_vector<int>() == std::vector<int>{0, 0, 0});
    t.assign(tensor<double>({1, 2, 3}));
    CHECK(t.to_vector<int>() == std::vector<int>{1, 2, 3});
    zeros({0, 2}).assign(zeros({0, 2}, f64));
    const Tensor scalar = zeros({});
    scalar.assign(tensor<std::int64_t>({4}, {}));
    CHECK(scalar.item<float>() == 4);
    const Tensor rows = zeros({2, 3});
    rows.assign(tensor<float>({1, 2, 3}).broadcast({2, 3}));
    CHECK(rows.to_vector<float>() == std::vector<float>{1, 2, 3, 1, 2, 3});
  }

  TEST_CASE("allclose is NumPy's rule, exact about NaN, infinities and large integers") {
    const Tensor a = tensor<double>({1, NAN, INFINITY, 0});
    CHECK(allclose(a, a));
    CHECK(allclose(tensor<double>({1.00001}), tensor<double>({1})));
    CHECK_FALSE(allclose(tensor<double>({1.0001}), tensor<double>({1})));
    CHECK(allclose(tensor<double>({1.0001}), tensor<double>({1}), 1e-3));
    CHECK(allclose(tensor<double>({1e-9}), tensor<double>({0})));
    CHECK_FALSE(allclose(tensor<double>({1e-9}), tensor<double>({0}), 1e-5, 0));
    CHECK_FALSE(allclose(tensor<double>({NAN}), tensor<double>({1})));
    CHECK_FALSE(allclose(tensor<double>({1}), tensor<double>({NAN})));
    CHECK_FALSE(allclose(tensor<double>({1}), tensor<double>({INFINITY})));
    CHECK_FALSE(allclose(tensor<double>({-INFINITY}), tensor<double>({INFINITY})));
    CHECK_FALSE(allclose(zeros({2}), zeros({2, 1})));
    CHECK(allclose(zeros({0}), zeros({0})));
    CHECK(allclose(tensor<float>({1, 2}), tensor<std::int8_t>({1, 2})));
    const std::int64_t large = std::int64_t{1} << 53;
    CHECK_FALSE(allclose(tensor<std::int64_t>({large}), tensor<std::int64_t>({large + 1}), 0, 0));
    CHECK_FALSE(allclose(tensor<std::int64_t>({std::numeric_limits<std::int64_t>::max()}),
                         tensor<std::int64_t>({std::numeric_limits<std::int64_t>::min()}), 1, 0));
    const Tensor t = arange(6, f32).split(0, {}, {2, 3});
    CHECK(allclose(t.permute({1, 0}), t.copy().permute({1, 0})));
    CHECK(allclose(t.permute({1, 0}), t.permute({1, 0}).copy()));
    CHECK_FALSE(allclose(t, t.slice(1, {}, {}, -1)));
  }
}
