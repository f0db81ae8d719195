// SPDX-License-Identifier: Apache-2.0
// Contractions of all regimes against a naive double sum, on every SIMD target.
#include <doctest/doctest.h>

#include <limits>
#include <random>

#include "../../../engine/base/error.h"
#include "contraction.h"
#include "threads.h"

using namespace einkern;
using namespace einkern::test;
using plan::Regime;

namespace {

const char* name(const kernel::Kernels* kernels) { return kernels->target.name.data(); }

template <class T>
void check_sizes(std::initializer_list<std::int64_t> batch, std::initializer_list<std::int64_t> m,
                 std::initializer_list<std::int64_t> n, std::initializer_list<std::int64_t> k,
                 Regime regime = Regime::matmul) {
  std::mt19937 random(7);
  for (const Look& look : {Look{.shuffle = false}, Look{}, Look{.pad = true},
                           Look{.reverse = true, .pad = true, .skew = 3}}) {
    Contraction<T> contraction(loops_of(batch), loops_of(m), loops_of(n), loops_of(k), look,
                               random);
    contraction.step.regime = regime;
    contraction.arrange();
    const auto answers = contraction.answers();
    for (const kernel::Kernels* kernels : kernel::supported_kernels()) {
      CAPTURE(name(kernels));
      contraction.clear();
      contraction.run(*kernels);
      CHECK(contraction.worst(answers) <= 1);
    }
  }
}

/// Outputs larger than L2, which go around the caches: in all layouts, aligned and not, and with
/// the same bits for any number of threads.
template <class T>
void check_streamed(const Loops& batch, const Loops& m, const Loops& n, const Loops& k,
                    Regime regime, std::uint32_t seed) {
  std::mt19937 random(seed);
  for (const Look& look : {Look{.shuffle = false}, Look{}, Look{.skew = 3}, Look{.pad = true}}) {
    Contraction<T> contraction(batch, m, n, k, look, random);
    contraction.step.regime = regime;
    contraction.arrange();
    const auto answers = contraction.answers();
    for (const kernel::Kernels* kernels : kernel::supported_kernels()) {
      CAPTURE(name(kernels));
      decltype(contraction.c) first;
      with_threads([&](int threads) {
        if (threads == 5 && kernels != kernel::supported_kernels().front()) return;
        contraction.clear();
        contraction.run(*kernels);
        if (threads == 1) {
          first = contraction.c;
          CHECK(contraction.worst(answers) <= 1);
        }
        CHECK(contraction.c == first);
      });
    }
  }
}

/// Rows of all matrices side by side, the batch label between those of the matrices.
template <class T>
void check_interleaved(std::int64_t batch, std::int64_t m, std::int64_t n, std::int64_t k) {
  CAPTURE(m);
  CAPTURE(n);
  std::mt19937 random(21);
  Contraction<T> contraction(loops_of({batch}), loops_of({m}), loops_of({n}), loops_of({k}),
                             Look{.shuffle = false}, random);
  plan::Contract& step = contraction.step;
  step.regime = Regime::small_batched;
  step.batch[0].a = k, step.batch[0].b = step.batch[0].c = n;
  step.m[0].a = batch * k, step.m[0].c = batch * n;
  step.k[0].a = 1, step.k[0].b = batch * n;
  step.n[0].b = step.n[0].c = 1;
  const auto answers = contraction.answers();
  for (const kernel::Kernels* kernels : kernel::supported_kernels()) {
    CAPTURE(name(kernels));
    with_threads([&](int) {
      contraction.clear();
      contraction.run(*kernels);
      CHECK(contraction.worst(answers) <= 1);
    });
  }
}

template <class T>
void check_random_contractions(int count, std::uint32_t seed) {
  std::mt19937 random(seed);
  const auto group = [&](std::int64_t largest, std::size_t most) {
    Loops loops;
    for (std::size_t l = random() % (most + 1); l > 0; --l) {
      const auto size = 2 + static_cast<std::int64_t>(random()) % largest;
      loops.push_back({.size = size});
    }
    return loops;
  };
  // Without a bound, a few giants would take nearly all of the time.
  constexpr std::int64_t kMostProducts = 1 << 19;
  const auto& tables = kernel::supported_kernels();
  for (int i = 0; i < count;) {
    const Loops batch = group(4, 2), m = group(11, 3), n = group(11, 3), k = group(9, 3);
    if (positions(batch) * positions(m) * positions(n) * positions(k) > kMostProducts) continue;
    CAPTURE(i);
    ++i;
    const Look look{.shuffle = true,
                    .reverse = random() % 4 == 0,
                    .pad = random() % 3 == 0,
                    .skew = static_cast<std::int64_t>(random() % 5)};
    Contraction<T> contraction(batch, m, n, k, look, random);
    if (random() % 4 != 0) contraction.arrange();  // any order must do
    plan::Contract& step = contraction.step;
    if (step.k.empty()) {
      step.regime = Regime::outer;
    } else if (step.m.empty() && step.n.empty()) {
      step.regime = Regime::dot;
    } else if (step.m.empty() || step.n.empty()) {
      step.regime = Regime::matvec;
    } else {
      step.regime = random() % 2 == 0 ? Regime::matmul : Regime::small_batched;
    }
    contraction.run(*tables[random() % tables.size()]);
    REQUIRE(contraction.worst(contraction.answers()) <= 1);
  }
}

}  // namespace

