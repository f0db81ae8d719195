// SPDX-License-Identifier: Apache-2.0
// Masks: which elements of the scores stay, and that selection wins over arithmetic.
#include <doctest/doctest.h>

#include <cmath>
#include <functional>
#include <limits>

#include "../../engine/base/error.h"
#include "../../engine/tensor/create.h"
#include "../../ops/ops.h"
#include "../support/arrays.h"

using namespace einkern;
using namespace einkern::test;

namespace {

constexpr std::int64_t kB = 2, kH = 3, kQ = 4, kK = 7;

/// Scores (b, h, q, k) that are NaN wherever they should be hidden.
template <class Visible>
void check_mask(const std::vector<Mask>& masks, const Visible& visible) {
  Array s = noise({kB, kH, kQ, kK}, 41), want = s;
  std::int64_t hidden = 0;
  for_each_index(s.shape, [&](const Sizes& i) {
    if (visible(i[0], i[1], i[2], i[3])) return;
    s.at(i) = NAN;
    want.at(i) = -INFINITY;
    ++hidden;
  });
  CHECK(hidden > 0);
  CHECK(hidden < static_cast<std::int64_t>(s.data.size()));
  const Tensor scores = to_tensor(s).with_labels(Labels({"b", "h", "q", "k"}));
  CHECK(worst_error(Tensor(mask(scores, masks)), want) == 0);
}

}  // namespace

