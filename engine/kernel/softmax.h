// SPDX-License-Identifier: Apache-2.0
// Softmax, its logarithm and logsumexp of one contiguous row.
#pragma once

#include <cstdint>

namespace einkern::kernel {

struct SoftmaxKernels {
  /// One row of `n` contiguous elements; `sink` is null or one extra logit that takes part in the
  /// maximum and in the sum. `out` may be `in`. Sums are added in blocks of 128 vectors joined
  /// pairwise, so that the result depends on the row alone.
  ///
  /// A row that is -inf everywhere (the sink too) gives 0, -inf and -inf; NaN in the row gives NaN,
  /// and so does +inf, as the arithmetic inf - inf says.
  template <class T>
  struct Rows {
    /// out[i] = exp(in[i] - max) / sum(exp(in - max))
    void (*softmax)(const T* in, const T* sink, std::int64_t n, T* out) noexcept = nullptr;
    /// out[i] = in[i] - max - log(sum(exp(in - max)))
    void (*log_softmax)(const T* in, const T* sink, std::int64_t n, T* out) noexcept = nullptr;
    /// *out = max + log(sum(exp(in - max)))
    void (*logsumexp)(const T* in, const T* sink, std::int64_t n, T* out) noexcept = nullptr;
  };
  Rows<float> f32;
  Rows<double> f64;
};

/// Sets every pointer to the kernels of the target that Highway dispatches to now.
void fill_softmax(SoftmaxKernels& kernels);

}  // namespace einkern::kernel
