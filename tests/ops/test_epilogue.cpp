// SPDX-License-Identifier: Apache-2.0
// Elementwise words behind an einsum: which become its epilogue, and that the numbers are those of
// the plain route, bit for bit, and of a plain loop in double.
#include <doctest/doctest.h>

#include <cmath>
#include <cstring>
#include <functional>
#include <limits>
#include <string>

#include "../../engine/base/error.h"
#include "../../engine/graph/compiled.h"
#include "../../ops/ops.h"
#include "../support/arrays.h"

using namespace einkern;
using namespace einkern::test;

namespace {

using I = std::int64_t;

/// Multiples of 1/8 up to 1: sums of products of them are exact in f32.
Array eighths(Sizes shape, unsigned seed) {
  Array result = noise(std::move(shape), seed);
  for (double& x : result.data) x = std::round(8 * x) / 8;
  return result;
}

/// y[b,m,n] = sum_k x[b,m,k] w[k,n], and what epilogues read beside it.
struct Problem {
  I batch, rows, steps, columns;
  DType dtype;
  Array x, w, column, row, residual, turned;
  Tensor tx, tw, tcolumn, trow, tresidual, tturned;
  Array sums;

  Problem(I b, I m, I k, I n, DType d)
      : batch(b),
        rows(m),
        steps(k),
        columns(n),
        dtype(d),
        x(eighths({b, m, k}, 1)),
        w(eighths({k, n}, 2)),
        column(eighths({n}, 3)),
        row(eighths({m, 1}, 4)),
        residual(eighths({b, m, n}, 5)),
        turned(eighths({n, b, m}, 6)),
        tx(to_tensor(x, d)),
        tw(to_tensor(w, d)),
        tcolumn(to_tensor(column, d)),
        trow(to_tensor(row, d)),
        tresidual(to_tensor(residual, d)),
        tturned(to_tensor(turned, d)),
        sums({b, m, n}) {
    for_each_index(sums.shape, [&](const Sizes& at) {
      double& sum = sums.at(at);
      for (I i = 0; i < steps; ++i) sum += x.at({at[0], at[1], i}) * w.at({i, at[2]});
    });
  }

  Expr y() const { return einsum("bmk,kn->bmn", tx, tw); }

