// SPDX-License-Identifier: Apache-2.0
// Checks borrowing of pointers, spans, containers and whatever has the shape of an mdspan.
#include <doctest/doctest.h>

#include <array>
#include <cstdint>
#include <limits>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "../../../engine/base/error.h"
#include "../../../engine/tensor/borrow.h"
#include "../../../engine/tensor/create.h"
#include "../../../engine/tensor/storage.h"
#include "lends.h"

using namespace einkern;

namespace {

// A look-alike of std::mdspan, under its names: a strided view of rank 2.
template <class T, class Reference = T&>
struct Mdspan {
  using element_type = T;       // NOLINT(readability-identifier-naming)
  using reference = Reference;  // NOLINT(readability-identifier-naming)
  T* pointer;
  std::array<std::size_t, 2> extents, steps;

  static constexpr std::size_t rank() { return 2; }
  int extent(std::size_t r) const { return static_cast<int>(extents[r]); }
  std::size_t stride(std::size_t r) const { return steps[r]; }
  T* data_handle() const { return pointer; }
};

static_assert(lends<std::span<float>> && lends<std::span<const float, 4>>);
static_assert(lends<std::vector<float>&> && lends<const std::vector<std::int16_t>&>);
static_assert(lends<std::array<double, 3>&> && lends<float (&)[3]>);
static_assert(lends<Mdspan<float>> && lends<const Mdspan<const double>&>);
// Owners that end with the statement.
static_assert(!lends<std::vector<float>> && !lends<const std::vector<float>>);
static_assert(!lends<std::array<float, 3>>);
// What has no array of elements, or other elements.
static_assert(!lends<std::vector<bool>&> && !lends<std::vector<unsigned>&>);
static_assert(!lends<std::vector<float*>&> && !lends<std::span<long double>>);
// An mdspan whose accessor computes its elements.
static_assert(!lends<Mdspan<float, float>>);

template <class S>
concept LendsShaped = requires(S&& source) {
  borrow(std::forward<S>(source), Shape{2});
};
static_assert(LendsShaped<std::vector<float>&> && LendsShaped<std::span<const float>>);
static_assert(!LendsShaped<std::vector<float>>);

}  // namespace

TEST_SUITE("tensor") {
  TEST_CASE("a pointer with strides, negative ones too") {
    std::vector<float> memory{0, 1, 2, 3, 4, 5};
    const Tensor t = borrow(memory.data() + 5, {2, 3}, {-3, -1});
    CHECK(t.to_vector<float>() == std::vector<float>{5, 4, 3, 2, 1, 0});
    CHECK(t.bytes() == memory.data() + 5);
    CHECK(t.storage()->data() == memory.data());
    CHECK(t.storage()->bytes() == 6 * sizeof(float));
    CHECK(t.labels().empty());
    t(0, 0).fill(9);
    CHECK(memory.back() == 9);
    CHECK(borrow(memory.data(), {3, 2}).strides() == Strides{2, 1});
    CHECK_FALSE(t.read_only());
  }

  TEST_CASE("a pointer to const is read-only") {
    const double memory[] = {1, 2};
    const Tensor t = borrow(memory, {2});
    CHECK(t.dtype() == f64);
    CHECK(t.read_only());
    CHECK(t.slice(0, 1).read_only());
    CHECK_THROWS_WITH_AS(t.fill(0), "fill: the tensor is read-only", ValueError);
  }

  TEST_CASE("keep_alive lives as long as the last view") {
    auto owner = std::make_shared<std::vector<std::int8_t>>(4);
    const std::weak_ptr<std::vector<std::int8_t>> watch = owner;
    {
      Tensor view;
      {
        const Tensor t = borrow(owner->data(), {4}, {1}, owner);
        owner.reset();
        view = t.slice(0, 2);
      }
      REQUIRE_FALSE(watch.expired());
      view.fill(7);
      CHECK(watch.lock()->back() == 7);
    }
    CHECK(watch.expired());
  }

  TEST_CASE("what a lender cannot mean is refused") {
    float memory[4] = {};
    constexpr std::int64_t kMax = std::numeric_limits<std::int64_t>::max();
    CHECK_THROWS_WITH_AS(borrow(memory, {2, 2}, {1}), "borrow: strides (1,) for shape (2, 2)",
                         ShapeError);
    CHECK_THROWS_WITH_AS(borrow(memory, {-2}), "borrow: negative size in shape (-2,)", ShapeError);
    CHECK_THROWS_WITH_AS(borrow(static_cast<float*>(nullptr), {2}), "borrow: null for shape (2,)",
                         ValueError);
    CHECK_THROWS_WITH_AS(borrow(memory, {3}, {kMax}),
                         "borrow: shape (3,) with strides (9223372036854775807,) reaches beyond "
                         "64-bit offsets",
                         ShapeError);
    CHECK_THROWS_AS(borrow(memory, {2, 2}, {1LL << 60, 1LL << 60}), ShapeError);
    CHECK_THROWS_AS(borrow(memory, {2}, {std::numeric_limits<std::int64_t>::min()}), ShapeError);
    CHECK(borrow(static_cast<float*>(nullptr), {0, 3}).size() == 0);
    CHECK(borrow(memory, {1, 1}, {kMax, kMax}).item<float>() == 0);
  }

  TEST_CASE("spans and containers are 1-d, or have the given shape") {
    std::vector<std::int32_t> v{1, 2, 3, 4, 5, 6};
    CHECK(borrow(v).shape() == Shape{6});
    CHECK(borrow(v).dtype() == i32);
    CHECK(borrow(std::span(v).subspan(2, 3)).to_vector<int>() == std::vector<int>{3, 4, 5});
    borrow(std::span(v), {2, 3}).slice(1, 1, 2).fill(0);
    CHECK(v == std::vector<std::int32_t>{1, 0, 3, 4, 0, 6});
    CHECK(borrow(std::as_const(v)).read_only());
    CHECK(borrow(std::span<const std::int32_t>(v), {3, 2}).read_only());
    float raw[] = {1, 2};
    CHECK(borrow(raw).shape() == Shape{2});
    CHECK(borrow(std::span<float>()).shape() == Shape{0});
    CHECK(borrow(v, {6, 1})(3, 0).item<int>() == 4);
    CHECK_THROWS_WITH_AS(borrow(v, {2, 2}), "borrow: 6 elements for shape (2, 2)", ShapeError);
  }

  TEST_CASE("an mdspan keeps its strides") {
    std::vector<double> memory{0, 1, 2, 3, 4, 5, 6, 7};
    const Tensor t = borrow(Mdspan<double>{memory.data(), {2, 3}, {1, 2}});
    CHECK(t.shape() == Shape{2, 3});
    CHECK(t.strides() == Strides{1, 2});
    CHECK(t.to_vector<double>() == std::vector<double>{0, 2, 4, 1, 3, 5});
    CHECK_FALSE(t.read_only());
    CHECK(borrow(Mdspan<const double>{memory.data(), {1, 1}, {1, 1}}).read_only());
  }
}
