// SPDX-License-Identifier: Apache-2.0
// layer_norm and rms_norm against their formulas in double.
#include <doctest/doctest.h>

#include <cmath>
#include <optional>

#include "../../engine/base/error.h"
#include "../../ops/ops.h"
#include "../support/arrays.h"

using namespace einkern;
using namespace einkern::test;

namespace {

/// Over the axes where `over` is set; a weight and a bias broadcast from the right.
Array normalised(const Array& x, const std::vector<bool>& over, bool centred, double eps,
                 const Array& weight, const Array& bias) {
  Sizes kept = x.shape;
  double count = 1;
  for (std::size_t d = 0; d < kept.size(); ++d) {
    if (!over[d]) continue;
    count *= static_cast<double>(kept[d]);
    kept[d] = 1;
  }
  Array mean(kept), square(kept), y(x.shape);
  if (centred) {
    for_each_index(x.shape, [&](const Sizes& i) { mean.at(i) += x.at(i) / count; });
  }
  for_each_index(
      x.shape, [&](const Sizes& i) { square.at(i) += std::pow(x.at(i) - mean.at(i), 2) / count; });
  for_each_index(x.shape, [&](const Sizes& i) {
    y.at(i) = (x.at(i) - mean.at(i)) / std::sqrt(square.at(i) + eps) * weight.at(i) + bias.at(i);
  });
  return y;
}

}  // namespace

TEST_SUITE("ops") {
  TEST_CASE("layer_norm and rms_norm over one axis and over several, with weight and bias") {
    const Array one({1}, 1), none({1}, 0);
    for (const DType dtype : {f32, f64}) {
      const Array x = to_array(to_tensor(noise({3, 5, 7}, 81), dtype));
      const Array w = to_array(to_tensor(noise({7}, 82), dtype));
      const Array b = to_array(to_tensor(noise({5, 7}, 83), dtype));
      const Tensor t = to_tensor(x, dtype), tw = to_tensor(w, dtype), tb = to_tensor(b, dtype);
      const std::vector<bool> last{false, false, true}, both{false, true, true};
      const std::vector<bool> middle{false, true, false};
      const double bound = tolerance(dtype);
      CHECK(worst_error(Tensor(layer_norm(t)), normalised(x, last, true, 1e-5, one, none)) <=
            bound);
      CHECK(worst_error(Tensor(rms_norm(t)), normalised(x, last, false, 1e-5, one, none)) <= bound);
      CHECK(worst_error(Tensor(layer_norm(t, {1, 2}, {.weight = tw, .bias = tb, .eps = 0.5})),
                        normalised(x, both, true, 0.5, w, b)) <= bound);
      CHECK(worst_error(Tensor(rms_norm(t, 1, {.weight = tw, .eps = 0})),
                        normalised(x, middle, false, 0, w, none)) <= bound);
      const Expr labelled = named(t, "bqd");
      CHECK(layer_norm(labelled, "d").labels()[2] == "d");
      const Array per_row = to_array(to_tensor(noise({5, 1}, 84), dtype));
      const Expr by_name = merge(Expr(to_tensor(per_row, dtype)), {0, 1})["q"];
      CHECK(worst_error(Tensor(layer_norm(t.with_labels(Labels({"b", "q", "d"})), "d",
                                          {.weight = by_name})),
                        normalised(x, last, true, 1e-5, per_row, none)) <= bound);
      CHECK(Tensor(layer_norm(t)).dtype() == dtype);
    }
    CHECK(layer_norm(arange(4)).dtype() == f64);
    CHECK(layer_norm(ones({4}, f16)).dtype() == f32);
  }

  TEST_CASE("constant rows, large offsets and empty axes") {
    CHECK(Tensor(layer_norm(full({2, 4}, 3))).to_vector<float>() == std::vector<float>(8, 0));
    // The variance of numbers far from 0 is that of their distances from the mean.
    const Tensor far(Expr(arange(4, f32)) + 16777216.0 / 4);
    CHECK(worst_error(Tensor(layer_norm(far)),
                      Array({4}, {-1.3416354, -0.4472118, 0.4472118, 1.3416354})) <= 1e-6);
    CHECK(Tensor(layer_norm(zeros({0, 4}))).size() == 0);
  }

  TEST_CASE("normalisations refuse what does not fit") {
    const Tensor x = zeros({2, 4});
    CHECK_THROWS_WITH_AS(layer_norm(x, -1, {.weight = zeros({3, 1, 4})}),
                         "layer_norm: weight (3, 1, 4) does not broadcast to x (2, 4)", ShapeError);
    CHECK_THROWS_WITH_AS(rms_norm(x, -1, {.bias = zeros({3, 2, 4})}),
                         "rms_norm: bias (3, 2, 4) does not broadcast to x (2, 4)", ShapeError);
    CHECK_THROWS_WITH_AS(rms_norm(x, -1, {.eps = -1}), "rms_norm: eps is -1; it must be at least 0",
                         ValueError);
    CHECK_THROWS_AS(layer_norm(x, 2), ShapeError);
    CHECK_THROWS_AS(layer_norm(x, -1, {.weight = zeros({3})}), ShapeError);
  }
}
