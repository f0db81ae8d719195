// SPDX-License-Identifier: Apache-2.0
// Streamed contractions against a naive double sum: every way to read the large operand, ragged
// runs, places of the output that are no whole lines, on every SIMD target.
#include <doctest/doctest.h>

#include <cstring>
#include <limits>
#include <random>

#include "../../../engine/exec/contract.h"
#include "../../../engine/exec/execute.h"
#include "../../../engine/exec/parallel.h"
#include "contraction.h"

using namespace einkern;
using namespace einkern::test;

namespace {

template <class T>
bool stream(Contraction<T>& contraction, const kernel::Kernels& kernels) {
  exec::Frame frame{.values = {reinterpret_cast<std::byte*>(contraction.a.data()),
                               reinterpret_cast<std::byte*>(contraction.b.data()),
                               reinterpret_cast<std::byte*>(contraction.c.data())},
                    .scalars = {},
                    .kernels = kernels};
  return exec::run_stream(contraction.step, frame);
}

/// A label of a term and its size.
struct Axis {
  char label;
  std::int64_t size;
};

/// Gives the loops of a contraction the strides of three terms, outermost label first; `gap`
/// elements lie between the rows of the innermost axis of each.
template <class T>
Contraction<T> contraction_of(const std::vector<Axis>& axes, const std::string& a,
                              const std::string& b, const std::string& c, std::int64_t gap,
                              std::int64_t skew, std::mt19937& random) {
  const auto group = [&](bool in_a, bool in_b, bool in_c) {
    std::vector<char> labels;
    for (const Axis& axis : axes) {
      const auto has = [&](const std::string& term) {
        return term.find(axis.label) != std::string::npos;
      };
      if (has(a) == in_a && has(b) == in_b && has(c) == in_c) labels.push_back(axis.label);
    }
    return labels;
  };
  const auto size_of_label = [&](char label) {
    for (const Axis& axis : axes) {
      if (axis.label == label) return axis.size;
    }
    return std::int64_t{1};
  };
  const std::vector<char> m = group(true, false, true), n = group(false, true, true),
                          k = group(true, true, false);
  const auto loops = [&](const std::vector<char>& labels) {
    Loops result;
    for (const char label : labels) result.push_back({.size = size_of_label(label)});
    return result;
  };
  Contraction<T> result({}, loops(m), loops(n), loops(k), Look{.shuffle = false}, random);
  const auto place = [&](const std::string& term, StrideOf stride, auto& memory,
                         std::int64_t& offset) {
    std::int64_t total = 1;
    for (std::size_t i = term.size(); i-- > 0;) {
      const auto set = [&](Loops& group_loops, const std::vector<char>& labels) {
        for (std::size_t l = 0; l < labels.size(); ++l) {
          if (labels[l] == term[i]) group_loops[l].*stride = total;
        }
      };
      set(result.step.m, m);
      set(result.step.n, n);
      set(result.step.k, k);
      total *= size_of_label(term[i]);
      if (i + 1 == term.size()) total += gap;
    }
    // The output begins `skew` elements behind a cache line.
    constexpr std::int64_t kLine = 64 / sizeof(T);
    memory.assign(static_cast<std::size_t>(total + 3 * kLine), Contraction<T>::kUntouched);
    offset = kLine;
    while (reinterpret_cast<std::uintptr_t>(memory.data() + offset) % 64 != 0) ++offset;
    offset += skew;
  };
  place(a, &Loop::a, result.a, result.step.a.layout.offset);
  place(b, &Loop::b, result.b, result.step.b.layout.offset);
  place(c, &Loop::c, result.c, result.step.c.layout.offset);
  std::uniform_real_distribution<T> uniform(-1, 1);
  // The same values wherever the first element lies.
  for (const auto& [memory, first] : {std::pair{&result.a, result.step.a.layout.offset},
                                      std::pair{&result.b, result.step.b.layout.offset}}) {
    std::mt19937 values(1);
    for (auto i = static_cast<std::size_t>(first); i < memory->size(); ++i) {
      (*memory)[i] = uniform(values);
    }
  }
  result.arrange();
  return result;
}

/// a holds the rows, b the columns; c's last label is one of b.
template <class T>
void check(const std::vector<Axis>& axes, const std::string& a, const std::string& b,
           const std::string& c) {
  std::mt19937 random(3);
  CAPTURE(b);
  for (const std::int64_t gap : {0, 5}) {
    for (const std::int64_t skew : {0, 3}) {
      auto contraction = contraction_of<T>(axes, a, b, c, gap, skew, random);
      const auto answers = contraction.answers();
      for (const kernel::Kernels* kernels : kernel::supported_kernels()) {
        CAPTURE(kernels->target.name.data());
        contraction.clear();
        REQUIRE(stream(contraction, *kernels));
        CHECK(contraction.worst(answers) <= 1);
      }
    }
  }
}

}  // namespace