  /// want(sum, b, m, n) for every element.
  Array expected(const std::function<double(double, I, I, I)>& want) const {
    Array out({batch, rows, columns});
    for_each_index(out.shape,
                   [&](const Sizes& at) { out.at(at) = want(sums.at(at), at[0], at[1], at[2]); });
    return out;
  }
};

double gelu_of(double x) { return 0.5 * x * (1 + std::erf(x / std::sqrt(2.0))); }
double sigmoid_of(double x) { return 1 / (1 + std::exp(-x)); }

struct Form {
  const char* name;
  const char* operations;  // what explain lists
  Expr (*write)(const Problem&);
  double (*want)(const Problem&, double, I, I, I);
};

const Form kForms[] = {
    {"linear with a bias", "add", [](const Problem& p) { return linear(p.tx, p.tw, p.tcolumn); },
     [](const Problem& p, double y, I, I, I n) { return y + p.column.at({n}); }},
    {"a bias per row", "add", [](const Problem& p) { return p.trow + p.y(); },
     [](const Problem& p, double y, I, I m, I) {
       return y + p.row.at({m, 0});
     }},
    {"a scale", "mul", [](const Problem& p) { return 0.25 * p.y(); },
     [](const Problem&, double y, I, I, I) { return 0.25 * y; }},
    {"a scale by a tensor of one", "mul",
     [](const Problem& p) { return p.y() * full({}, 0.375, p.dtype); },
     [](const Problem&, double y, I, I, I) { return 0.375 * y; }},
    {"relu", "maximum", [](const Problem& p) { return relu(p.y()); },
     [](const Problem&, double y, I, I, I) { return std::max(y, 0.0); }},
    {"gelu", "mul, erf, add", [](const Problem& p) { return gelu(p.y()); },
     [](const Problem&, double y, I, I, I) { return gelu_of(y); }},
    {"silu", "sigmoid, mul", [](const Problem& p) { return silu(p.y()); },
     [](const Problem&, double y, I, I, I) { return y * sigmoid_of(y); }},
    {"tanh", "tanh", [](const Problem& p) { return tanh(p.y()); },
     [](const Problem&, double y, I, I, I) { return std::tanh(y); }},
    {"a residual", "add", [](const Problem& p) { return p.tresidual + p.y(); },
     [](const Problem& p, double y, I b, I m, I n) {
       return y + p.residual.at({b, m, n});
     }},
    {"a residual in another layout", "sub",
     [](const Problem& p) { return unnamed(p.y()) - permute(p.tturned, "nbm->bmn"); },
     [](const Problem& p, double y, I b, I m, I n) {
       return y - p.turned.at({n, b, m});
     }},
    {"the product with itself", "mul",
     [](const Problem& p) {
       const Expr y = p.y();
       return y * y;
     },
     [](const Problem&, double y, I, I, I) { return y * y; }},
    {"positions", "less_equal, select",
     [](const Problem& p) { return where(index("n") <= index("m"), p.y(), -1); },
     [](const Problem&, double y, I, I m, I n) { return n <= m ? y : -1; }},
    {"a split axis", "add",
     [](const Problem& p) {
       const Expr y = split(p.y(), "b", {"c", "d"}, {p.batch, 1});
       return merge(unnamed(y) + split(p.tresidual, 0, {"e", "f"}, {p.batch, 1}), {0, 1});
     },
     [](const Problem& p, double y, I b, I m, I n) {
       return y + p.residual.at({b, m, n});
     }},
    {"a chain of all", "add, mul, erf, sub, tanh",
     [](const Problem& p) {
       const Expr y = gelu(linear(p.tx, p.tw, p.tcolumn) + p.trow) * 0.5 + p.tresidual;
       return tanh(unnamed(y) - permute(p.tturned, "nbm->bmn"));
     },
     [](const Problem& p, double y, I b, I m, I n) {
       const double active = gelu_of(y + p.column.at({n}) + p.row.at({m, 0}));
       return std::tanh(active * 0.5 + p.residual.at({b, m, n}) - p.turned.at({n, b, m}));
     }},
};

bool same_bits(const Tensor& a, const Tensor& b) {
  const auto bytes = static_cast<std::size_t>(a.size()) * size_of(a.dtype());
  return a.shape() == b.shape() && a.dtype() == b.dtype() && a.is_contiguous() &&
         b.is_contiguous() && (bytes == 0 || std::memcmp(a.bytes(), b.bytes(), bytes) == 0);
}

I steps_of(const std::vector<Expr>& exprs, const EvalOptions& options = {}) {
  const std::string json = explain_json(exprs, options);
  I count = 0;
  for (std::size_t at = 0; (at = json.find("\"kind\"", at)) != std::string::npos; ++at) ++count;
  return count;
}

bool has_epilogue(const Expr& expr) {
  return explain_json({expr}).find("\"epilogue\"") != std::string::npos;
}

}  // namespace

