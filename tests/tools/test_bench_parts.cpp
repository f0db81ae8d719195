// SPDX-License-Identifier: Apache-2.0
// Parts of the benchmark on their own: tables, checks that can fail, the route of peers.
#include <doctest/doctest.h>

#include <limits>
#include <string>
#include <vector>

#include "../../einkern.h"
#include "../../tools/bench_check.h"
#include "../../tools/bench_compare.h"
#include "../../tools/bench_gemm_route.h"
#include "../../tools/exit_code.h"
#include "../../tools/table.h"

using namespace einkern;
using namespace einkern::tools;

namespace {

/// The routines of a BLAS as loops over its definition.
template <class T>
BlasRoutines<T> plain_blas(int& gemms, int& gemvs, int& dots) {
  const auto at = [](const T* x, int transposed, std::int64_t row, std::int64_t column,
                     std::int64_t leading) {
    return transposed == kBlasTransposed ? x[column * leading + row] : x[row * leading + column];
  };
  BlasRoutines<T> blas;
  blas.gemm = [at, &gemms](int order, int ta, int tb, int m, int n, int k, T alpha, const T* a,
                           int lda, const T* b, int ldb, T beta, T* c, int ldc) {
    CHECK(order == kBlasRowMajor);
    CHECK((alpha == 1 && beta == 0));
    CHECK(lda >= (ta == kBlasTransposed ? m : k));
    CHECK(ldb >= (tb == kBlasTransposed ? k : n));
    CHECK(ldc >= n);
    ++gemms;
    for (int i = 0; i < m; ++i) {
      for (int j = 0; j < n; ++j) {
        T sum = 0;
        for (int l = 0; l < k; ++l) sum += at(a, ta, i, l, lda) * at(b, tb, l, j, ldb);
        c[std::int64_t{i} * ldc + j] = sum;
      }
    }
  };
  blas.gemv = [at, &gemvs](int, int transposed, int rows, int columns, T, const T* a, int lda,
                           const T* x, int x_stride, T, T* y, int y_stride) {
    CHECK(lda >= columns);
    ++gemvs;
    const bool turned = transposed == kBlasTransposed;
    for (int i = 0; i < (turned ? columns : rows); ++i) {
      T sum = 0;
      for (int l = 0; l < (turned ? rows : columns); ++l) {
        sum += at(a, transposed, i, l, lda) * x[std::int64_t{l} * x_stride];
      }
      y[std::int64_t{i} * y_stride] = sum;
    }
  };
  blas.dot = [&dots](int n, const T* x, int x_stride, const T* y, int y_stride) {
    ++dots;
    T sum = 0;
    for (std::int64_t i = 0; i < n; ++i) sum += x[i * x_stride] * y[i * y_stride];
    return sum;
  };
  return blas;
}

enum class Way { gemm, gemv, dot };

struct RouteCase {
  const char* equation;
  std::vector<Shape> shapes;
  Way way;
  bool permutes;
};

std::vector<RouteCase> route_cases() {
  using enum Way;
  return {
      {"ik,kj->ij", {{3, 5}, {5, 4}}, gemm, false},
      {"ik,kj->ji", {{3, 5}, {5, 4}}, gemm, false},
      {"ik,jk->ij", {{3, 5}, {4, 5}}, gemm, false},
      {"ik,jk->ji", {{3, 5}, {4, 5}}, gemm, false},
      {"ki,kj->ij", {{5, 3}, {5, 4}}, gemm, false},
      {"ki,kj->ji", {{5, 3}, {5, 4}}, gemm, false},
      {"ki,jk->ij", {{5, 3}, {4, 5}}, gemm, false},
      {"ki,jk->ji", {{5, 3}, {4, 5}}, gemm, false},
      {"bhqd,bhkd->bhqk", {{2, 3, 4, 5}, {2, 3, 6, 5}}, gemm, false},
      {"bqhd,bkhd->bhqk", {{2, 4, 3, 5}, {2, 6, 3, 5}}, gemm, false},
      {"bhqk,bkhd->bqhd", {{2, 3, 4, 6}, {2, 6, 3, 5}}, gemm, false},
      {"bnd,dhe->bhne", {{2, 3, 4}, {4, 5, 6}}, gemm, true},
      {"bhne,hed->bnd", {{2, 5, 3, 6}, {5, 6, 4}}, gemm, true},
      {"dabfe,fc->edcba", {{2, 3, 4, 5, 6}, {5, 3}}, gemm, true},
      {"ijb,jkb->ikb", {{2, 3, 40}, {3, 4, 40}}, gemm, true},
      {"bij,bjk->bik", {{70, 2, 3}, {70, 3, 4}}, gemm, false},
      {"ibj,jbk->ibk", {{2, 70, 3}, {3, 70, 4}}, gemm, false},
      {"ir,jr->ijr", {{3, 4}, {5, 4}}, gemm, true},
      {"i,j->ij", {{3}, {4}}, gemm, false},
      {"i,j->ji", {{3}, {4}}, gemm, false},
      {"ab,cd->acbd", {{2, 3}, {4, 5}}, gemm, true},
      {"ij,j->i", {{3, 4}, {4}}, gemv, false},
      {"ji,j->i", {{4, 3}, {4}}, gemv, false},
      {"j,ij->i", {{4}, {3, 4}}, gemv, false},
      {"j,ji->i", {{4}, {4, 3}}, gemv, false},
      {"bij,bj->bi", {{2, 3, 4}, {2, 4}}, gemv, false},
      {"ijb,jb->ib", {{3, 4, 2}, {4, 2}}, gemv, true},
      {"ij,ij->", {{3, 4}, {3, 4}}, dot, false},
      {"ij,ji->", {{3, 4}, {4, 3}}, dot, true},
      {"ik,kj->ij", {{1, 5}, {5, 4}}, gemv, false},
      {"ik,kj->ij", {{1, 5}, {5, 1}}, dot, false},
      {"ik,kj->ij", {{3, 1}, {1, 4}}, gemm, false},
  };
}

}  // namespace

