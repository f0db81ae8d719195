// SPDX-License-Identifier: Apache-2.0
// What states of rows start from and what is written of them besides the output.
#include <cmath>
#include <limits>
#include <numbers>

#include "attend_fold.h"

namespace einkern::exec {

template <class T>
void start_from_sinks(const AttendShared<T>& shared, std::int64_t batch, std::int64_t row,
                      std::int64_t rows, T* references, double* totals) {
  const plan::Operand& sink = shared.step.sink;
  if (sink.value < 0) return;
  const T* const sinks = reinterpret_cast<const T*>(shared.frame.address(sink)) +
                         shared.batch.offset(batch, sink.layout.strides);
  for (std::int64_t r = 0; r < rows; ++r) {
    const double logit =
        static_cast<double>(sinks[shared.rows.offset(row + r, sink.layout.strides)]) *
        std::numbers::log2e;
    if (logit == -std::numeric_limits<double>::infinity()) continue;
    const double reference = std::ceil(logit);
    references[r] = static_cast<T>(reference);
    totals[r] = std::exp2(logit - reference);
  }
}

template <class T>
void write_logsumexp(const AttendShared<T>& shared, std::int64_t batch, std::int64_t row,
                     std::int64_t rows, const T* references, const double* totals) {
  const plan::Operand& logsumexp = shared.step.logsumexp;
  if (logsumexp.value < 0) return;
  const Dims& strides = logsumexp.layout.strides;
  T* const logs =
      reinterpret_cast<T*>(shared.frame.address(logsumexp)) + shared.batch.offset(batch, strides);
  for (std::int64_t r = 0; r < rows; ++r) {
    logs[shared.rows.offset(row + r, strides)] =
        totals[r] == 0
            ? static_cast<T>(shared.step.empty_row - std::numeric_limits<double>::infinity())
            : static_cast<T>(static_cast<double>(references[r]) * std::numbers::ln2 +
                             std::log(totals[r]));
  }
}

template <class T>
T unit_of(const AttendShared<T>& shared, T reference, double total) {
  const plan::Attend& step = shared.step;
  if (!step.normalise) return T{1};
  if (total == 0) return static_cast<T>(step.empty_row);
  if (step.floor >= 0) {
    const double floor = shared.frame.scalars[static_cast<std::size_t>(step.floor)].real;
    const double logarithm = static_cast<double>(reference) * std::numbers::ln2 + std::log(total);
    // Half the smallest number above 0.
    constexpr double kSmallest =
        sizeof(T) == 4 ? -150 * std::numbers::ln2 : -1075 * std::numbers::ln2;
    if (logarithm - floor < kSmallest) return static_cast<T>(step.empty_row);
  }
  return static_cast<T>(1 / total);
}

template float unit_of(const AttendShared<float>&, float, double);
template double unit_of(const AttendShared<double>&, double, double);
template void start_from_sinks(const AttendShared<float>&, std::int64_t, std::int64_t, std::int64_t,
                               float*, double*);
template void start_from_sinks(const AttendShared<double>&, std::int64_t, std::int64_t,
                               std::int64_t, double*, double*);
template void write_logsumexp(const AttendShared<float>&, std::int64_t, std::int64_t, std::int64_t,
                              const float*, const double*);
template void write_logsumexp(const AttendShared<double>&, std::int64_t, std::int64_t, std::int64_t,
                              const double*, const double*);

}  // namespace einkern::exec
