// SPDX-License-Identifier: Apache-2.0
// Runs a selecting contraction: plainly where every value is finite, else by a loop that skips
// hidden keys.
#include <atomic>
#include <cmath>
#include <cstdint>
#include <vector>

#include "../base/error.h"
#include "boxes.h"
#include "frame.h"
#include "parallel.h"

namespace einkern::exec {
namespace {

using plan::Loop;

/// Loops over every element of an operand, outermost axis first.
plan::Loops loops_over(const plan::Operand& operand) {
  plan::Loops loops;
  for (std::size_t axis = 0; axis < operand.layout.rank(); ++axis) {
    loops.push_back({.size = operand.layout.shape[axis], .a = operand.layout.strides[axis]});
  }
  return loops;
}

template <class T>
bool all_finite(const plan::Operand& operand, const Frame& frame) {
  const auto* data = reinterpret_cast<const T*>(frame.address(operand));
  plan::Loops outer = loops_over(operand);
  if (outer.empty()) return std::isfinite(data[0]);
  const Loop inner = outer.back();
  outer.pop_back();
  const std::int64_t rows = extent(outer);
  std::atomic<bool> finite{true};
  parallel_for(rows, static_cast<double>(rows) * static_cast<double>(inner.size),
               [&](std::int64_t row) {
                 if (!finite.load(std::memory_order_relaxed)) return;
                 const T* const from = data + offset_at(outer, row, &Loop::a);
                 // 0 * x is 0 for finite x and NaN otherwise, and a sum keeps a NaN.
                 T probe = 0;
                 for (std::int64_t i = 0; i < inner.size; ++i) probe += T{0} * from[i * inner.a];
                 if (!(probe == 0)) finite.store(false, std::memory_order_relaxed);
               });
  return finite.load(std::memory_order_relaxed);
}

/// The same loops addressed by the strides of `visible`.
plan::Loops addressed(plan::Loops loops, const std::vector<std::int64_t>& strides) {
  EINKERN_CHECK(loops.size() == strides.size());
  for (std::size_t l = 0; l < loops.size(); ++l) loops[l].a = strides[l];
  return loops;
}

template <class T>
void run_selecting(const plan::SelectContract& step, const Frame& frame) {
  const plan::Contract& contract = step.contract;
  const auto* weights = reinterpret_cast<const T*>(frame.address(contract.a));
  const auto* values = reinterpret_cast<const T*>(frame.address(contract.b));
  const auto* visible = reinterpret_cast<const bool*>(frame.address(step.visible));
  auto* out = reinterpret_cast<T*>(frame.address(contract.c));
  const plan::Loops visible_batch = addressed(contract.batch, step.visible_batch);
  const plan::Loops visible_m = addressed(contract.m, step.visible_m);
  const plan::Loops visible_k = addressed(contract.k, step.visible_k);
  const std::int64_t rows = extent(contract.m);
  const auto columns = static_cast<std::size_t>(extent(contract.n));
  const auto keys = static_cast<std::size_t>(extent(contract.k));

  std::vector<std::int64_t> n_b(columns), n_c(columns), k_a(keys), k_b(keys), k_v(keys);
  list_offsets(contract.n, &Loop::b, n_b.data());
  list_offsets(contract.n, &Loop::c, n_c.data());
  list_offsets(contract.k, &Loop::a, k_a.data());
  list_offsets(contract.k, &Loop::b, k_b.data());
  list_offsets(visible_k, &Loop::a, k_v.data());

  const std::int64_t tiles = extent(contract.batch) * rows;
  const double work =
      static_cast<double>(tiles) * static_cast<double>(columns) * static_cast<double>(keys);
  parallel_for(tiles, work, [&](std::int64_t tile) {
    const std::int64_t entry = tile / rows, row = tile % rows;
    const T* const w =
        weights + offset_at(contract.batch, entry, &Loop::a) + offset_at(contract.m, row, &Loop::a);
    const T* const v = values + offset_at(contract.batch, entry, &Loop::b);
    const bool* const seen =
        visible + offset_at(visible_batch, entry, &Loop::a) + offset_at(visible_m, row, &Loop::a);
    T* const to =
        out + offset_at(contract.batch, entry, &Loop::c) + offset_at(contract.m, row, &Loop::c);
    std::vector<T> sums(columns, T{0});
    for (std::size_t p = 0; p < keys; ++p) {
      if (!seen[k_v[p]]) continue;
      const T weight = w[k_a[p]];
      const T* const from = v + k_b[p];
      for (std::size_t j = 0; j < columns; ++j) sums[j] += weight * from[n_b[j]];
    }
    for (std::size_t j = 0; j < columns; ++j) to[n_c[j]] = sums[j];
  });
}

}  // namespace

void run(const plan::SelectContract& step, const Frame& frame) {
  const plan::Contract& contract = step.contract;
  const bool empty = extent(contract.batch) == 0 || extent(contract.m) == 0 ||
                     extent(contract.n) == 0 || extent(contract.k) == 0;
  if (contract.b.dtype == DType::f32 && !empty && !all_finite<float>(contract.b, frame)) {
    run_selecting<float>(step, frame);
  } else if (contract.b.dtype == DType::f64 && !empty && !all_finite<double>(contract.b, frame)) {
    run_selecting<double>(step, frame);
  } else {
    run(contract, frame);
  }
}

}  // namespace einkern::exec