TEST_SUITE("tools") {
  TEST_CASE("tables are aligned for people and Markdown for pages") {
    Table table({{"name", Table::Align::left}, {"ms"}, {"flags", Table::Align::left}});
    table.add({"a", "1.25", ""});
    table.add({"longer", "3", "cold"});
    CHECK(table.str(TableStyle::aligned) ==
          "name      ms  flags\n"
          "a       1.25\n"
          "longer     3  cold\n");
    CHECK(table.str(TableStyle::markdown) ==
          "| name | ms | flags |\n|---|---:|---|\n| a | 1.25 |  |\n| longer | 3 | cold |\n");
  }

  TEST_CASE("a wrong answer fails the check and the command") {
    const Tensor a = random({3, 5}, 1), b = random({5, 4}, 2);
    const Spec spec = make_spec("ik,kj->ij", {a.shape(), b.shape()});
    const Tensor right = einsum("ik,kj->ij", a, b);
    CHECK(check_samples("x", spec, {a, b}, right).elements > 0);
    const Tensor wrong = Tensor(right * 1.001);
    CHECK_THROWS_AS(check_samples("x", spec, {a, b}, wrong), CheckFailed);
    wrong.fill(std::numeric_limits<double>::quiet_NaN());
    CHECK_THROWS_AS(check_samples("x", spec, {a, b}, wrong), CheckFailed);
    try {
      check_samples("x", spec, {a, b}, wrong);
    } catch (...) {
      CHECK(report_current_exception() == ExitCode::check_failed);
    }
  }

  TEST_CASE("stored times are scaled by the canaries and void on another machine") {
    StoredRun stored;
    stored.limits = {100, 50, 20, 20, 20};
    stored.canary = {"openblas", 1, 3};
    stored.threads = 2;
    CHECK(slowdown_since(stored, {"openblas", 3, 5}) == 2);
    CHECK(flags_of(stored, {95, 50, 20, 20, 19}, {"openblas", 3, 5}, 2).empty());
    CHECK(flags_of(stored, {80, 50, 20, 20, 10}, {"einkern", 3, 5}, 1) ==
          std::vector<std::string>{"void: the stored run had 2 threads",
                                   "void: the canary of the stored run is openblas's",
                                   "void: the peak is 0.80 of the stored run's",
                                   "void: the write bandwidth is 0.50 of the stored run's"});
  }

  TEST_CASE("peers get every contraction as matrix products") {
    int gemms = 0, gemvs = 0, dots = 0;
    Peer peer;
    peer.f32 = plain_blas<float>(gemms, gemvs, dots);
    peer.f64 = plain_blas<double>(gemms, gemvs, dots);
    peer.use_threads = [](int) {};
    for (const RouteCase& route_case : route_cases()) {
      CAPTURE(route_case.equation);
      for (const DType dtype : {f32, f64}) {
        const Spec spec = make_spec(route_case.equation, route_case.shapes);
        const std::vector<Tensor> operands = {random(route_case.shapes[0], 1, dtype),
                                              random(route_case.shapes[1], 2, dtype)};
        const Tensor out = full(spec.output_shape(), -1, dtype);
        const auto route = GemmRoute::make(spec, operands, out);
        REQUIRE(route);
        CHECK(route->permutes() == route_case.permutes);
        gemms = gemvs = dots = 0;
        route->run(peer, operands, out);
        CHECK((gemms > 0) == (route_case.way == Way::gemm));
        CHECK((gemvs > 0) == (route_case.way == Way::gemv));
        CHECK((dots > 0) == (route_case.way == Way::dot));
        CHECK_NOTHROW(check_samples(route_case.equation, spec, operands, out));
      }
    }
    const std::vector<std::pair<const char*, std::vector<Shape>>> others = {
        {"abcd->dcba", {{2, 3, 4, 5}}},
        {"ii,ij->j", {{3, 3}, {3, 4}}},
        {"ij,ij->ij", {{3, 4}, {3, 4}}},
        {"ij,jk->k", {{3, 4}, {4, 5}}},
        {"ij,jk,kl->il", {{2, 3}, {3, 4}, {4, 5}}},
        {"ij,jk->ik", {{0, 3}, {3, 4}}},
        {"ij,jk->ik", {{2, 0}, {0, 4}}},
    };
    for (const auto& other : others) {
      const auto& [equation, shapes] = other;
      CAPTURE(other.first);
      std::vector<Tensor> operands;
      for (const Shape& shape : shapes) operands.push_back(zeros(shape));
      const Spec spec = make_spec(equation, shapes);
      CHECK(!GemmRoute::make(spec, operands, zeros(spec.output_shape())));
    }
  }
}
