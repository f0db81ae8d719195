// SPDX-License-Identifier: Apache-2.0
// Checks borrowing from the real Eigen, where it is installed.
#include <doctest/doctest.h>

#ifdef EINKERN_HAVE_EIGEN
#include <Eigen/Dense>

#include <vector>

#include "../../../engine/base/error.h"
#include "../../../engine/tensor/create.h"
#include "lends.h"

using namespace einkern;
using Eigen::MatrixXd;
using Eigen::MatrixXf;
using Eigen::VectorXf;
using RowMajor = Eigen::Matrix<float, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;

MatrixXf& matrix();  // never called: only its expressions have types here

static_assert(lends<MatrixXf&> && lends<const MatrixXf&> && lends<Eigen::ArrayXXf&>);
static_assert(lends<Eigen::Map<MatrixXf>> && lends<Eigen::Ref<MatrixXf>>);
static_assert(lends<decltype(matrix().block(0, 0, 1, 1))> && lends<decltype(matrix().row(0))>);
static_assert(lends<decltype(matrix().transpose())> && lends<decltype(matrix().diagonal())>);
// Owners that end with the statement; Ref<const> keeps a temporary of its own.
static_assert(!lends<MatrixXf> && !lends<VectorXf> && !lends<Eigen::Matrix4f> &&
              !lends<Eigen::ArrayXXf>);
static_assert(!lends<Eigen::Ref<const MatrixXf>> && lends<const Eigen::Ref<const MatrixXf>&>);
// Expressions that nobody has evaluated, even by name.
using Sum = decltype(matrix() + matrix());
static_assert(!lends<Sum> && !lends<Sum&> && !lends<decltype(matrix() * matrix())>);
static_assert(!lends<decltype(matrix().cast<double>())> && !lends<decltype(2.0f * matrix())>);
// Other element types.
static_assert(!lends<Eigen::MatrixXcf&>);

TEST_SUITE("tensor") {
  TEST_CASE("Eigen matrices in both storage orders, written through") {
    MatrixXf columns(2, 3);
    columns << 0, 1, 2, 3, 4, 5;
    RowMajor rows = columns;
    for (const Tensor& t : {borrow(columns), borrow(rows)}) {
      CHECK(t.shape() == Shape{2, 3});
      CHECK(t.to_vector<float>() == std::vector<float>{0, 1, 2, 3, 4, 5});
      t(1, 2).fill(9);
    }
    CHECK(borrow(columns).strides() == Strides{1, 2});
    CHECK(borrow(rows).strides() == Strides{3, 1});
    CHECK(columns(1, 2) == 9);
    CHECK(rows(1, 2) == 9);
    const MatrixXf& constant = columns;
    CHECK(borrow(constant).read_only());
    CHECK_FALSE(borrow(columns).read_only());
  }

  TEST_CASE("Eigen vectors are 1-d, fixed sizes too") {
    VectorXf v(3);
    v << 1, 2, 3;
    CHECK(borrow(v).shape() == Shape{3});
    Eigen::RowVector4d r(1, 2, 3, 4);
    CHECK(borrow(r).shape() == Shape{4});
    CHECK(borrow(r).to_vector<double>() == std::vector<double>{1, 2, 3, 4});
    Eigen::Matrix<std::int64_t, 2, 2> fixed;
    fixed << 1, 2, 3, 4;
    CHECK(borrow(fixed).dtype() == i64);
    CHECK(borrow(fixed).to_vector<int>() == std::vector<int>{1, 2, 3, 4});
  }

  TEST_CASE("Eigen views: map, ref, block, row, column, transpose, diagonal") {
    MatrixXd m(3, 4);
    for (int i = 0; i < 12; ++i) m(i / 4, i % 4) = i;
    using Doubles = std::vector<double>;
    CHECK(borrow(m.block(1, 1, 2, 2)).to_vector<double>() == Doubles{5, 6, 9, 10});
    CHECK(borrow(m.row(1)).to_vector<double>() == Doubles{4, 5, 6, 7});
    CHECK(borrow(m.row(1)).strides() == Strides{3});
    CHECK(borrow(m.col(2)).to_vector<double>() == Doubles{2, 6, 10});
    CHECK(borrow(m.transpose()).shape() == Shape{4, 3});
    CHECK(borrow(m.transpose())(3, 1).item<double>() == 7);
    CHECK(borrow(m.diagonal()).to_vector<double>() == Doubles{0, 5, 10});
    using Stride = Eigen::Stride<Eigen::Dynamic, Eigen::Dynamic>;
    const Eigen::Map<MatrixXd, 0, Stride> strided(m.data(), 2, 2, Stride(6, 2));
    CHECK(borrow(strided).strides() == Strides{2, 6});
    CHECK(borrow(strided).to_vector<double>() ==
          Doubles{m.data()[0], m.data()[6], m.data()[2], m.data()[8]});
    const Eigen::Ref<const MatrixXd> lent = m.block(0, 0, 2, 3);
    CHECK(borrow(lent).read_only());
    CHECK(borrow(lent).to_vector<double>() == Doubles{0, 1, 2, 4, 5, 6});
    borrow(m.row(0)).fill(-1);
    CHECK(m(0, 3) == -1);
    CHECK(m(1, 0) == 4);
    MatrixXd nothing(0, 3);
    CHECK(borrow(nothing).shape() == Shape{0, 3});
  }
}
#else
TEST_SUITE("tensor") {
  TEST_CASE("borrowing from Eigen") {
    MESSAGE("SKIPPED: Eigen not found, so borrowing from it was not checked");
  }
}
#endif
