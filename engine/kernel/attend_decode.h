// SPDX-License-Identifier: Apache-2.0
// The inner loops of the fused pair of contractions for few rows (decoding): elements of keys and
// values in lanes, so that each byte of them is loaded once for all rows.
#pragma once

#include <cstdint>

#include "../base/dtype.h"

namespace einkern::kernel {

/// Rows of keys or values where they lie: element i of row j is data[at[j] + i]. They are of the
/// type of the kernel, or f16 or bf16 for f32 ones, which widen them in registers.
struct StoredRows {
  const void* data = nullptr;
  DType dtype = DType::f32;
  const std::int64_t* at = nullptr;
};

/// out[r, j] = sum_i q[r, i] k[j, i].
template <class T>
struct DecodeScores {
  const T* q = nullptr;  // [rows][q_stride], zeros behind `inner`
  std::int64_t q_stride = 0;
  StoredRows k;
  std::int64_t inner = 0, keys = 0, rows = 0;
  T* out = nullptr;  // [rows][out_stride]; up to kDecodeKeys - 1 scores behind the last are spoilt
  std::int64_t out_stride = 0;
  StoredRows ahead = {};  // of k's type, asked into L2 meanwhile
  std::int64_t ahead_rows = 0;
};

/// out[r, c] += sum_j weights[r, j] v[j, c].
template <class T>
struct DecodeValues {
  const T* weights = nullptr;  // [rows][weights_stride]
  std::int64_t weights_stride = 0;
  StoredRows v;
  std::int64_t columns = 0, keys = 0, rows = 0;
  T* out = nullptr;  // [rows][out_stride]: whole vectors
  std::int64_t out_stride = 0;
  StoredRows ahead = {};  // as those of DecodeScores
  std::int64_t ahead_rows = 0;
};

/// Keys whose scores are computed together.
inline constexpr std::int64_t kDecodeKeys = 4;

/// The kernels of one element type; denormals as in AttendFunctions. Arrays are aligned to a cache
/// line and their strides whole lines; `n` counts whole vectors.
template <class T>
struct DecodeFunctions {
  void (*scores)(const DecodeScores<T>& block) noexcept = nullptr;
  /// Largest of n scores; NaN never wins over a number.
  T (*largest)(const T* scores, std::int64_t n) noexcept = nullptr;
  /// x[i] = x[i] log2(e), bounded so that a finite score stays finite.
  void (*to_base_2)(T* scores, std::int64_t n) noexcept = nullptr;
  /// x[i] = 2^(x[i] - reference); returns their sum.
  T (*weigh)(T* scores, std::int64_t n, T reference) noexcept = nullptr;
  void (*values)(const DecodeValues<T>& block) noexcept = nullptr;
};

struct DecodeKernels {
  DecodeFunctions<float> f32;
  DecodeFunctions<double> f64;

  template <class T>
  const DecodeFunctions<T>& of() const noexcept {
    if constexpr (sizeof(T) == sizeof(float)) {
      return f32;
    } else {
      return f64;
    }
  }
};

/// Sets every pointer to the kernels of the target that Highway dispatches to now.
void fill_decode(DecodeKernels& kernels);

}  // namespace einkern::kernel
