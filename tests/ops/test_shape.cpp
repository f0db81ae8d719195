// SPDX-License-Identifier: Apache-2.0
// Words that rearrange axes, and the linear layer.
#include <doctest/doctest.h>

#include "../../engine/base/error.h"
#include "../../engine/graph/compiled.h"
#include "../../engine/tensor/create.h"
#include "../../ops/ops.h"
#include "../support/arrays.h"

using namespace einkern;
using namespace einkern::test;

namespace {

using Names = std::vector<std::string>;

Names labels_of(const Expr& e) { return e.labels().to_vector(e.rank()); }

}  // namespace

TEST_SUITE("ops") {
  TEST_CASE("permute by equation and by axes") {
    const Array x = noise({2, 3, 4}, 81);
    const Tensor t = to_tensor(x);
    Array want({3, 4, 2});
    for_each_index(x.shape, [&](const Sizes& i) { want.at({i[1], i[2], i[0]}) = x.at(i); });
    CHECK(worst_error(to_array(permute(t, "abc->bca")), want) == 0);
    CHECK(worst_error(to_array(permute(t, {1, 2, 0})), want) == 0);
    CHECK(worst_error(to_array(permute(t["abc"], {"b", "c", "a"})), want) == 0);
    CHECK(labels_of(permute(t, "abc->bca")) == Names{"b", "c", "a"});
    CHECK(labels_of(permute(t, std::string("[one] q k -> q [one] k"))) == Names{"q", "one", "k"});
    const Expr s = permute(t["abc"], "...qk->...kq");
    CHECK(labels_of(s) == Names{"a", "k", "q"});
    CHECK(s.shape() == Shape{2, 4, 3});
  }

  TEST_CASE("permute refuses what is not the same labels in another order") {
    const Tensor t = zeros({2, 3});
    CHECK_THROWS_WITH_AS(permute(t, "ab->a"),
                         "permute: both terms must hold the same labels, each once\n"
                         "    ab->a\n"
                         "    ^^  ^",
                         SyntaxError);
    CHECK_THROWS_WITH_AS(permute(t, "aa->a"),
                         "permute: both terms must hold the same labels, each once\n"
                         "    aa->a\n"
                         "    ^^  ^",
                         SyntaxError);
    CHECK_THROWS_WITH_AS(permute(t, "ab"),
                         "permute: one term, an arrow and the same labels in their new order are "
                         "needed\n"
                         "    ab\n"
                         "    ^^",
                         SyntaxError);
    CHECK_THROWS_AS(permute(t, "abc->cba"), ShapeError);
    CHECK_THROWS_WITH_AS(permute(t, {0}), "permute: 1 axes are given for shape (2, 3)", ShapeError);
  }

  TEST_CASE("split and merge are each other's inverse") {
    const Array x = noise({2, 12, 3}, 82);
    const Expr t = named(to_tensor(x), "bmn");
    const Expr heads = split(t, "m", {"h", "d"}, {4, -1});
    CHECK(heads.shape() == Shape{2, 4, 3, 3});
    CHECK(labels_of(heads) == Names{"b", "h", "d", "n"});
    CHECK(to_array(heads).data == x.data);
    CHECK(worst_error(to_array(merge(heads, {"h", "d"}, "m")), x) == 0);
    CHECK(labels_of(merge(heads, {"h", "d"}, "m")) == Names{"b", "m", "n"});
    // Merging axes that do not nest in memory copies.
    Array swapped({2, 3, 12});
    for_each_index(x.shape, [&](const Sizes& i) { swapped.at({i[0], i[2], i[1]}) = x.at(i); });
    CHECK(to_array(merge(permute(t, "bmn->bnm"), {-2, -1})).data == swapped.data);
    CHECK_THROWS_WITH_AS(merge(heads, {"d", "h"}),
                         "merge: axes 2 and 1 are not neighbours in this order", ShapeError);
    CHECK_THROWS_WITH_AS(merge(heads, {"b", "d"}),
                         "merge: axes 0 and 2 are not neighbours in this order", ShapeError);
    CHECK_THROWS_WITH_AS(merge(heads, {}), "merge: no axis is given", ShapeError);
    CHECK_THROWS_WITH_AS(split(t, "m", {"h", "d"}, {5, -1}),
                         "split: axis 1 of size 12 does not split into (5, -1)", ShapeError);
  }

  TEST_CASE("slice counts as Python counts") {
    const Tensor t = arange(0, 10, 1, f64);
    CHECK(to_array(slice(t, 0, 2, 8, 3)).data == std::vector<double>{2, 5});
    CHECK(to_array(slice(t, 0, -3)).data == std::vector<double>{7, 8, 9});
    CHECK(to_array(slice(t, 0, {}, 2)).data == std::vector<double>{0, 1});
    CHECK(to_array(slice(t, 0, {}, {}, -4)).data == std::vector<double>{9, 5, 1});
    CHECK(to_array(slice(t, 0, 7, 99)).data == std::vector<double>{7, 8, 9});
    CHECK(to_array(slice(t, 0, 5, 2)).data.empty());
    CHECK_THROWS_WITH_AS(slice(t, 0, 0, 1, 0), "slice: step is 0", ValueError);
  }

  TEST_CASE("repeat, expand and concat") {
    const Array x = noise({2, 3}, 83);
    Array want({2, 6});
    for_each_index(want.shape, [&](const Sizes& i) { want.at(i) = x.at({i[0], i[1] / 2}); });
    CHECK(worst_error(to_array(repeat(to_tensor(x), 1, 2)), want) == 0);
    CHECK(labels_of(repeat(to_tensor(x)["qk"], "k", 2)) == Names{"q", "k"});
    CHECK(Tensor(repeat(to_tensor(x), 0, 0)).shape() == Shape{0, 3});
    CHECK_THROWS_WITH_AS(repeat(to_tensor(x), 0, -1), "repeat: -1 times is less than none",
                         ValueError);

    const Expr wide = expand(named(to_tensor(x), "qk"), "h", 4);
    // A negative number is no size that is known later, however many such sizes there are.
    for (const char* name : {"one", "two", "three", "four"}) dyn(name);
    CHECK_THROWS_WITH_AS(expand(wide, "g", -3), "expand: size -3 is negative", ShapeError);
    CHECK_THROWS_WITH_AS(
        input(f32, {2, -3}),
        "input: size -3 of axis 1 is negative; one that is not known yet is dyn(\"name\")",
        ShapeError);
    CHECK(expand(wide, "g", dyn("two")).rank() == 4);
    CHECK(labels_of(wide) == Names{"h", "q", "k"});
    const Array all = to_array(wide);
    for_each_index({4, 2, 3}, [&](const Sizes& i) { CHECK(all.at(i) == x.at(i)); });

    const Array y = noise({2, 4}, 84);
    Array joined({2, 7});
    for_each_index(joined.shape, [&](const Sizes& i) {
      joined.at(i) = i[1] < 3 ? x.at(i) : y.at({i[0], i[1] - 3});
    });
    CHECK(worst_error(to_array(concat({to_tensor(x), to_tensor(y)}, -1)), joined) == 0);
    CHECK(worst_error(to_array(concat({to_tensor(x)}, 0)), x) == 0);
    CHECK(Tensor(concat({to_tensor(x, f32), to_tensor(y, f64)}, 1)).dtype() == f64);
    CHECK_THROWS_WITH_AS(concat({}, 0), "concat: there are no parts", ValueError);
    CHECK_THROWS_WITH_AS(concat({to_tensor(x), to_tensor(y)}, 0),
                         "concat: part 1 is (2, 4) but part 0 is (2, 3); only axis 0 may differ",
                         ShapeError);
  }

  TEST_CASE("names are set on purpose and dropped on purpose") {
    const Tensor t = zeros({2, 3});
    CHECK(labels_of(named(t, "qk")) == Names{"q", "k"});
    CHECK(labels_of(named(t, "[batch head]")) == Names{"batch", "head"});
    CHECK(labels_of(unnamed(t["qk"])) == Names{"", ""});
    CHECK_THROWS_WITH_AS(named(t, "q"), "named: 1 labels (q) for the 2 axes of (2, 3)", ShapeError);
  }

  TEST_CASE("linear multiplies the last axis and adds a bias") {
    const Array x = noise({2, 3, 5}, 85), w = noise({5, 4}, 86), b = noise({4}, 87);
    Array want({2, 3, 4});
    for_each_index(want.shape, [&](const Sizes& i) {
      want.at(i) = b.at({i[2]});
      for (std::int64_t d = 0; d < 5; ++d) want.at(i) += x.at({i[0], i[1], d}) * w.at({d, i[2]});
    });
    CHECK(worst_error(to_array(linear(to_tensor(x), to_tensor(w), to_tensor(b))), want) < 1e-14);
    for (double& v : want.data) v = 0;
    CHECK(worst_error(to_array(linear(to_tensor(x), zeros({5, 4}, f64))), want) == 0);
    CHECK(labels_of(linear(to_tensor(x)["bnm"], to_tensor(w))) == Names{"b", "n", ""});
    CHECK(to_array(linear(ones({5}, f64), ones({5, 2}, f64))).data == std::vector<double>{5, 5});
    CHECK_THROWS_WITH_AS(linear(to_tensor(x), zeros({4, 5})),
                         "linear: w (4, 5) does not fit x (2, 3, 5); w is (in, out)", ShapeError);
    CHECK_THROWS_WITH_AS(linear(to_tensor(x), to_tensor(w), zeros({5})),
                         "linear: bias (5,) does not fit w (5, 4); bias is (out)", ShapeError);
  }
}
