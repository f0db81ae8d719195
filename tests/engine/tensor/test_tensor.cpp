// SPDX-License-Identifier: Apache-2.0
// Checks how elements are reached: indices, data, item, fill, and what is refused.
#include <doctest/doctest.h>

#include <cstdint>
#include <string>
#include <type_traits>
#include <vector>

#include "../../../engine/base/error.h"
#include "../../../engine/tensor/borrow.h"
#include "../../../engine/tensor/create.h"

using namespace einkern;

static_assert(std::is_constructible_v<Axis, const char*> && std::is_constructible_v<Axis, int>);
static_assert(std::is_constructible_v<Axis, std::size_t> &&
              std::is_constructible_v<Axis, std::string>);
static_assert(!std::is_constructible_v<Axis, char> && !std::is_constructible_v<Axis, bool>);
static_assert(!std::is_constructible_v<Axis, double>);

namespace {

template <class T>
concept Indexable = requires(const T& t) {
  t[0];
};
static_assert(!Indexable<Tensor>, "t[0] must not compile: it is neither an element nor a label");

}  // namespace

TEST_SUITE("tensor") {
  TEST_CASE("a default tensor is an f32 zero of its own") {
    const Tensor a, b;
    CHECK(a.rank() == 0);
    CHECK(a.size() == 1);
    CHECK(a.dtype() == f32);
    a.fill(3);
    CHECK(a.item<float>() == 3);
    CHECK(b.item<float>() == 0);
  }

  TEST_CASE("shape and strides, by number and by label") {
    const Tensor t = zeros({2, 3, 4}).with_labels(Labels({"b", "q", "d"}));
    CHECK(t.shape() == Shape{2, 3, 4});
    CHECK(t.strides() == Strides{12, 4, 1});
    CHECK(t.size() == 24);
    CHECK(t.shape("q") == 3);
    CHECK(t.shape(-1) == 4);
    CHECK(t.shape(0u) == 2);
    CHECK_THROWS_WITH_AS(t.shape(3), "shape: axis 3 is out of range for rank 3", ShapeError);
    CHECK_THROWS_WITH_AS(t.shape(-4), "shape: axis -4 is out of range for rank 3", ShapeError);
    CHECK_THROWS_WITH_AS(t.shape("k"), "shape: no axis 'k' among 'b', 'q', 'd'", ShapeError);
    CHECK_THROWS_WITH_AS(zeros({2}).shape("k"), "shape: no axis 'k': the axes have no labels",
                         ShapeError);
    CHECK_THROWS_WITH_AS(t.with_labels(Labels({"i", "", "i"})).shape("i"),
                         "shape: label 'i' names both axis 0 and axis 2", ShapeError);
    CHECK_THROWS_WITH_AS(zeros({2, 2}).with_labels(Labels({"", "i"})).shape(""),
                         "shape: no axis '' among 'i'", ShapeError);
    CHECK_THROWS_WITH_AS(zeros({}).shape(0), "shape: axis 0 is out of range for rank 0",
                         ShapeError);
  }

  TEST_CASE("indices give elements and sub-views; negative ones count from the end") {
    const Tensor t = tensor<float>({0, 1, 2, 3, 4, 5}, {2, 3});
    CHECK(t(1, 2).item<float>() == 5);
    CHECK(t(-2, -3).item<float>() == 0);
    CHECK(t(1).to_vector<float>() == std::vector<float>{3, 4, 5});
    CHECK(t.at({}).shape() == t.shape());
    CHECK(t(std::size_t{1}, short{-1}).item<int>() == 5);
    t(0, 1).fill(9);
    CHECK(t.to_vector<float>() == std::vector<float>{0, 9, 2, 3, 4, 5});
    CHECK_THROWS_WITH_AS(t(0, 3), "at: index 3 is out of range for axis 1 of size 3", ShapeError);
    CHECK_THROWS_WITH_AS(t(-3), "at: index -3 is out of range for axis 0 of size 2", ShapeError);
    CHECK_THROWS_WITH_AS(t(0, 0, 0), "at: 3 indices for a tensor of rank 2", ShapeError);
    CHECK_THROWS_WITH_AS(zeros({0})(0), "at: index 0 is out of range for axis 0 of size 0",
                         ShapeError);
    CHECK(zeros({})().item<float>() == 0);
  }

  TEST_CASE("labels of the remaining axes stay with a sub-view") {
    const Tensor t = zeros({2, 3, 4}).with_labels(Labels({"b", "", "d"}));
    CHECK(t(1).labels().to_vector(2) == std::vector<std::string>{"", "d"});
    CHECK(t(1, 1).labels().to_vector(1) == std::vector<std::string>{"d"});
    CHECK(t.with_labels({}).labels().empty());
    CHECK(t.labels()[0] == "b");
  }

  TEST_CASE("data insists on the dtype, and on const for read-only memory") {
    const Tensor t = tensor<float>({1, 2});
    CHECK(t.data<float>()[1] == 2);
    CHECK(t.data<const float>() == t.data<float>());
    CHECK_THROWS_WITH_AS(t.data<double>(), "data: asked for f64 but the tensor holds f32",
                         TypeError);
    CHECK_THROWS_WITH_AS(t.data<const std::int64_t>(),
                         "data: asked for i64 but the tensor holds f32", TypeError);
    const std::vector<float> constant{1, 2};
    const Tensor lent = borrow(constant);
    CHECK(lent.read_only());
    CHECK(lent.data<const float>() == constant.data());
    CHECK_THROWS_WITH_AS(lent.data<float>(), "data: the tensor is read-only", ValueError);
  }

  TEST_CASE("writing read-only memory names the function") {
    const std::vector<float> constant{1, 2};
    const Tensor lent = borrow(constant);
    CHECK_THROWS_WITH_AS(lent.fill(0), "fill: the tensor is read-only", ValueError);
    CHECK_THROWS_WITH_AS(lent.assign(zeros({2})), "assign: the tensor is read-only", ValueError);
    CHECK_THROWS_WITH_AS(lent.mutable_bytes("einsum_into"), "einsum_into: the tensor is read-only",
                         ValueError);
    CHECK_THROWS_WITH_AS(lent(0).fill(0), "fill: the tensor is read-only", ValueError);
    CHECK_THROWS_WITH_AS(zeros({1}).broadcast({2}).fill(0), "fill: the tensor is read-only",
                         ValueError);
    CHECK_FALSE(lent.copy().read_only());
    CHECK(constant == std::vector<float>{1, 2});
  }

  TEST_CASE("item wants one element and converts it") {
    CHECK(tensor<double>({2.75}).item<float>() == 2.75f);
    CHECK(tensor<double>({-2.75}, {1, 1}).item<int>() == -2);
    CHECK(tensor<std::int8_t>({-3}).item<long long>() == -3);
    CHECK(tensor<bool>({true}).item<double>() == 1);
    CHECK_THROWS_WITH_AS(zeros({2, 3}).item<float>(), "item: shape (2, 3) has 6 elements, not one",
                         ShapeError);
    CHECK_THROWS_WITH_AS(zeros({0}).item<float>(), "item: shape (0,) has 0 elements, not one",
                         ShapeError);
    CHECK_THROWS_WITH_AS(tensor<double>({1e10}).item<int>(), "item: 10000000000 does not fit i32",
                         ValueError);
    CHECK_THROWS_WITH_AS(tensor<std::int64_t>({300}).item<std::int8_t>(),
                         "item: 300 does not fit i8", ValueError);
  }

  TEST_CASE("fill writes every element of a view and none beside it") {
    const Tensor t = zeros({3, 4});
    t.slice(0, {}, {}, -2).slice(1, 3, 0, -2).fill(5);
    CHECK(t.to_vector<float>() == std::vector<float>{0, 5, 0, 5, 0, 0, 0, 0, 0, 5, 0, 5});
    t.fill(1);
    CHECK(t.to_vector<float>() == std::vector<float>(12, 1));
    t.slice(0, 1, 1).fill(7);
    CHECK(t.to_vector<float>() == std::vector<float>(12, 1));
    const Tensor small = zeros({2}, i8);
    CHECK_THROWS_WITH_AS(small.fill(128), "fill: 128 does not fit i8", ValueError);
    small.fill(-128.9);
    CHECK(small.to_vector<std::int8_t>() == std::vector<std::int8_t>{-128, -128});
    const Tensor flags = zeros({2}, boolean);
    flags.fill(0.5);
    CHECK(flags.to_vector<bool>() == std::vector<bool>{true, true});
  }

  TEST_CASE("copies of the handle share the elements; copy() does not") {
    const Tensor a = zeros({2});
    Tensor shared;
    shared = a;
    const Tensor own = a.copy();
    a.fill(4);
    CHECK(shared(0).item<float>() == 4);
    CHECK(own(0).item<float>() == 0);
    CHECK(may_share_memory(a, shared));
    CHECK_FALSE(may_share_memory(a, own));
    CHECK_FALSE(may_share_memory(a.slice(0, 0, 1), a.slice(0, 1, 2)));
    CHECK(may_share_memory(a.slice(0, {}, {}, -1), a.slice(0, 0, 1)));
    CHECK_FALSE(may_share_memory(a.slice(0, 1, 1), a));
  }
}