TEST_SUITE("exec") {
  TEST_CASE("matrix products of all layouts, odd sizes") {
    check_sizes<float>({}, {37}, {53}, {29});
    check_sizes<double>({}, {37}, {53}, {29});
    check_sizes<float>({}, {129}, {257}, {67});
    check_sizes<double>({}, {100}, {97}, {130});
    check_sizes<float>({3}, {17}, {33}, {65});
    check_sizes<float>({20}, {40}, {41}, {16});
    check_sizes<float>({}, {1}, {40}, {70});
  }

  TEST_CASE("whole vectors of columns, which need no packing where they lie side by side") {
    check_sizes<float>({}, {37}, {48}, {29});
    check_sizes<float>({}, {100}, {96}, {700});
    check_sizes<double>({}, {61}, {40}, {300});
    check_sizes<float>({9}, {20}, {64}, {33});
    check_sizes<double>({9}, {20}, {8}, {65});
  }

  TEST_CASE("few rows, whose boxes of columns need no packing but the one with the end of a row") {
    check_sizes<float>({}, {37}, {1111}, {509});
    check_sizes<float>({}, {15}, {600}, {1030});
    check_sizes<double>({}, {23}, {333}, {300});
  }

  TEST_CASE("a transposed b shared out in columns, rows of a where they lie") {
    check_sizes<float>({}, {256}, {256}, {256});
    check_sizes<float>({}, {199}, {250}, {301});
    check_sizes<double>({}, {150}, {171}, {610});
  }

  TEST_CASE("few columns, whose rows of a need no packing where they lie evenly") {
    check_sizes<float>({}, {70}, {20}, {600});
    check_sizes<float>({9}, {45}, {64}, {100});
    check_sizes<double>({}, {301}, {33}, {270});
    check_sizes<double>({9}, {31}, {7}, {50});
    // Several boxes of rows in each of many matrices, the next one fetched ahead.
    check_sizes<float>({8}, {203}, {16}, {512});
    check_sizes<double>({8}, {97}, {16}, {500});
  }

  TEST_CASE("sums longer than several blocks") {
    check_sizes<float>({}, {15}, {35}, {1700});
    check_sizes<double>({}, {15}, {35}, {900});
    check_sizes<float>({}, {9}, {10}, {3, 40, 17});
    // Small matrices under so many blocks that parts of the sum run side by side.
    check_sizes<float>({}, {7}, {18}, {9001});
    check_sizes<double>({2}, {5, 3}, {6}, {9001});
  }

  TEST_CASE("fused groups whose unit strides lie in different labels") {
    check_sizes<float>({}, {6, 18}, {6, 34}, {17, 18});
    check_sizes<double>({}, {6, 18}, {6, 34}, {17, 18});
    check_sizes<float>({}, {24}, {16, 24, 8}, {24});
    check_sizes<float>({9}, {5, 7}, {6, 18}, {18, 5});
  }

  TEST_CASE("many small products, larger than L2") {
    constexpr Regime kSmall = Regime::small_batched;
    check_streamed<float>(loops_of({60001}), loops_of({3}), loops_of({3}), loops_of({3}), kSmall,
                          1);
    check_streamed<float>(loops_of({9001}), loops_of({8}), loops_of({8}), loops_of({5}), kSmall, 2);
    check_streamed<float>(loops_of({3, 1501}), loops_of({13}), loops_of({16}), loops_of({3}),
                          kSmall, 9);
    check_streamed<double>(loops_of({15001}), loops_of({5}), loops_of({4}), loops_of({2}), kSmall,
                           10);
    check_streamed<double>(loops_of({1501}), loops_of({15}), loops_of({16}), loops_of({3}), kSmall,
                           11);
    check_streamed<double>(loops_of({12007}), loops_of({5}), loops_of({5}), loops_of({4}), kSmall,
                           3);
    check_streamed<double>(loops_of({3, 301}), loops_of({17}), loops_of({3, 6}), loops_of({2, 3}),
                           kSmall, 4);
  }

  TEST_CASE("rows of many small matrices side by side, larger than L2") {
    // 16 matrices and more of a KiB and more, fewer, and one that is larger than what is staged.
    check_interleaved<float>(2101, 16, 16, 5);
    check_interleaved<float>(1907, 17, 17, 17);
    check_interleaved<double>(1001, 16, 17, 3);
    check_interleaved<float>(515, 33, 31, 2);
    check_interleaved<float>(513, 32, 32, 9);
    check_interleaved<double>(257, 32, 32, 7);
    check_interleaved<float>(31, 129, 128, 2);
    check_interleaved<double>(4999, 8, 15, 3);
  }

  TEST_CASE("matrices larger than a few L2, under sums too short to wait for them") {
    check_streamed<float>({}, loops_of({1201}), loops_of({1008}), loops_of({9}), Regime::matmul, 8);
    check_streamed<double>(loops_of({8}), loops_of({97}), loops_of({800}), loops_of({5}),
                           Regime::matmul, 9);
  }

  TEST_CASE("outer products larger than L2") {
    check_streamed<float>({}, loops_of({617}), loops_of({901}), {}, Regime::outer, 5);
    check_streamed<double>({}, loops_of({3}), loops_of({100003}), {}, Regime::outer, 6);
    check_streamed<float>(loops_of({37}), loops_of({40, 3}), loops_of({131}), {}, Regime::outer, 7);
  }

  TEST_CASE("vectors: sums that are cut, and batches of them") {
    for (const Regime regime : {Regime::matvec, Regime::small_batched}) {
      check_sizes<float>({}, {3}, {}, {200003}, regime);
      check_sizes<double>({}, {}, {70}, {5003}, regime);
      check_sizes<float>({2}, {70}, {}, {600, 7}, regime);
      check_sizes<float>({50}, {6}, {}, {9}, regime);
    }
    check_sizes<float>({}, {}, {}, {300007}, Regime::dot);
    check_sizes<double>({3}, {}, {}, {150, 1001}, Regime::dot);
    check_sizes<float>({70}, {}, {}, {11}, Regime::dot);
  }

  TEST_CASE("random groups, strides and regimes") {
    check_random_contractions<float>(300, 1);
    check_random_contractions<double>(300, 2);
    check_random_contractions<std::int64_t>(150, 3);
  }

  TEST_CASE("empty sums are zero and empty outputs are left alone") {
    for (const Regime regime : {Regime::matmul, Regime::small_batched}) {
      check_sizes<float>({}, {5}, {6}, {0}, regime);
      check_sizes<double>({2}, {5}, {6}, {0}, regime);
      check_sizes<std::int64_t>({2}, {5}, {6}, {0}, regime);
      check_sizes<float>({}, {0}, {6}, {3}, regime);
      check_sizes<float>({0}, {4}, {6}, {3}, regime);
    }
    check_sizes<float>({}, {}, {}, {0}, Regime::dot);
    check_sizes<float>({}, {5}, {}, {0}, Regime::matvec);
  }

  TEST_CASE("NaN and infinity follow IEEE arithmetic") {
    std::mt19937 random(11);
    for (const kernel::Kernels* kernels : kernel::supported_kernels()) {
      CAPTURE(name(kernels));
      Contraction<float> contraction(loops_of({}), loops_of({19}), loops_of({23}), loops_of({31}),
                                     Look{}, random);
      contraction.a[5] = std::numeric_limits<float>::infinity();
      contraction.a[100] = std::numeric_limits<float>::quiet_NaN();
      contraction.b[7] = -std::numeric_limits<float>::infinity();
      contraction.arrange();
      contraction.run(*kernels);
      CHECK(contraction.worst(contraction.answers()) <= 1);
    }
  }

  TEST_CASE("a sum of integers that leaves i64 is an error") {
    std::mt19937 random(5);
    Contraction<std::int64_t> contraction(loops_of({}), loops_of({2}), loops_of({3}), loops_of({4}),
                                          Look{.shuffle = false}, random);
    std::fill(contraction.a.begin(), contraction.a.end(), std::int64_t{1} << 40);
    std::fill(contraction.b.begin(), contraction.b.end(), std::int64_t{1} << 22);
    CHECK_THROWS_WITH_AS(contraction.run(kernel::kernels()), "einsum: integer overflow",
                         ValueError);
    // Partial sums may leave it: 2^63 - 2^63 + 5.
    for (std::size_t i = 0; i < contraction.a.size(); i += 4) {
      contraction.a[i] = std::int64_t{1} << 41;
      contraction.a[i + 1] = -(std::int64_t{1} << 41);
      contraction.a[i + 2] = 5;
      contraction.a[i + 3] = 0;
    }
    for (std::size_t j = 0; j < 12; j += 4) {
      contraction.b[j] = contraction.b[j + 1] = std::int64_t{1} << 22;
      contraction.b[j + 2] = 1;
      contraction.b[j + 3] = 9;
    }
    contraction.run(kernel::kernels());
    CHECK(std::count(contraction.c.begin(), contraction.c.end(), 5) == 6);
  }
}
