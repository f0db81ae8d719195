// SPDX-License-Identifier: Apache-2.0
// Checks views against loops over indices, with labels, zero sizes and negative strides.
#include <doctest/doctest.h>

#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <vector>

#include "../../../engine/base/error.h"
#include "../../../engine/tensor/create.h"

using namespace einkern;
using Ints = std::vector<std::int64_t>;
using Names = std::vector<std::string>;

namespace {

Tensor counting(const Shape& shape) {
  return from_values(
      std::span<const std::int64_t>(arange(element_count(shape)).to_vector<std::int64_t>()), shape);
}

Ints list(const Tensor& t) { return t.to_vector<std::int64_t>(); }
Names names(const Tensor& t) { return t.labels().to_vector(t.rank()); }

// Python's slice, by walking: the definition, not the closed form.
Ints walked(std::int64_t size, std::optional<std::int64_t> start, std::optional<std::int64_t> stop,
            std::int64_t step) {
  const auto bound = [&](std::int64_t b) { return b < 0 ? b + size : b; };
  Ints found;
  if (step > 0) {
    std::int64_t i = start ? bound(*start) : 0;
    if (i < 0) i = 0;
    const std::int64_t end = stop ? bound(*stop) : size;
    for (; i < end && i < size; i += step) found.push_back(i);
  } else {
    std::int64_t i = start ? bound(*start) : size - 1;
    if (i > size - 1) i = size - 1;
    const std::int64_t end = stop ? bound(*stop) : -1;
    for (; i > end && i >= 0; i += step) found.push_back(i);
  }
  return found;
}

}  // namespace