TEST_SUITE("exec") {
  TEST_CASE("the operand is contiguous along columns that are no lanes") {
    // Whole lines, a run that continues in another label, ragged runs with joined rows.
    check<float>({{'a', 48}, {'b', 3}, {'c', 13}, {'e', 21}, {'k', 6}}, "kc", "abke", "ecba");
    check<float>({{'a', 24}, {'b', 5}, {'c', 10}, {'e', 18}, {'k', 7}}, "kc", "akbe", "ecba");
    check<float>({{'a', 16}, {'b', 9}, {'c', 7}, {'d', 10}, {'e', 33}, {'k', 6}}, "kd", "akbce",
                 "edcba");
    check<double>({{'a', 8}, {'b', 4}, {'c', 7}, {'d', 10}, {'e', 19}, {'k', 6}}, "kd", "akbce",
                  "edcba");
    check<float>({{'a', 40}, {'b', 11}, {'d', 3}, {'e', 17}, {'k', 5}}, "kb", "daek", "edba");
    check<double>({{'a', 20}, {'b', 11}, {'d', 3}, {'e', 9}, {'k', 5}}, "kb", "dake", "edba");
  }

  TEST_CASE("the operand is contiguous along the sum") {
    check<float>({{'a', 33}, {'b', 6}, {'c', 10}, {'k', 37}}, "kc", "abk", "cba");
    check<double>({{'a', 33}, {'b', 6}, {'c', 10}, {'k', 5}}, "ck", "bak", "cba");
    check<float>({{'a', 24}, {'b', 8}, {'c', 3}, {'d', 5}, {'k', 16}}, "bdk", "cak", "dcba");
  }

  TEST_CASE("the operand is contiguous along the lanes") {
    check<float>({{'a', 70}, {'b', 6}, {'c', 5}, {'k', 9}}, "kb", "cka", "cba");
    check<double>({{'a', 501}, {'b', 2}, {'c', 3}, {'k', 4}, {'l', 3}}, "lbk", "kcla", "cba");
    check<float>({{'a', 600}, {'b', 7}, {'k', 3}}, "kb", "ka", "ba");
  }

  TEST_CASE("rows too many to be packed are read where they lie") {
    check<float>({{'a', 72}, {'b', 12001}, {'k', 23}}, "bk", "ak", "ba");
    check<double>({{'a', 19}, {'b', 9001}, {'k', 16}}, "bk", "ka", "ba");
  }

  TEST_CASE("outputs larger than a cache go around it") {
    check<float>({{'a', 48}, {'b', 20}, {'c', 19}, {'e', 40}, {'k', 3}}, "kc", "akbe", "ecba");
    check<float>({{'a', 72}, {'b', 64}, {'d', 160}, {'k', 2}}, "kb", "akd", "dba");
  }

  TEST_CASE("random strides and groups") {
    std::mt19937 random(17);
    const auto& tables = kernel::supported_kernels();
    int streamed = 0;
    for (int i = 0; i < 600; ++i) {
      const auto group = [&](std::int64_t largest, std::size_t most) {
        Loops loops;
        for (std::size_t l = 1 + random() % most; l > 0; --l) {
          loops.push_back({.size = 2 + static_cast<std::int64_t>(random()) % largest});
        }
        return loops;
      };
      const Loops m = group(12, 2), n = group(40, 3), k = group(9, 2);
      if (positions(m) * positions(n) * positions(k) > 1 << 18) continue;
      const Look look{.shuffle = true,
                      .reverse = random() % 4 == 0,
                      .pad = random() % 3 == 0,
                      .skew = static_cast<std::int64_t>(random() % 5)};
      CAPTURE(i);
      Contraction<float> contraction({}, m, n, k, look, random);
      contraction.arrange();
      if (!stream(contraction, *tables[random() % tables.size()])) continue;
      ++streamed;
      REQUIRE(contraction.worst(contraction.answers()) <= 1);
    }
    CHECK(streamed > 20);
  }

  TEST_CASE("NaN and infinity reach the products that they belong to and no others") {
    std::mt19937 random(5);
    for (const kernel::Kernels* kernels : kernel::supported_kernels()) {
      auto contraction = contraction_of<float>({{'a', 24}, {'b', 5}, {'e', 21}, {'k', 7}}, "kb",
                                               "ake", "eba", 0, 0, random);
      contraction.b[40] = std::numeric_limits<float>::infinity();
      contraction.b[300] = std::numeric_limits<float>::quiet_NaN();
      contraction.a[20] = -std::numeric_limits<float>::infinity();
      REQUIRE(stream(contraction, *kernels));
      CHECK(contraction.worst(contraction.answers()) <= 1);
    }
  }

  TEST_CASE("the same bits for any number of threads and any alignment") {
    const std::vector<Axis> axes{{'a', 24}, {'b', 5}, {'d', 30}, {'e', 50}, {'k', 19}};
    std::vector<float> first;
    for (const int threads : {1, 2, 3}) {
      for (const std::int64_t skew : {0, 1}) {
        std::mt19937 random(9);
        auto contraction = contraction_of<float>(axes, "kb", "dake", "edba", 0, skew, random);
        exec::in_arena(threads,
                       [&](std::int64_t) { REQUIRE(stream(contraction, kernel::kernels())); });
        const float* c = contraction.c.data() + contraction.step.c.layout.offset;
        const std::vector<float> values(c, c + std::ptrdiff_t{24} * 5 * 30 * 50);
        if (first.empty()) first = values;
        CHECK(std::memcmp(values.data(), first.data(), first.size() * sizeof(float)) == 0);
      }
    }
  }
}
