// SPDX-License-Identifier: Apache-2.0
// Softmax, log_softmax and logsumexp against exp and log of doubles, and their special rows.
#include <doctest/doctest.h>

#include <cmath>
#include <limits>

#include "../../engine/base/error.h"
#include "../../engine/tensor/create.h"
#include "../../ops/ops.h"
#include "../support/arrays.h"

using namespace einkern;
using namespace einkern::test;

namespace {

struct Rows {
  Array softmax, log_softmax, logsumexp;  // logsumexp keeps the axes with size 1
};

/// Straight from the definition; `sink` broadcasts to the rows.
Rows reference(const Array& s, const std::vector<bool>& over, const Array* sink = nullptr) {
  Sizes kept = s.shape;
  for (std::size_t d = 0; d < kept.size(); ++d) {
    if (over[d]) kept[d] = 1;
  }
  Array top(kept, -INFINITY), total(kept);
  if (sink != nullptr) for_each_index(kept, [&](const Sizes& i) { top.at(i) = sink->at(i); });
  for_each_index(s.shape, [&](const Sizes& i) { top.at(i) = std::max(top.at(i), s.at(i)); });
  if (sink != nullptr) {
    for_each_index(kept, [&](const Sizes& i) { total.at(i) = std::exp(sink->at(i) - top.at(i)); });
  }
  for_each_index(s.shape, [&](const Sizes& i) { total.at(i) += std::exp(s.at(i) - top.at(i)); });
  Rows rows{Array(s.shape), Array(s.shape), Array(kept)};
  for_each_index(kept,
                 [&](const Sizes& i) { rows.logsumexp.at(i) = top.at(i) + std::log(total.at(i)); });
  for_each_index(s.shape, [&](const Sizes& i) {
    rows.log_softmax.at(i) = s.at(i) - rows.logsumexp.at(i);
    rows.softmax.at(i) = std::exp(rows.log_softmax.at(i));
  });
  return rows;
}

}  // namespace

