// SPDX-License-Identifier: Apache-2.0
// Programs from C++: inputs, numbers, functions, imports, plans, many threads.
#include <doctest/doctest.h>
#include <fmt/format.h>

#include <cmath>
#include <thread>
#include <vector>

#include "../../einkern.h"
#include "../engine/tensor/io/scratch.h"

using namespace einkern;
using namespace einkern::test;

namespace {

using Strings = std::vector<std::string>;

/// The number that an expression without inputs gives.
double value_of(const std::string& expression) {
  return Program::parse("return astype(" + expression + ", f64)")({})[0].item<double>();
}

bool same(const Tensor& a, const Tensor& b) {
  return a.dtype() == b.dtype() && a.shape() == b.shape() && allclose(a, b, 0, 0);
}

}  // namespace

TEST_SUITE("golden") {
  TEST_CASE("numbers of a program are computed as written") {
    CHECK(value_of("2 + 3 * 4 ** 2 ** 0 - 1") == 13);
    CHECK(value_of("-2 ** 2") == -4);
    CHECK(value_of("7 // 2 + -7 // 2") == 3 - 4);
    CHECK(value_of("7 % 3 + -7 % 3 + 7 % -3") == 1 + 2 - 2);
    CHECK(value_of("7.5 // 2 + 7.5 % 2") == 3 + 1.5);
    CHECK(value_of("1 / 4") == 0.25);
    CHECK(value_of("2 ** -1.0") == 0.5);
    CHECK(value_of("9223372036854775807 - 1 + 0.0") == 9223372036854775806.0);
    CHECK(value_of("sqrt(16) + abs(-3) + minimum(2, 3) + maximum(2, 3.5)") == 4 + 3 + 2 + 3.5);
    CHECK(value_of("exp(1) + log(2) + tanh(0.5) + erf(0.25)") ==
          std::exp(1.0) + std::log(2.0) + std::tanh(0.5) + std::erf(0.25));
    CHECK(value_of("pi") == 3.14159265358979323846);
    CHECK(std::isinf(value_of("-inf")));
    CHECK(std::isnan(value_of("nan")));
    CHECK(std::isnan(value_of("minimum(nan, 1) + maximum(1, nan)")));
    CHECK(std::signbit(value_of("-0.0")));
  }

  TEST_CASE("inputs and outputs have names") {
    const Program program = Program::parse("s = b * a\nt = s + c\nreturn t, s * 2, a\n");
    CHECK(program.inputs() == Strings{"b", "a", "c"});
    CHECK(program.outputs() == Strings{"t", "out1", "a"});
    CHECK(program.str() == "s = b * a\nt = s + c\nreturn t, s * 2, a\n");
    const auto values = program({{"a", ones({2})}, {"b", 3}, {"c", 0.5}});
    CHECK(values[0].to_vector<float>() == std::vector<float>{3.5, 3.5});
    // A number stays weak: it does not widen what it meets.
    CHECK(values[1].dtype() == f32);
  }

  TEST_CASE("a number given from outside may stand where only a number can") {
    const Program program = Program::parse(
        "input x: f32[q, k]\ninput n: i64[]\nreturn where(window(q, k, n, 0), x, 0), x[:n]\n");
    const Tensor x = random({4, 4}, 1);
    const auto values = program({{"x", x}, {"n", 2}});
    CHECK(values[1].shape() == Shape{2, 4});
    CHECK_THROWS_AS(program.build({{"x", x}, {"n", full({}, 2, i64)}}), TypeError);
    CHECK_THROWS_AS(program.build({{"x", x}}), ValueError);
  }

  TEST_CASE("labels are never looked up, and named terms align by name") {
    // k is a tensor and a label at once.
    const Program program = Program::parse(
        "s = einsum(\"qd,kd->qk\", q, k)\nreturn softmax(s, k), sum(s, [k, \"q\"]), s + b[\"k\"]");
    const Tensor q = random({3, 4}, 1), k = random({5, 4}, 2), b = random({5}, 3);
    const auto values = program({{"q", q}, {"k", k}, {"b", b}});
    const Expr s = einsum("qd,kd->qk", q, k);
    CHECK(same(values[0], softmax(s, "k")));
    CHECK(same(values[1], sum(s, {"k", "q"})));
    CHECK(same(values[2], s + b["k"]));
  }

  TEST_CASE("masks of every kind") {
    const Program program = Program::parse(
        "s = einsum(\"bqd,bkd->bqk\", q, k)\n"
        "return mask(s, causal(q, k), causal(q, k, 1), causal(q, k, bottom_right), causal(), "
        "window(q, k, 3, -1), lengths(n, b, k), bias(t), segments(i, i))");
    const Tensor q = random({2, 5, 4}, 1), k = random({2, 5, 4}, 2), t = random({5, 5}, 3);
    const Tensor n = tensor<std::int64_t>({5, 3}), i = Expr(floordiv(arange(5), 2));
    const Expr s = einsum("bqd,bkd->bqk", q, k);
    const Expr want =
        mask(s, causal("q", "k"), causal("q", "k", 1), causal("q", "k", Causal(bottom_right)),
             causal(), window("q", "k", 3, -1), lengths(n, "b", "k"), bias(t), segments(i, i));
    CHECK(same(program({{"q", q}, {"k", k}, {"n", n}, {"t", t}, {"i", i}})[0], want));
  }

  TEST_CASE("views and shapes") {
    const Program program = Program::parse(
        "a = split(x, -1, [h, d], [3, -1])\n"
        "return permute(a, [d, 0, h]), permute(x, \"ab->ba\"), merge(a, [h, d], m), "
        "repeat(x, 0, 2), expand(x, g, 3), slice(x, 1, 1, -1, 2), x[-1:, ::-1], x[..., 2:], "
        "unnamed(a), named(x, \"pq\"), concat([x, x], 1)");
    const Tensor x = random({2, 6}, 1);
    const Expr a = split(x, -1, {"h", "d"}, {3, -1});
    const auto got = program({{"x", x}});
    const std::vector<Tensor> want =
        eval({permute(a, {"d", 0, "h"}), permute(x, "ab->ba"), merge(a, {"h", "d"}, "m"),
              repeat(x, 0, 2), expand(x, "g", 3), slice(x, 1, 1, -1, 2),
              slice(slice(x, 0, -1), 1, {}, {}, -1), slice(x, 1, 2), unnamed(a), named(x, "pq"),
              concat({x, x}, 1)});
    REQUIRE(got.size() == want.size());
    for (std::size_t i = 0; i < got.size(); ++i) {
      CAPTURE(i);
      CHECK(same(got[i], want[i]));
      CHECK(got[i].labels().to_vector(got[i].rank()) == want[i].labels().to_vector(want[i].rank()));
    }
  }

  TEST_CASE("an index drops its axis, as in NumPy") {
    const Program program = Program::parse(
        "y = einsum(\"bqd->bqd\", x)\n"
        "return y[:, 1], y[1], y[..., -1], y[-1, ..., 2], y[0, 1, 2], y[:, 0, ::2], v[2], v[-4], "
        "y[:, size(y, q) - 1][0, 3], y[:, 1] + y[:, 2]");
    // Elements are their own places: 12 b + 4 q + d.
    const Tensor x = arange(24).split(0, {"b", "q", "d"}, {2, 3, 4}).astype(f32);
    const Tensor v = arange(4);
    const auto got = program({{"x", x}, {"v", v}});
    using Floats = std::vector<float>;
    const std::pair<Shape, Floats> want[] = {
        {{2, 4}, {4, 5, 6, 7, 16, 17, 18, 19}},
        {{3, 4}, {12, 13, 14, 15, 16, 17, 18, 19, 20, 21, 22, 23}},
        {{2, 3}, {3, 7, 11, 15, 19, 23}},
        {{3}, {14, 18, 22}},
        {{}, {6}},
        {{2, 2}, {0, 2, 12, 14}},
        {{}, {2}},
        {{}, {0}},
        {{}, {11}},
        {{2, 4}, {12, 14, 16, 18, 36, 38, 40, 42}},
    };
    REQUIRE(got.size() == std::size(want));
    for (std::size_t i = 0; i < got.size(); ++i) {
      CAPTURE(i);
      CHECK(got[i].shape() == want[i].first);
      CHECK(got[i].astype(f32).copy().to_vector<float>() == want[i].second);
    }
    const auto labels = [&](std::size_t i) { return got[i].labels().to_vector(got[i].rank()); };
    CHECK(labels(0) == Strings{"b", "d"});
    CHECK(labels(1) == Strings{"q", "d"});
    CHECK(labels(2) == Strings{"b", "q"});
    CHECK(labels(3) == Strings{"q"});
    CHECK(labels(5) == Strings{"b", "d"});
    // A view: nothing is gathered or copied on the way to what reads it.
    const Program first = Program::parse("return einsum(\"bd,bd->b\", x[:, 0], x[:, 1])");
    const std::string plan = explain_json(first.build({{"x", x}}));
    CHECK(plan.find("take") == std::string::npos);
    CHECK(plan.find("\"copy\"") == std::string::npos);
    // Sizes that a call knows.
    const Program later = Program::parse("input x: f32[n, d]\nreturn x[1], x[0, 0]");
    const Tensor table = random({3, 5}, 1);
    const auto rows = later.compile()({table});
    CHECK(rows[0].to_vector<float>() == table.slice(0, 1, 2).copy().to_vector<float>());
    CHECK(rows[1].item<float>() == table(0, 0).item<float>());
    CHECK_THROWS_AS(later.compile()({random({1, 5}, 1)}), ValueError);
    const Program from_end = Program::parse("input x: f32[n, d]\nreturn x[-1, size(x, d) - 1]");
    CHECK(from_end.outline({}).outputs[0].second.shape().empty());
    CHECK(from_end({{"x", table}})[0].item<float>() == table(2, 4).item<float>());
    CHECK_THROWS_AS(from_end.compile(), ValueError);
  }

  TEST_CASE("imports are relative to the importing file") {
    const ScratchFolder folder;
    std::filesystem::create_directories(folder / "lib/deep");
    write_text(folder / "main.ein", "import \"lib/a.ein\"\nreturn three(x)\n");
    write_text(folder / "lib/a.ein",
               "import \"deep/b.ein\"\ndef three(x):\n    return twice(x) + x\n");
    write_text(folder / "lib/deep/b.ein", "def twice(x): return x + x\n");
    const Program program = Program::from_file(folder / "main.ein");
    CHECK(program({{"x", 2}})[0].item<double>() == 6);
    // A link out of the folder leads outside of it.
    const ScratchFolder other;
    write_text(other / "c.ein", "def twice(x): return x + x\n");
    std::filesystem::create_symlink(other / "c.ein", folder / "lib/deep/link.ein");
    write_text(folder / "main.ein", "import \"lib/deep/link.ein\"\nreturn twice(x)\n");
    CHECK_THROWS_AS(Program::from_file(folder / "main.ein"), SyntaxError);
    CHECK_THROWS_AS(Program::parse("import \"a.ein\"\nreturn 1"), SyntaxError);
  }

  TEST_CASE("functions that double at every level end") {
    std::string text = "def f0(x): return x + x\n";
    for (int i = 1; i < 60; ++i) {
      text += fmt::format("def f{0}(x): return f{1}(f{1}(x))\n", i, i - 1);
    }
    const Program program = Program::parse(text + "return f59(x)");
    CHECK_THROWS_AS(program.build({{"x", 1}}), ValueError);
  }

  TEST_CASE("one program is built and compiled by many threads") {
    const Program program = Program::parse(
        "input q: f32[n, d]\ninput k: f32[m, d]\n"
        "s = einsum(\"nd,md->nm\", q, k)\nreturn einsum(\"nm,md->nd\", softmax(s, m), k)\n");
    const Compiled plan = program.compile();
    const auto work = [&](int seed, bool& right) {
      const Tensor q = random({4 + seed, 8}, 1), k = random({6 + seed, 8}, 2);
      const Expr s = einsum("nd,md->nm", q, k);
      const Tensor want = einsum("nm,md->nd", softmax(s, "m"), k);
      right = allclose(plan({q, k})[0], want) && same(program({{"q", q}, {"k", k}})[0], want) &&
              same(program.compile({{"q", q.shape()}, {"k", k.shape()}})({q, k})[0], want);
    };
    bool right[8] = {};
    std::vector<std::thread> threads;
    for (int i = 0; i < 8; ++i) threads.emplace_back(work, i, std::ref(right[i]));
    for (std::thread& thread : threads) thread.join();
    for (const bool r : right) CHECK(r);
    CHECK_THROWS_AS(program.compile({{"q", {2, 3}}, {"k", {2, 4}}}), ShapeError);
    CHECK_THROWS_AS(program.compile({{"q", {{2, 3}, f64}}}), TypeError);
  }
}