TEST_SUITE("ops") {
  TEST_CASE("every form is one step") {
    const Problem p(3, 24, 40, 32, f32);
    for (const Form& form : kForms) {
      CAPTURE(form.name);
      const Expr written = form.write(p);
      const std::string text = explain({written});
      CAPTURE(text);
      CHECK(steps_of({written}) == 1);
      CHECK(text.find(std::string(" + map (") + form.operations + ")") != std::string::npos);
      CHECK(steps_of({written}, {.fuse = false}) > 1);
      CHECK(explain({written}, {.fuse = false}).find(" + map") == std::string::npos);
    }
  }

  TEST_CASE("every form gives the numbers of the plain route and of a loop in double") {
    struct Size {
      I batch, rows, steps, columns;
    };
    // Vectors, small matrices, many of them, ends of blocks, sums of several blocks, sums of none.
    const Size sizes[] = {{1, 1, 1, 1},     {1, 1, 40, 1},    {2, 1, 600, 9},  {1, 7, 5, 1},
                          {20, 3, 4, 5},    {1, 12, 12, 12},  {2, 33, 65, 49}, {1, 130, 530, 97},
                          {3, 96, 64, 192}, {1, 257, 1, 193}, {2, 5, 0, 6},    {0, 5, 4, 6}};
    for (const DType dtype : {f32, f64}) {
      for (const Size& size : sizes) {
        const Problem p(size.batch, size.rows, size.steps, size.columns, dtype);
        for (const Form& form : kForms) {
          CAPTURE(name_of(dtype));
          CAPTURE(form.name);
          CAPTURE(to_string(Shape{size.batch, size.rows, size.steps, size.columns}));
          const Expr written = form.write(p);
          const Tensor plain = eval(written, {.fuse = false});
          const Tensor fused = eval(written);
          CHECK(same_bits(fused, plain));
          const Array want =
              p.expected([&](double y, I b, I m, I n) { return form.want(p, y, b, m, n); });
          CHECK(worst_error(fused, want) <= 4 * tolerance(dtype));
        }
      }
    }
  }

  TEST_CASE("any number of threads gives the same bits") {
    const Tensor x = random({300, 200}, 1), w = random({200, 260}, 2), r = random({300, 260}, 3);
    const Expr y = gelu(einsum("mk,kn->mn", x, w)) + r;
    const Tensor want = eval(y, {.fuse = false, .threads = 1});
    for (const int threads : {1, 2, 5}) CHECK(same_bits(eval(y, {.threads = threads}), want));
  }

  TEST_CASE("what more than one reader needs, or reads otherwise, stays a step of its own") {
    const Problem p(2, 6, 5, 6, f32);
    const Expr y = p.y();
    CHECK(steps_of({relu(y), y}) == 2);
    CHECK(steps_of({relu(y), tanh(y)}) == 3);
    const Expr others[] = {
        relu(permute(y, "bmn->bnm")) + 1,                              // turned
        unnamed(permute(y, "bmn->bnm")) + unnamed(y),                  // both ways
        sum(y, "n") + 1,                                               // of the reduction
        expand(y, "z", 3) + random({3, 2, 6, 6}, 7),                   // larger
        split(merge(y, {1, 2}), -1, {"i", "j"}, {4, 9}) + 1,           // cut across labels
        slice(y, "m", 1, 4) + 1,                                       // a part
        where(y <= 0, 1, 2),                                           // another dtype
        softmax(y, "n"),                                               // no map at all
        einsum("bmk,kn->bmn", p.tx.astype(i64), p.tw.astype(i64)) + 1  // integers
    };
    for (std::size_t i = 0; i < std::size(others); ++i) {
      CAPTURE(i);
      CHECK(!has_epilogue(others[i]));
      CHECK(same_bits(eval(others[i]), eval(others[i], {.fuse = false})));
    }
  }

  TEST_CASE("terms that one program uses several times are part of it, others are stored once") {
    const Tensor t = random({5, 6}, 1), u = random({5, 6}, 2);
    CHECK(steps_of({gelu(t + u)}) == 1);
    const Expr shared = tanh(t);
    CHECK(steps_of({shared * exp(shared) + unnamed(named(shared, "ab"))}) == 1);
    CHECK(steps_of({shared + 1, shared * 2}) == 3);
    CHECK(steps_of({softmax(shared, 1) + shared}) == 3);
    CHECK(steps_of({gelu(t + u)}, {.fuse = false}) > 3);
    Expr longer = t;
    for (int i = 0; i < 200; ++i) longer = tanh(longer * u);
    const I steps = steps_of({longer});
    CHECK(steps > 400 / 64);
    CHECK(steps <= 400 / 32);
    CHECK(same_bits(eval(longer), eval(longer, {.fuse = false})));
  }

  TEST_CASE("of two contractions the last one takes both") {
    const Problem p(2, 20, 30, 24, f64);
    const Expr y = relu(p.y() + einsum("bmk,kn->bmn", 2 * p.tx, p.tw));
    CHECK(steps_of({y}) == 3);  // the doubled x, a contraction, one with the rest
    const Array want = p.expected([](double sum, I, I, I) { return std::max(3 * sum, 0.0); });
    CHECK(worst_error(Tensor(y), want) <= 4 * tolerance(f64));
    CHECK(same_bits(eval(y), eval(y, {.fuse = false})));
  }

  TEST_CASE("attention keeps its streamed pass, and projections get their bias") {
    const Tensor x = random({2, 9, 16}, 1), w = random({16, 16}, 2), b = random({16}, 3);
    const auto heads = [&](unsigned seed) {
      const Expr y = linear(x, random({16, 16}, seed), b);
      return split(y, -1, {"h", "d"}, {4, 4});
    };
    const Expr s = einsum("bqhd,bkhd->bhqk", heads(4), heads(5)) * 0.5 + 1;
    const Expr o = einsum("bhqk,bkhd->bqhd", softmax(s, "k"), heads(6));
    const Expr y = linear(merge(unnamed(o), {2, 3}), w, b);
    const std::string text = explain({y});
    CAPTURE(text);
    CHECK(steps_of({y}) == 5);
    CHECK(text.find("attend") != std::string::npos);
    CHECK(allclose(eval(y), eval(y, {.fuse = false}), 1e-5, 1e-5));
  }

  TEST_CASE("NaN and infinity pass through") {
    const double inf = std::numeric_limits<double>::infinity();
    Problem p(1, 40, 33, 36, f32);
    p.tx(0, 3, 4).fill(NAN);
    p.tx(0, 5, 6).fill(inf);
    p.tcolumn(7).fill(-inf);
    p.tresidual(0, 9, 9).fill(NAN);
    const Expr y = relu(linear(p.tx, p.tw, p.tcolumn)) + p.tresidual;
    const Tensor got = eval(y);
    CHECK(same_bits(got, eval(y, {.fuse = false})));
    for (I n = 0; n < 36; ++n) CHECK(std::isnan(got(0, 3, n).item<float>()));
    CHECK(got(0, 1, 7).item<float>() == p.tresidual(0, 1, 7).item<float>());  // relu of -inf
    CHECK(std::isnan(got(0, 9, 9).item<float>()));
    CHECK(std::isfinite(got(0, 10, 10).item<float>()));
  }

  TEST_CASE("into outputs of the caller, some of which are operands too") {
    const Problem p(2, 33, 40, 50, f32);
    const auto sum_of = [](double y, I, I, I) { return y; };
    const Array sums = p.expected(sum_of);

    // alpha and beta are an epilogue of the product.
    Tensor out = p.tresidual.copy();
    einsum_into(out, "bmk,kn->bmn", {p.tx, p.tw}, {.alpha = 0.5, .beta = 2});
    Array want = sums;
    for (std::size_t i = 0; i < want.data.size(); ++i) {
      want.data[i] = 0.5 * sums.data[i] + 2 * p.residual.data[i];
    }
    CHECK(worst_error(out, want) <= tolerance(f32));
    out = zeros({2, 33, 50});
    einsum_into(out, "bmk,kn->bmn", {p.tx, p.tw}, {.alpha = 0.5});
    CHECK(worst_error(out, p.expected([](double y, I, I, I) { return 0.5 * y; })) <=
          tolerance(f32));

    // The residual is the output.
    out = p.tresidual.copy();
    eval_into(out, relu(p.y()) + out);
    for (std::size_t i = 0; i < want.data.size(); ++i) {
      want.data[i] = std::max(sums.data[i], 0.0) + p.residual.data[i];
    }
    CHECK(worst_error(out, want) <= tolerance(f32));
    // Strided outputs.
    const Tensor wide = zeros({2, 33, 60});
    eval_into(wide.slice(2, 4, 54), relu(p.y()) + p.tresidual);
    CHECK(worst_error(wide.slice(2, 4, 54), want) <= tolerance(f32));
    const Tensor turned = zeros({50, 2, 33});
    eval_into(turned.permute({1, 2, 0}), relu(p.y()) + p.tresidual);
    CHECK(worst_error(turned.permute({1, 2, 0}), want) <= tolerance(f32));
    // An operand of the product is.
    const Tensor square = p.tx.slice(2, 0, 33).copy(), other = random({33, 33}, 8);
    const Expr next = tanh(einsum("bmk,kn->bmn", square, other)) + square;
    const Tensor result = next;
    eval_into(square, next);
    CHECK(same_bits(square, result));

    const Expr x = input(f32, {2, dyn("m"), 40}), w = input(f32, {40, 50}),
               r = input(f32, {2, dyn("m"), 50});
    const Compiled f = compile({x, w, r}, {relu(einsum("bmk,kn->bmn", x, w)) + r});
    out = p.tresidual.copy();
    f.into({out}, {p.tx, p.tw, out});
    CHECK(worst_error(out, want) <= tolerance(f32));
    out = zeros({2, 33, 50});
    f.into({out}, {p.tx, p.tw, p.tresidual});
    CHECK(worst_error(out, want) <= tolerance(f32));
    CHECK(worst_error(f({p.tx, p.tw, p.tresidual})[0], want) <= tolerance(f32));
  }
}