TEST_SUITE("ops") {
  TEST_CASE("causal: top-left, offsets, bottom-right") {
    using I = std::int64_t;
    check_mask({causal("q", "k")}, [](I, I, I q, I k) { return k <= q; });
    check_mask({causal()}, [](I, I, I q, I k) { return k <= q; });
    check_mask({causal("q", "k", Align::top_left)}, [](I, I, I q, I k) { return k <= q; });
    check_mask({causal("q", "k", Align::bottom_right)},
               [](I, I, I q, I k) { return k <= q + kK - kQ; });
    check_mask({causal(-2, -1, bottom_right)}, [](I, I, I q, I k) { return k <= q + kK - kQ; });
    check_mask({causal("k", "q", bottom_right)}, [](I, I, I q, I k) { return q <= k + kQ - kK; });
    check_mask({causal("q", "k", 2)}, [](I, I, I q, I k) { return k <= q + 2; });
    check_mask({causal("q", "k", -2)}, [](I, I, I q, I k) { return k <= q - 2; });
    check_mask({causal("q", "k", Causal(-1))}, [](I, I, I q, I k) { return k <= q - 1; });
    check_mask({causal("h", "b")}, [](I b, I h, I, I) { return b <= h; });
  }

  TEST_CASE("windows, with bounds of any size") {
    using I = std::int64_t;
    constexpr I kMost = std::numeric_limits<I>::max();
    check_mask({window("q", "k", 2, 1)}, [](I, I, I q, I k) { return q - 2 <= k && k <= q + 1; });
    check_mask({window("q", "k", 0, 0)}, [](I, I, I q, I k) { return k == q; });
    check_mask({window("q", "k", 1, -1)}, [](I, I, I q, I k) { return k >= q - 1; });
    check_mask({window("q", "k", -1, 1)}, [](I, I, I q, I k) { return k <= q + 1; });
    check_mask({window(-2, -1, 1, kMost)}, [](I, I, I q, I k) { return k >= q - 1; });
    check_mask({window("q", "k", -1, -1), causal("q", "k")}, [](I, I, I q, I k) { return k <= q; });
    check_mask({window("q", "k", kMost, kMost), causal("q", "k")},
               [](I, I, I q, I k) { return k <= q; });
    CHECK_THROWS_WITH_AS(window("q", "k", -2, 0),
                         "window: bounds are -2 and 0; -1 is open, below is not a bound",
                         ValueError);
  }

  TEST_CASE("lengths and segments") {
    using I = std::int64_t;
    const std::vector<I> n{5, 2}, sq{0, 0, 1, 2}, sk{0, 1, 1, 2, 2, 9, 0};
    check_mask({lengths(tensor<I>({5, 2}), "b", "k")},
               [&](I b, I, I, I k) { return k < n[static_cast<std::size_t>(b)]; });
    check_mask({lengths(tensor<std::int32_t>({9, -3}), "b", "k")},
               [](I b, I, I, I) { return b == 0; });
    const auto same = [&](I, I, I q, I k) {
      return sq[static_cast<std::size_t>(q)] == sk[static_cast<std::size_t>(k)];
    };
    const Tensor q = from_values(std::span<const I>(sq), {kQ});
    const Tensor k = from_values(std::span<const I>(sk), {kK});
    check_mask({segments(q, k)}, same);
    check_mask({segments(q["q"], k["k"])}, same);
    const Tensor per_entry = tensor<I>({0, 0, 0, 0, 1, 1, 1, 1}, {2, 4});
    check_mask({segments(per_entry["bq"], zeros({kB, kK}, i64)["bk"])},
               [](I b, I, I, I) { return b == 0; });
    CHECK_THROWS_WITH_AS(lengths(ones({2}), "b", "k"), "lengths: lengths are f32, not integers",
                         TypeError);
    CHECK_THROWS_WITH_AS(lengths(ones({2, 1}, i64), "b", "k"),
                         "lengths: lengths have shape (2, 1); one axis is needed, for 'b'",
                         ShapeError);
    CHECK_THROWS_WITH_AS(segments(q["q"], k),
                         "segments: either all axes of both operands carry labels, or none does",
                         ShapeError);
    CHECK_THROWS_WITH_AS(segments(q, 3),
                         "segments: a segment number for every position is needed, not a scalar",
                         ShapeError);
  }

  TEST_CASE("dense masks align from the right, or by name") {
    using I = std::int64_t;
    const auto dense = [](const Sizes& shape, unsigned seed) {
      Array a = noise(shape, seed);
      for (double& v : a.data) v = v > 0 ? 1 : 0;
      return a;
    };
    unsigned seed = 42;
    for (const Sizes& shape : {Sizes{kK}, Sizes{kQ, kK}, Sizes{kQ, 1}, Sizes{kH, kQ, kK},
                               Sizes{kH, 1, 1}, Sizes{kB, kH, kQ, kK}, Sizes{kB, 1, 1, kK}}) {
      const Array m = dense(shape, ++seed);
      check_mask({to_tensor(m, boolean)}, [&](I b, I h, I q, I k) {
        return m.at({b, h, q, k}) != 0;
      });
    }
    const Array m = dense({kK, kB}, 61);
    check_mask({to_tensor(m, boolean)["kb"]}, [&](I b, I, I, I k) { return m.at({k, b}) != 0; });
  }

  TEST_CASE("several masks intersect; arithmetic on positions is a mask") {
    using I = std::int64_t;
    check_mask({causal("q", "k", bottom_right), window("q", "k", 1, -1), index("h") != 1},
               [](I, I h, I q, I k) { return k <= q + kK - kQ && k >= q - 1 && h != 1; });
    check_mask({mod(index("q") + index("k"), 2) == 0 || causal("q", "k")},
               [](I, I, I q, I k) { return (q + k) % 2 == 0 || k <= q; });
    check_mask({!causal("q", "k") && index("k") < 5},
               [](I, I, I q, I k) { return k > q && k < 5; });
  }

  TEST_CASE("a bias adds; where it is -inf it selects") {
    const Array s({1, 4}, {1, INFINITY, NAN, 2}), b({1, 4}, {0.5, -INFINITY, -INFINITY, NAN});
    const Array got = to_array(mask(to_tensor(s), bias(to_tensor(b))));
    CHECK(got.data[0] == 1.5);
    CHECK(got.data[1] == -INFINITY);
    CHECK(got.data[2] == -INFINITY);
    CHECK(std::isnan(got.data[3]));
    // Plain addition is IEEE arithmetic.
    CHECK(std::isnan(to_array(to_tensor(s) + to_tensor(b)).data[1]));
    // Whatever a second bias holds, what one hides stays hidden; masks come after every bias.
    const Array second({1, 4}, {1, INFINITY, 1, 1});
    const Tensor first = to_tensor(Array({1, 4}, {0, -INFINITY, 0, 0}));
    const Tensor keep = tensor<bool>({true, true, false, true}, {1, 4});
    CHECK(to_array(mask(zeros({1, 4}, f64), keep, bias(first), bias(to_tensor(second)))).data ==
          std::vector<double>{1, -INFINITY, -INFINITY, 1});
    CHECK(to_array(mask(zeros({2}, f64), bias(tensor<std::int64_t>({1, 2})))).data ==
          std::vector<double>{1, 2});
    CHECK(Tensor(mask(zeros({2}), bias(1.5))).dtype() == f32);
  }

  TEST_CASE("hidden keys contribute nothing, whatever their values hold") {
    const Array scores = noise({4, 7}, 71);
    Array v = noise({7, 3}, 72), clean = v;
    for (std::int64_t e = 0; e < 3; ++e) {
      v.at({6, e}) = e == 0 ? NAN : INFINITY;
      v.at({5, e}) = -INFINITY;
      clean.at({6, e}) = clean.at({5, e}) = 0;
    }
    const Expr s = to_tensor(scores).with_labels(Labels({"q", "k"}));
    const auto attend = [&](const Expr& masked, const Array& values) {
      return to_array(einsum("qk,ke->qe", softmax(masked, "k"), to_tensor(values)));
    };
    const Tensor none = tensor<double>({0, 0, 0, 0, 0, -inf, -inf});
    for (const Expr& masked : {mask(s, index("k") < 5), mask(s, bias(none)),
                               where(index("k") < 5, s, -inf), mask(s, causal("q", "k"))}) {
      const Array got = attend(masked, v);
      for (const double x : got.data) CHECK(std::isfinite(x));
      CHECK(worst_error(got, attend(masked, clean)) < 1e-14);
    }
    // A key that is seen shows what it holds.
    CHECK(std::isnan(attend(mask(s, index("k") < 7), v).data[0]));
  }

  TEST_CASE("errors name what does not fit") {
    const Expr s = zeros({2, 3}).with_labels(Labels({"q", "k"}));
    CHECK_THROWS_WITH_AS(mask(s, zeros({2, 3})),
                         "mask: a mask is f32, not bool; give numbers to add as bias(...)",
                         TypeError);
    CHECK_THROWS_WITH_AS(bias(zeros({2}, boolean)),
                         "bias: truth values cannot be added; give them to mask as they are",
                         TypeError);
    CHECK_THROWS_WITH_AS(mask(s, causal("q", "j")),
                         "mask: label 'j' of a named term is not among the axes (q=2, k=3)",
                         ShapeError);
    CHECK_THROWS_WITH_AS(mask(s, zeros({2, 4}, boolean)),
                         "mask: axis 'k' has size 3 and 4 in (q=2, k=3) and (2, 4)", ShapeError);
  }
}
