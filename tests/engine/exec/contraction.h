// SPDX-License-Identifier: Apache-2.0
// Random contractions over padded, permuted and reversed tensors, with a naive sum to compare with.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <random>
#include <span>
#include <vector>

#include "../../../engine/exec/frame.h"
#include "guarded.h"
#include "loop_offsets.h"
#include "on_lines.h"

namespace einkern::test {

/// How the tensors of a contraction lie in memory.
struct Look {
  bool shuffle = true;    // labels of each tensor in random order
  bool reverse = false;   // some strides negative
  bool pad = false;       // gaps between rows
  std::int64_t skew = 0;  // elements before the first one, to misalign it
};

/// A contraction with its memory. T is float, double or std::int64_t.
template <class T>
struct Contraction {
  plan::Contract step;
  std::vector<T, Guarded<T>> a, b;  // a read behind them is a fault
  std::vector<T, OnLines<T>> c;

  static constexpr T kUntouched = static_cast<T>(-77);

  /// Lays out loops of the given sizes; their strides are filled in here.
  Contraction(Loops batch, Loops m, Loops n, Loops k, const Look& look, std::mt19937& random) {
    step.batch = std::move(batch);
    step.m = std::move(m);
    step.n = std::move(n);
    step.k = std::move(k);
    for (plan::Operand* operand : {&step.a, &step.b, &step.c}) operand->dtype = dtype_of<T>;
    step.a.value = 0;
    step.b.value = 1;
    step.c.value = 2;
    step.a.layout.offset = place({&step.batch, &step.m, &step.k}, &Loop::a, look, random, a);
    step.b.layout.offset = place({&step.batch, &step.n, &step.k}, &Loop::b, look, random, b);
    step.c.layout.offset = place({&step.batch, &step.m, &step.n}, &Loop::c, look, random, c);
    fill(a, random);
    fill(b, random);
    std::fill(c.begin(), c.end(), kUntouched);
  }

  /// As the planner orders groups: n by the strides of c, m by those of a, k by the unit stride.
  void arrange() {
    const auto by = [](Loops& loops, StrideOf stride) {
      std::stable_sort(loops.begin(), loops.end(), [stride](const Loop& x, const Loop& y) {
        return std::abs(x.*stride) > std::abs(y.*stride);
      });
    };
    by(step.batch, &Loop::c);
    by(step.m, &Loop::a);
    by(step.n, &Loop::c);
    const bool unit_a =
        std::any_of(step.k.begin(), step.k.end(), [](const Loop& loop) { return loop.a == 1; });
    by(step.k, unit_a ? &Loop::a : &Loop::b);
  }

  void run(const kernel::Kernels& kernels) {
    exec::Frame frame{
        .values = {reinterpret_cast<std::byte*>(a.data()), reinterpret_cast<std::byte*>(b.data()),
                   reinterpret_cast<std::byte*>(c.data())},
        .scalars = {},
        .kernels = kernels};
    exec::run(step, frame);
  }

  /// Forgets the output of the last run.
  void clear() { std::fill(c.begin(), c.end(), kUntouched); }

  /// What an element of c must be: sum of a b, and of |a b|.
  struct Answer {
    std::size_t at;
    double sum = 0, size = 0;
  };
  std::vector<Answer> answers() const {
    const auto batch_a = offsets(step.batch, &Loop::a), batch_b = offsets(step.batch, &Loop::b);
    const auto batch_c = offsets(step.batch, &Loop::c);
    const auto m_a = offsets(step.m, &Loop::a), m_c = offsets(step.m, &Loop::c);
    const auto n_b = offsets(step.n, &Loop::b), n_c = offsets(step.n, &Loop::c);
    const auto k_a = offsets(step.k, &Loop::a), k_b = offsets(step.k, &Loop::b);
    std::vector<Answer> all;
    for (std::size_t e = 0; e < batch_a.size(); ++e) {
      for (std::size_t i = 0; i < m_a.size(); ++i) {
        const T* row = a.data() + step.a.layout.offset + batch_a[e] + m_a[i];
        for (std::size_t j = 0; j < n_b.size(); ++j) {
          const T* column = b.data() + step.b.layout.offset + batch_b[e] + n_b[j];
          Answer answer{
              static_cast<std::size_t>(step.c.layout.offset + batch_c[e] + m_c[i] + n_c[j])};
          for (std::size_t p = 0; p < k_a.size(); ++p) {
            const double product =
                static_cast<double>(row[k_a[p]]) * static_cast<double>(column[k_b[p]]);
            answer.sum += product;
            answer.size += std::abs(product);
          }
          all.push_back(answer);
        }
      }
    }
    return all;
  }

  /// Largest error over its bound K eps sum |a b|, infinite when an element outside c was written;
  /// at most 1 when all is well. Non-finite elements must agree in kind.
  double worst(const std::vector<Answer>& answers) const {
    const auto sums = static_cast<std::size_t>(positions(step.k));
    std::vector<bool> written(c.size(), false);
    double worst = 0;
    for (const Answer& answer : answers) {
      written[answer.at] = true;
      worst =
          std::max(worst, ratio(static_cast<double>(c[answer.at]), answer.sum, answer.size, sums));
    }
    for (std::size_t i = 0; i < c.size(); ++i) {
      if (!written[i] && c[i] != kUntouched) return INFINITY;
    }
    return worst;
  }

 private:
  static double ratio(double got, double want, double size, std::size_t sums) {
    if (std::isnan(want) || std::isinf(want)) {
      return (std::isnan(got) && std::isnan(want)) || got == want ? 0 : INFINITY;
    }
    const double error = std::abs(got - want);
    if (error == 0) return 0;
    if (std::isnan(error)) return INFINITY;
    const double eps = std::is_integral_v<T> ? 0 : std::numeric_limits<T>::epsilon();
    return error / (static_cast<double>(std::max<std::size_t>(sums, 1)) * eps * size);
  }

  static std::int64_t place(const std::vector<Loops*>& groups, StrideOf stride, const Look& look,
                            std::mt19937& random, auto& memory) {
    std::vector<Loop*> loops;
    for (Loops* group : groups) {
      for (Loop& loop : *group) loops.push_back(&loop);
    }
    if (look.shuffle) std::shuffle(loops.begin(), loops.end(), random);
    std::int64_t size = 1, first = look.skew;
    for (auto loop = loops.rbegin(); loop != loops.rend(); ++loop) {
      const bool reversed = look.reverse && random() % 3 == 0;
      (*loop)->*stride = reversed ? -size : size;
      if (reversed) first += size * std::max<std::int64_t>((*loop)->size - 1, 0);
      size *= std::max<std::int64_t>((*loop)->size, 1);
      if (look.pad && random() % 2 == 0) size += static_cast<std::int64_t>(random() % 3);
    }
    memory.resize(static_cast<std::size_t>(size + look.skew));
    return first;
  }

  static void fill(auto& memory, std::mt19937& random) {
    if constexpr (std::is_integral_v<T>) {
      for (T& x : memory) x = static_cast<T>(random() % 2001) - 1000;
    } else {
      std::uniform_real_distribution<T> uniform(-1, 1);
      for (T& x : memory) x = uniform(random);
    }
  }
};

/// Loops of these sizes; strides come later.
inline Loops loops_of(std::initializer_list<std::int64_t> sizes) {
  Loops loops;
  for (const std::int64_t size : sizes) loops.push_back({.size = size});
  return loops;
}

}  // namespace einkern::test
