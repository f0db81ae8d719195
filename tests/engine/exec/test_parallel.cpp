// SPDX-License-Identifier: Apache-2.0
// Loops over tiles: every tile once, exceptions, widths, and the same bits for any thread count.
#include <doctest/doctest.h>
#include <tbb/parallel_for.h>
#include <tbb/task_arena.h>

#include <atomic>
#include <random>
#include <stdexcept>

#include "../../../engine/base/machine.h"
#include "../../../engine/exec/parallel.h"
#include "contraction.h"
#include "threads.h"

using namespace einkern;
using namespace einkern::test;

namespace {

constexpr double kMuch = 1e9;

// More than 64 tiles in every cut (by columns, rows, sums and batch), several blocks of k; then the
// other regimes.
template <class T>
std::vector<Contraction<T>> large_contractions() {
  std::mt19937 random(3);
  std::vector<Contraction<T>> all;
  all.emplace_back(loops_of({}), loops_of({700}), loops_of({800}), loops_of({1100}),
                   Look{.shuffle = false}, random);
  all.emplace_back(loops_of({}), loops_of({800}), loops_of({30, 20}), loops_of({1100}), Look{},
                   random);
  all.emplace_back(loops_of({}), loops_of({30}), loops_of({40}), loops_of({9000}), Look{}, random);
  all.emplace_back(loops_of({67}), loops_of({60}), loops_of({70}), loops_of({40}), Look{}, random);
  all.emplace_back(loops_of({3}), loops_of({}), loops_of({}), loops_of({2000000}), Look{}, random);
  all.back().step.regime = plan::Regime::dot;
  all.emplace_back(loops_of({}), loops_of({1500}), loops_of({}), loops_of({1300}), Look{}, random);
  all.back().step.regime = plan::Regime::matvec;
  all.emplace_back(loops_of({20000}), loops_of({5}), loops_of({6}), loops_of({7}), Look{}, random);
  all.back().step.regime = plan::Regime::small_batched;
  all.emplace_back(loops_of({900}), loops_of({}), loops_of({800}), loops_of({}), Look{}, random);
  all.back().step.regime = plan::Regime::outer;
  for (auto& contraction : all) contraction.arrange();
  return all;
}

template <class T>
void check_same_bits() {
  for (Contraction<T>& contraction : large_contractions<T>()) {
    decltype(contraction.c) first;
    with_threads([&](int threads) {
      CAPTURE(threads);
      contraction.clear();
      contraction.run(kernel::kernels());
      if (first.empty()) first = contraction.c;
      CHECK(contraction.c == first);
    });
    // Inside a parallel loop of the caller, at the same time as others.
    contraction.clear();
    std::vector<Contraction<T>> copies(3, contraction);
    tbb::parallel_for(std::size_t{0}, copies.size(),
                      [&](std::size_t i) { copies[i].run(kernel::kernels()); });
    for (const auto& copy : copies) CHECK(copy.c == first);
  }
}

}  // namespace

TEST_SUITE("exec") {
  TEST_CASE("every tile runs once") {
    for (const std::int64_t tiles : {0, 1, 2, 63, 1000}) {
      for (const double work : {1.0, kMuch}) {
        std::vector<std::atomic<int>> seen(static_cast<std::size_t>(tiles));
        exec::parallel_for(tiles, work,
                           [&](std::int64_t tile) { ++seen[static_cast<std::size_t>(tile)]; });
        for (const auto& count : seen) CHECK(count == 1);
      }
    }
  }

  TEST_CASE("the first exception comes out of the loop") {
    for (const double work : {1.0, kMuch}) {
      CHECK_THROWS_WITH_AS(exec::parallel_for(100, work,
                                              [](std::int64_t tile) {
                                                if (tile == 42) throw std::runtime_error("tile");
                                              }),
                           "tile", std::runtime_error);
    }
  }

  TEST_CASE("the width of loops") {
    CHECK(exec::concurrency() == machine().processors);
    exec::in_arena(5, [](std::int64_t) {
      CHECK(exec::concurrency() == 5);
      exec::in_arena(1, [](std::int64_t) { CHECK(exec::concurrency() == 1); });
      exec::in_arena(0, [](std::int64_t) { CHECK(exec::concurrency() == 5); });
    });
    // oneTBB has now put this thread into its implicit arena; that is not the caller's choice.
    CHECK(exec::concurrency() == machine().processors);
    tbb::task_arena own(7);
    own.execute([] { CHECK(exec::concurrency() == 7); });
  }

  TEST_CASE("loops inside tiles stay in their arena") {
    std::atomic<int> sum{0};
    exec::in_arena(3, [&](std::int64_t) {
      exec::parallel_for(8, kMuch, [&](std::int64_t) {
        if (exec::concurrency() != 3) throw std::logic_error("another arena");
        exec::parallel_for(8, kMuch, [&](std::int64_t tile) { sum += static_cast<int>(tile); });
      });
    });
    CHECK(sum == 8 * 28);
  }

  TEST_CASE("products on one thread each of a wide arena of the caller") {
    std::mt19937 random(5);
    Contraction<float> contraction(loops_of({}), loops_of({200}), loops_of({300}), loops_of({90}),
                                   Look{.reverse = true}, random);
    contraction.arrange();
    contraction.clear();
    contraction.run(kernel::kernels());
    std::vector<Contraction<float>> copies(60, contraction);
    for (auto& copy : copies) copy.clear();
    tbb::task_arena wide(5);
    wide.execute([&] {
      tbb::parallel_for(std::size_t{0}, copies.size(), [&](std::size_t i) {
        exec::in_arena(1, [&](std::int64_t) { copies[i].run(kernel::kernels()); });
      });
    });
    for (const auto& copy : copies) CHECK(copy.c == contraction.c);
  }

  TEST_CASE("the same bits for any number of threads") {
    check_same_bits<float>();
    check_same_bits<double>();
  }
}
