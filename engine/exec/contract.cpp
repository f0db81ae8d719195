// SPDX-License-Identifier: Apache-2.0
// Dispatches a contraction to the code of its regime and element type.
#include "contract.h"

#include "../base/error.h"
#include "boxes.h"
#include "epilogue.h"

namespace einkern::exec {
namespace {

/// The sums of nothing.
void fill_zero(const plan::Contract& step, const Frame& frame) {
  plan::Loops loops = step.batch;
  loops.insert(loops.end(), step.m.begin(), step.m.end());
  loops.insert(loops.end(), step.n.begin(), step.n.end());
  const std::int64_t count = extent(loops);
  dispatch(step.c.dtype, [&]<class T>(std::type_identity<T>) {
    T* const c = reinterpret_cast<T*>(frame.address(step.c));
    for (std::int64_t i = 0; i < count; ++i) c[offset_at(loops, i, &plan::Loop::c)] = T{0};
  });
  run_epilogue(step, frame);
}

}  // namespace

void run(const plan::Contract& step, const Frame& frame) {
  const bool widens = plan::widens(step);
  EINKERN_CHECK(widens || (step.a.dtype == step.c.dtype && step.b.dtype == step.c.dtype));
  if (extent(step.batch) == 0 || extent(step.m) == 0 || extent(step.n) == 0) return;
  if (extent(step.k) == 0) return fill_zero(step, frame);
  if (step.regime == plan::Regime::skinny && run_skinny(step, frame)) return;
  if (widens) return run_matmul(step, frame);
  if (!is_float(step.c.dtype)) return run_integer(step, frame);
  if (step.k.empty()) return run_outer(step, frame);
  if (run_lanes(step, frame)) return;
  const bool vector_a = step.m.empty(), vector_b = step.n.empty();
  switch (step.regime) {
    case plan::Regime::dot:
      if (vector_a && vector_b) return run_dot(step, frame);
      break;
    case plan::Regime::matvec:
      if (vector_a != vector_b) return run_matvec(step, frame);
      break;
    case plan::Regime::small_batched:
      if (vector_a && vector_b) return run_dot(step, frame);
      if (vector_a || vector_b) return run_matvec(step, frame);
      return run_small(step, frame);
    case plan::Regime::stream:
      if (run_stream(step, frame)) return;
      break;
    case plan::Regime::outer:
    case plan::Regime::skinny:
    case plan::Regime::matmul:
      break;
  }
  // One matrix so small that blocking it would take longer than multiplying it.
  constexpr double kSmallProducts = 2048;
  if (step.batch.empty() && static_cast<double>(extent(step.m)) *
                                    static_cast<double>(extent(step.n)) *
                                    static_cast<double>(extent(step.k)) <=
                                kSmallProducts) {
    return run_small(step, frame);
  }
  run_matmul(step, frame);
}

}  // namespace einkern::exec