TEST_SUITE("ops") {
  TEST_CASE("over one axis and over several, in both dtypes") {
    for (const DType dtype : {f32, f64}) {
      const Array s = to_array(to_tensor(noise({3, 4, 5}, 31), dtype));
      const Expr t = 10 * to_tensor(s, dtype).with_labels(Labels({"h", "q", "k"}));
      Array scaled = s;
      for (double& v : scaled.data) v *= 10;
      const struct {
        std::vector<Axis> axes;
        std::vector<bool> over;
        Sizes rows;
      } cases[] = {{{"k"}, {false, false, true}, {3, 4}},  {{"q"}, {false, true, false}, {3, 5}},
                   {{0}, {true, false, false}, {4, 5}},    {{"q", "k"}, {false, true, true}, {3}},
                   {{"k", "h"}, {true, false, true}, {4}}, {{0, 1, 2}, {true, true, true}, {}}};
      for (const auto& c : cases) {
        const Rows want = reference(scaled, c.over);
        CHECK(worst_error(to_array(softmax(t, c.axes)), want.softmax) <= tolerance(dtype));
        CHECK(worst_error(to_array(log_softmax(t, c.axes)), want.log_softmax) <= tolerance(dtype));
        CHECK(worst_error(to_array(logsumexp(t, c.axes)), Array(c.rows, want.logsumexp.data)) <=
              tolerance(dtype));
      }
    }
  }

  TEST_CASE("the last axis when none is given; labels and dtype of the scores") {
    const Tensor t = to_tensor(noise({2, 3}, 32), f32).with_labels(Labels({"q", "k"}));
    CHECK(worst_error(to_array(softmax(t)), to_array(softmax(t, "k"))) == 0);
    CHECK(softmax(t).labels().to_vector(2) == std::vector<std::string>{"q", "k"});
    CHECK(logsumexp(t).labels().to_vector(1) == std::vector<std::string>{"q"});
    CHECK(Tensor(softmax(t)).dtype() == f32);
    CHECK(Tensor(softmax(arange(3))).dtype() == f64);
    CHECK(worst_error(to_array(softmax(arange(3))),
                      reference(to_array(arange(3)), {true}).softmax) < 1e-15);
  }

  TEST_CASE("special rows") {
    const double low = std::numeric_limits<double>::lowest();
    const Tensor t = tensor<double>({-inf, -inf, -inf,  //
                                     low, low, low,     //
                                     1, NAN, 2,         //
                                     1, inf, 2,         //
                                     -inf, 0, -inf},
                                    {5, 3});
    const Array p = to_array(softmax(t)), l = to_array(log_softmax(t));
    const Array z = to_array(logsumexp(t));
    for (std::int64_t k = 0; k < 3; ++k) {
      CHECK(p.at({0, k}) == 0);
      CHECK(l.at({0, k}) == -inf);
      CHECK(p.at({1, k}) == doctest::Approx(1.0 / 3));
      CHECK(std::isnan(p.at({2, k})));
      CHECK(p.at({4, k}) == (k == 1 ? 1 : 0));
    }
    CHECK(std::isnan(p.at({3, 1})));
    CHECK(z.data[0] == -inf);
    CHECK(z.data[1] == low);
    CHECK(std::isnan(z.data[2]));
    CHECK(z.data[4] == 0);
  }

  TEST_CASE("scores far from zero neither overflow nor vanish") {
    const Tensor t = tensor<float>({1e30F, 1e30F, -1e30F});
    CHECK(to_array(softmax(t)).data == std::vector<double>{0.5, 0.5, 0});
    CHECK(to_array(softmax(tensor<double>({-1e6, -1e6 + std::log(3.0)}))).data[1] ==
          doctest::Approx(0.75).epsilon(1e-9));
  }

  TEST_CASE("a sink takes part in the denominator only") {
    const Array s = noise({2, 3, 4}, 33), sinks = noise({3}, 34);
    const Expr t = named(to_tensor(s), "bhk");
    const std::vector<bool> over{false, false, true};
    const Array per_head({3, 1}, sinks.data);
    const Rows want = reference(s, over, &per_head);
    const SoftmaxOptions by_name{.sink = to_tensor(sinks)["h"]};
    const SoftmaxOptions by_place{.sink = to_tensor(sinks)};
    for (const SoftmaxOptions& options : {by_name, by_place}) {
      CHECK(worst_error(to_array(softmax(t, "k", options)), want.softmax) < 1e-14);
      CHECK(worst_error(to_array(log_softmax(t, "k", options)), want.log_softmax) < 1e-14);
      CHECK(worst_error(to_array(logsumexp(t, "k", options)), Array({2, 3}, want.logsumexp.data)) <
            1e-14);
    }
    const Array half({1}, 0.5);
    CHECK(worst_error(to_array(softmax(t, "k", {.sink = 0.5})), reference(s, over, &half).softmax) <
          1e-14);
    CHECK(worst_error(to_array(softmax(t, "k", {.sink = -inf})), reference(s, over).softmax) <
          1e-14);
    const Tensor hidden = full({2, 3}, -INFINITY, f64);
    CHECK(to_array(softmax(hidden, -1, {.sink = 0.0})).data == std::vector<double>(6, 0.0));
    CHECK(to_array(logsumexp(hidden, -1, {.sink = 2.0})).data == std::vector<double>(2, 2.0));
  }

  TEST_CASE("errors") {
    const Expr s = named(zeros({2, 3}), "qk");
    CHECK_THROWS_WITH_AS(softmax(s, {}), "softmax: no axis to normalise over", ShapeError);
    CHECK_THROWS_WITH_AS(softmax(s, {"k", "k"}), "softmax: axis 1 is named twice", ShapeError);
    CHECK_THROWS_WITH_AS(softmax(s, "k", {.sink = zeros({5})}),
                         "softmax: axis 'q' has size 2 and 5 in (q=2) and (5,)", ShapeError);
    CHECK_THROWS_WITH_AS(softmax(s, "k", {.sink = zeros({2})["h"]}),
                         "softmax: label 'h' of a named term is not among the axes (q=2)",
                         ShapeError);
    CHECK_THROWS_WITH_AS(softmax(s, "k", {.sink = zeros({4, 2})}),
                         "softmax: sink (4, 2) does not fit the rows (q=2)", ShapeError);
  }

  TEST_CASE("empty scores") {
    CHECK(Tensor(softmax(zeros({0, 3}))).shape() == Shape{0, 3});
    CHECK(Tensor(softmax(zeros({3, 0}))).shape() == Shape{3, 0});
    CHECK(to_array(logsumexp(zeros({2, 0}, f64))).data == std::vector<double>{-inf, -inf});
  }
}
