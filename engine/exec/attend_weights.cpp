// SPDX-License-Identifier: Apache-2.0
// Weights that are no plain softmax: scores as they are, factors after it, rows without a key.
#include "attend_weights.h"

#include <algorithm>
#include <atomic>
#include <cmath>

#include "attend_fold.h"
#include "parallel.h"
#include "space.h"

namespace einkern::exec {
namespace {

template <class T>
bool are_finite(const T* data, const Layout& layout) {
  const Space space = make_space(layout.shape, {&layout.strides});
  if (space.size() == 0) return true;
  if (space.rank() == 0) return std::isfinite(widen(*data));
  const std::size_t last = space.rank() - 1;
  const std::int64_t run = space.sizes[last], step = space.strides[0][last];
  // Runs are cut, so that one long one is shared out too.
  constexpr std::int64_t kMost = 16384;
  const std::int64_t parts = (run + kMost - 1) / kMost;
  std::atomic<bool> finite{true};
  parallel_for(space.size() / run * parts, static_cast<double>(space.size()),
               [&](std::int64_t task) {
                 const std::int64_t first = task % parts * kMost;
                 const T* x = data + space.offset(0, task / parts, last) + first * step;
                 Widened<T> probe = 0;  // 0 times a number is 0 unless it is not finite
                 for (std::int64_t i = std::min(kMost, run - first); i > 0; --i, x += step) {
                   probe += widen(*x) * Widened<T>{0};
                 }
                 if (probe != 0) finite.store(false, std::memory_order_relaxed);
               });
  return finite;
}

}  // namespace

bool values_are_finite(const plan::Attend& step, const Frame& frame) {
  return dispatch(step.v.dtype, [&]<class T>(std::type_identity<T>) {
    return are_finite(reinterpret_cast<const T*>(frame.address(step.v)), step.v.layout);
  });
}

/// As flush, where scores are the weights.
template <class T>
void AttendFold<T>::flush_plainly() {
  for (const Part& part : parts_) weigh_plainly(part);
  add_values();
  parts_.clear();
  filled_ = 0;
}

/// Scores without exponentials.
template <class T>
void AttendFold<T>::weigh_plainly(const Part& part) {
  T* const weights = work_.weights + part.at * width();
  const bool plain = part.form->plain() && part.form->cap == 0;
  T* const dots = plain ? weights : work_.bias + part.at * width();
  shared_.functions.scores({.q = queries(plain ? part.form->factor : 1),
                            .k = keys_.k,
                            .k_at = keys_.k_at + part.key,
                            .inner = inner(),
                            .keys = part.keys,
                            .out = dots},
                           vectors_);
  if (plain) return;
  const ScoreForm& form = part.form->linear ? shared_.scores.general() : *part.form;
  if (rows_ < width()) std::fill_n(weights, part.keys * width(), T{0});
  prepare(*form.program);
  shared_.scores.evaluate(*form.program, box(part.key, part.keys),
                          reinterpret_cast<const std::byte*>(dots), {width(), 1},
                          reinterpret_cast<std::byte*>(weights), sizeof(T), work_.program);
}

/// The weights of the block, whose sums are known, times their factors.
template <class T>
kernel::Drift AttendFold<T>::apply_factor(kernel::Drift drift) {
  if (drift == kernel::Drift::small) {  // a factor must not overflow
    raise_references(filled_, true);
    score_all(0);
    drift = kernel::Drift::none;
  }
  const kernel::TileProgram& program = *shared_.scores.factor();
  prepare(program);
  for (const Part& part : parts_) {
    T* const weights = work_.weights + part.at * width();
    T* const changed = work_.bias + part.at * width();
    shared_.scores.evaluate(program, box(part.key, part.keys),
                            reinterpret_cast<const std::byte*>(weights), {width(), 1},
                            reinterpret_cast<std::byte*>(changed), sizeof(T), work_.program);
    for (std::int64_t j = 0; j < part.keys; ++j) {
      std::copy_n(changed + j * width(), rows_, weights + j * width());
    }
  }
  return drift;
}

template void AttendFold<float>::weigh_plainly(const Part&);
template void AttendFold<double>::weigh_plainly(const Part&);
template void AttendFold<float>::flush_plainly();
template void AttendFold<double>::flush_plainly();
template kernel::Drift AttendFold<float>::apply_factor(kernel::Drift);
template kernel::Drift AttendFold<double>::apply_factor(kernel::Drift);

}  // namespace einkern::exec
