// SPDX-License-Identifier: Apache-2.0
// Checks borrowing from the real xtensor, where it is installed.
#include <doctest/doctest.h>

#ifdef EINKERN_HAVE_XTENSOR
#include <vector>
#include <xtensor/xadapt.hpp>
#include <xtensor/xarray.hpp>
#include <xtensor/xstrided_view.hpp>
#include <xtensor/xtensor.hpp>
#include <xtensor/xview.hpp>

#include "../../../engine/tensor/create.h"
#include "lends.h"

using namespace einkern;
using Array = xt::xarray<float>;
using Matrix = xt::xtensor<double, 2>;

Array& array();  // never called: only its expressions have types here

static_assert(lends<Array&> && lends<const Array&> && lends<Matrix&>);
static_assert(!lends<Array> && !lends<Matrix>);
using Sum = decltype(array() + array());
static_assert(!lends<Sum> && !lends<Sum&>);
// A view by name is fine; one that ends with the statement may own what it looks at.
using View = decltype(xt::view(array(), 0));
static_assert(lends<View&> && !lends<View>);
static_assert(!lends<decltype(xt::view(array(), xt::keep(0, 2)))&>);  // no strides

TEST_SUITE("tensor") {
  TEST_CASE("xtensor containers in both layouts, written through") {
    Array a = {{0, 1, 2}, {3, 4, 5}};
    CHECK(borrow(a).shape() == Shape{2, 3});
    CHECK(borrow(a).to_vector<float>() == std::vector<float>{0, 1, 2, 3, 4, 5});
    borrow(a)(1, 0).fill(9);
    CHECK(a(1, 0) == 9);
    const xt::xtensor<double, 2, xt::layout_type::column_major> c = a;
    CHECK(borrow(c).strides() == Strides{1, 2});
    CHECK(borrow(c).to_vector<double>() == std::vector<double>{0, 1, 2, 9, 4, 5});
    CHECK(borrow(c).read_only());
    Array scalar = 4.0f;
    CHECK(borrow(scalar).rank() == 0);
    CHECK(borrow(scalar).item<float>() == 4);
    std::vector<std::int32_t> memory{1, 2, 3, 4};
    const auto adapted = xt::adapt(memory, std::vector<std::size_t>{2, 2});
    CHECK(borrow(adapted).dtype() == i32);
    CHECK(borrow(adapted).bytes() == memory.data());
  }

  TEST_CASE("xtensor views keep offset and strides") {
    Matrix m = {{0, 1, 2, 3}, {4, 5, 6, 7}, {8, 9, 10, 11}};
    using Doubles = std::vector<double>;
    auto part = xt::view(m, xt::range(1, 3), xt::range(0, 4, 2));
    CHECK(borrow(part).to_vector<double>() == Doubles{4, 6, 8, 10});
    auto row = xt::view(m, 1);
    CHECK(borrow(row).shape() == Shape{4});
    auto reversed = xt::strided_view(m, {xt::range(2, xt::placeholders::_, -1), xt::all()});
    CHECK(borrow(reversed).to_vector<double>() == Doubles{8, 9, 10, 11, 4, 5, 6, 7, 0, 1, 2, 3});
    auto turned = xt::transpose(m);
    CHECK(borrow(turned)(3, 1).item<double>() == 7);
    borrow(part).fill(-1);
    CHECK(m(2, 2) == -1);
    CHECK(m(0, 0) == 0);
  }
}
#else
TEST_SUITE("tensor") {
  TEST_CASE("borrowing from xtensor") {
    MESSAGE("SKIPPED: xtensor not found, so borrowing from it was not checked");
  }
}
#endif
