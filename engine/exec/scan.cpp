// SPDX-License-Identifier: Apache-2.0
// The step that runs a linear recurrence along an axis: neighbouring sequences side by side where
// they lie so, others one by one.
#include <algorithm>
#include <cstdlib>

#include "../base/error.h"
#include "frame.h"
#include "parallel.h"
#include "space.h"

namespace einkern::exec {
namespace {

constexpr std::int64_t kLanes = 512;               // sequences of one task: their states stay in L1
constexpr std::int64_t kScanTaskElements = 16384;  // of one task, for sequences one by one

/// Where one view stands, and how it moves along the scanned axis and to the next sequence.
template <class T>
struct Walk {
  T* at;
  std::int64_t along, across;
};

/// `count` neighbouring sequences of `steps` elements; `gate.at` may be null.
template <class T>
void scan(const Walk<const T>& in, const Walk<const T>& gate, const Walk<T>& out,
          std::int64_t steps, std::int64_t count) {
  for (std::int64_t i = 0; i < count; ++i) out.at[i * out.across] = in.at[i * in.across];
  const T* before = out.at;
  for (std::int64_t t = 1; t < steps; ++t) {
    const T* const x = in.at + t * in.along;
    T* const y = out.at + t * out.along;
    const T* const g = gate.at == nullptr ? nullptr : gate.at + t * gate.along;
    if (g == nullptr) {
      for (std::int64_t i = 0; i < count; ++i) {
        y[i * out.across] = before[i * out.across] + x[i * in.across];
      }
    } else if (out.across == 1 && in.across == 1 && gate.across == 1) {
      for (std::int64_t i = 0; i < count; ++i) y[i] = g[i] * before[i] + x[i];
    } else if (out.across == 1 && in.across == 1 && gate.across == 0) {
      for (std::int64_t i = 0; i < count; ++i) y[i] = g[0] * before[i] + x[i];
    } else {
      for (std::int64_t i = 0; i < count; ++i) {
        y[i * out.across] = g[i * gate.across] * before[i * out.across] + x[i * in.across];
      }
    }
    before = y;
  }
}

template <class T>
void run_as(const plan::Scan& step, const Frame& frame) {
  const std::int64_t steps = step.out.layout.shape[step.axis];
  Dims shape = step.out.layout.shape;
  shape.erase(step.axis);
  const auto others = [&](const plan::Operand& operand) {
    Dims strides = operand.value >= 0 ? operand.layout.strides : step.out.layout.strides;
    strides.erase(step.axis);
    return strides;
  };
  const Dims out = others(step.out), in = others(step.in), gate = others(step.gate);
  const Space space = make_space(shape, {&out, &in, &gate});
  const std::size_t last = space.rank() == 0 ? 0 : space.rank() - 1;
  const std::int64_t lanes = space.rank() == 0 ? 1 : space.sizes[last];
  const auto walk = [&]<class P>(P* first, const plan::Operand& operand, std::size_t view) {
    const std::int64_t along = operand.value >= 0 ? operand.layout.strides[step.axis] : 0;
    return Walk<P>{first, along, space.rank() == 0 ? 0 : space.strides[view][last]};
  };
  const auto to = walk(reinterpret_cast<T*>(frame.address(step.out)), step.out, 0);
  const auto from = walk(reinterpret_cast<const T*>(frame.address(step.in)), step.in, 1);
  const T* gates = nullptr;
  if (step.gate.value >= 0) gates = reinterpret_cast<const T*>(frame.address(step.gate));
  const auto by = walk(gates, step.gate, 2);

  // Side by side when the next sequence is nearer than the next element of this one.
  const bool abreast = std::abs(to.across) < std::abs(to.along) || steps == 1;
  const std::int64_t most = abreast ? kLanes : std::max<std::int64_t>(1, kScanTaskElements / steps);
  const std::int64_t pieces = (lanes + most - 1) / most;
  const double work = static_cast<double>(space.size()) * static_cast<double>(steps);
  parallel_for(space.size() / lanes * pieces, work, [&](std::int64_t task) {
    const std::int64_t first = task % pieces * most, count = std::min(most, lanes - first);
    const auto moved = [&](auto view, std::size_t number, std::int64_t lane) {
      if (view.at == nullptr) return view;
      view.at += space.offset(number, task / pieces, last) + lane * view.across;
      return view;
    };
    const std::int64_t together = abreast ? count : 1;
    for (std::int64_t lane = first; lane < first + count; lane += together) {
      scan<T>(moved(from, 1, lane), moved(by, 2, lane), moved(to, 0, lane), steps, together);
    }
  });
}

}  // namespace

void run(const plan::Scan& step, const Frame& frame) {
  EINKERN_CHECK(step.in.dtype == step.out.dtype && step.axis < step.out.layout.rank());
  if (element_count(step.out.layout.shape) == 0) return;
  if (step.out.dtype == DType::f32) {
    run_as<float>(step, frame);
  } else {
    EINKERN_CHECK(step.out.dtype == DType::f64);
    run_as<double>(step, frame);
  }
}

}  // namespace einkern::exec