TEST_SUITE("tensor") {
  TEST_CASE("permute takes numbers and labels") {
    const Tensor t = counting({2, 3, 4}).with_labels(Labels({"b", "q", "d"}));
    const Tensor p = t.permute({"d", 0, -2});
    CHECK(p.shape() == Shape{4, 2, 3});
    CHECK(p.strides() == Strides{1, 12, 4});
    CHECK(names(p) == Names{"d", "b", "q"});
    for (int i = 0; i < 2; ++i) {
      for (int j = 0; j < 3; ++j) {
        for (int k = 0; k < 4; ++k) CHECK(p(k, i, j).item<int>() == t(i, j, k).item<int>());
      }
    }
    CHECK(zeros({}).permute({}).rank() == 0);
    CHECK_THROWS_WITH_AS(t.permute({0, 1}), "permute: 2 axes given for rank 3", ShapeError);
    CHECK_THROWS_WITH_AS(t.permute({"b", 0, 1}), "permute: axis 0 is given twice", ShapeError);
    CHECK_THROWS_WITH_AS(t.permute({"b", "q", "h"}), "permute: no axis 'h' among 'b', 'q', 'd'",
                         ShapeError);
  }

  TEST_CASE("slice is Python's slice for every bound and step") {
    std::vector<std::optional<std::int64_t>> bounds{{}};
    for (std::int64_t b = -7; b <= 7; ++b) bounds.emplace_back(b);
    for (std::int64_t size = 0; size <= 5; ++size) {
      const Tensor t = arange(size);
      for (const auto& start : bounds) {
        for (const auto& stop : bounds) {
          for (const std::int64_t step : {-7, -3, -2, -1, 1, 2, 3, 7}) {
            CAPTURE(size);
            CAPTURE(step);
            CHECK(list(t.slice(0, start, stop, step)) == walked(size, start, stop, step));
          }
        }
      }
    }
  }

  TEST_CASE("slices of slices, extreme bounds, and what is refused") {
    constexpr auto kMin = std::numeric_limits<std::int64_t>::min();
    constexpr auto kMax = std::numeric_limits<std::int64_t>::max();
    const Tensor t = counting({3, 4}).with_labels(Labels({"q", "k"}));
    const Tensor s = t.slice("k", {}, {}, -1).slice("k", 1, 4, 2);
    CHECK(list(s) == Ints{2, 0, 6, 4, 10, 8});
    CHECK(names(s) == Names{"q", "k"});
    CHECK(list(t.slice(0, kMin, kMax, kMax)) == Ints{0, 1, 2, 3});
    CHECK(list(t.slice(0, kMax, kMin, kMin)) == Ints{8, 9, 10, 11});
    CHECK(t.slice(1, 2, 2).shape() == Shape{3, 0});
    CHECK_THROWS_WITH_AS(t.slice(1, 0, 2, 0), "slice: step is 0", ValueError);
    CHECK_THROWS_WITH_AS(t.slice("h", 0), "slice: no axis 'h' among 'q', 'k'", ShapeError);
  }

  TEST_CASE("diagonal puts the joined axis last") {
    const Tensor t = counting({3, 2, 3});
    const Tensor d = t.diagonal(0, 2);
    CHECK(d.shape() == Shape{2, 3});
    CHECK(list(d) == Ints{0, 7, 14, 3, 10, 17});
    CHECK(list(t.diagonal(-1, 0)) == list(d));
    CHECK(t.slice(0, 0, 0).slice(2, 0, 0).diagonal(0, 2).shape() == Shape{2, 0});
    CHECK_THROWS_WITH_AS(t.diagonal(0, 1), "diagonal: axis 0 has size 3 but axis 1 has size 2",
                         ShapeError);
    CHECK_THROWS_WITH_AS(t.diagonal(0, -3), "diagonal: axis 0 is given twice", ShapeError);
    const auto labelled = [&](const char* a, const char* b) {
      return names(t.with_labels(Labels({a, "m", b})).diagonal(0, 2));
    };
    CHECK(labelled("i", "i") == Names{"m", "i"});
    CHECK(labelled("i", "") == Names{"m", "i"});
    CHECK(labelled("", "j") == Names{"m", "j"});
    CHECK(labelled("i", "j") == Names{"m", ""});
  }

  TEST_CASE("a diagonal is writable") {
    const Tensor t = zeros({2, 2}, i64);
    t.diagonal(0, 1).fill(1);
    CHECK(list(t) == Ints{1, 0, 0, 1});
  }

  TEST_CASE("broadcast stretches as NumPy does and is read-only") {
    const Tensor t = counting({2, 1}).with_labels(Labels({"q", "k"}));
    const Tensor b = t.broadcast({3, 2, 2});
    CHECK(b.strides() == Strides{0, 1, 0});
    CHECK(list(b) == Ints{0, 0, 1, 1, 0, 0, 1, 1, 0, 0, 1, 1});
    CHECK(names(b) == Names{"", "q", "k"});
    CHECK(b.read_only());
    CHECK(b.slice(0, 0, 1).read_only());
    CHECK(t.broadcast({2, 0}).size() == 0);
    CHECK(zeros({}).broadcast({2, 2}).shape() == Shape{2, 2});
    CHECK(t.broadcast({2, 1}).read_only());
    CHECK_THROWS_WITH_AS(t.broadcast({3, 3, 2}),
                         "broadcast: (2, 1) to (3, 3, 2): axis 0 of size 2 cannot become 3",
                         ShapeError);
    CHECK_THROWS_WITH_AS(t.broadcast({2}), "broadcast: (2, 1) to (2,) would drop axes", ShapeError);
    CHECK_THROWS_WITH_AS(t.broadcast({2, -1}), "broadcast: negative size in shape (2, -1)",
                         ShapeError);
    CHECK_THROWS_WITH_AS(counting({0}).broadcast({3}),
                         "broadcast: (0,) to (3,): axis 0 of size 0 cannot become 3", ShapeError);
  }

  TEST_CASE("split makes one axis several, also of strided views") {
    const Tensor t = counting({2, 6}).with_labels(Labels({"q", "m"}));
    const Tensor s = t.split("m", {"h", "d"}, {3, -1});
    CHECK(s.shape() == Shape{2, 3, 2});
    CHECK(names(s) == Names{"q", "h", "d"});
    CHECK(list(s) == list(t));
    const Tensor r = t.slice(1, {}, {}, -1).split(1, {}, {-1, 2});
    CHECK(list(r) == list(t.slice(1, {}, {}, -1)));
    CHECK(names(r) == Names{"q", "", ""});
    CHECK(counting({0}).split(0, {}, {-1, 3}).shape() == Shape{0, 3});
    CHECK(counting({1}).split(0, {}, {}).rank() == 0);
    CHECK(counting({4}).split(0, {"a", "b", "c"}, {2, 1, 2}).shape() == Shape{2, 1, 2});
    CHECK_THROWS_WITH_AS(t.split("m", {"h", "d"}, {4, -1}),
                         "split: sizes (4, -1) do not make up axis 1 of size 6", ShapeError);
    CHECK_THROWS_WITH_AS(t.split("m", {"h", "d"}, {3, 3}),
                         "split: sizes (3, 3) do not make up axis 1 of size 6", ShapeError);
    CHECK_THROWS_WITH_AS(t.split("m", {"h", "d"}, {-1, -1}),
                         "split: sizes (-1, -1) leave more than one open", ShapeError);
    CHECK_THROWS_WITH_AS(t.split("m", {"h"}, {3, 2}), "split: 1 labels for 2 sizes", ShapeError);
    CHECK_THROWS_WITH_AS(t.split(1, {}, {-2, 3}), "split: negative size in shape (-2, 3)",
                         ShapeError);
    CHECK_THROWS_WITH_AS(counting({0}).split(0, {}, {-1, 0}),
                         "split: sizes (-1, 0) do not make up axis 0 of size 0", ShapeError);
  }

  TEST_CASE("views of many axes") {
    Shape shape(9, 2);
    const Tensor t = counting(shape);
    const Tensor p = t.permute({8, 7, 6, 5, 4, 3, 2, 1, 0});
    for (std::int64_t i = 0; i < 512; ++i) {
      std::int64_t reversed = 0;
      for (int bit = 0; bit < 9; ++bit) reversed |= (i >> bit & 1) << (8 - bit);
      CHECK(list(p)[static_cast<std::size_t>(i)] == reversed);
      if (list(p)[static_cast<std::size_t>(i)] != reversed) break;
    }
  }
}
