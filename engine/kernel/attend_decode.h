// SPDX-License-Identifier: Apache-2.0
// The inner loops of the fused pair of contractions for few rows (decoding): elements of keys and
// values in lanes, so that each byte of them is loaded once for all rows.
#pragma once

#include <cstdint>

#include "../base/dtype.h"
#include "stored_rows.h"

namespace einkern::kernel {

/// Keys whose scores are computed together.
inline constexpr std::int64_t kDecodeKeys = 8;

/// out[j, r] = sum_i q[r, i] k[j, i].
template <class T>
struct DecodeScores {
  const T* q = nullptr;  // [i / e][rows][e] for e = together(rows), zeros behind `inner`
  StoredRows k;
  std::int64_t inner = 0, keys = 0, rows = 0;
  T* out = nullptr;       // [keys][rows]; scores of up to kDecodeKeys - 1 keys more are spoilt
  StoredRows ahead = {};  // of k's type, asked into L2 meanwhile
  std::int64_t ahead_rows = 0;
};

/// out[r, c] += sum_j weights[j, r] v[j, c].
template <class T>
struct DecodeValues {
  const T* weights = nullptr;  // [keys][rows]
  StoredRows v;
  std::int64_t columns = 0, keys = 0, rows = 0;
  T* out = nullptr;  // [rows][out_stride]: whole vectors
  std::int64_t out_stride = 0;
  StoredRows ahead = {};  // as those of DecodeScores
  std::int64_t ahead_rows = 0;
};

/// The kernels of one element type; denormals as in AttendFunctions. Arrays are aligned to a cache
/// line and strides whole lines. `rows` are padded: a power of two, at least vector_rows. `n`
/// counts whole vectors of scores, [key][rows].
template <class T>
struct DecodeFunctions {
  std::int64_t vector_rows = 1;  // least rows
  // Elements of a row of q that lie side by side, for vector_rows rows and for more.
  std::int64_t together_of_few = 1, together_of_more = 1;
  void (*scores)(const DecodeScores<T>& block) noexcept = nullptr;
  /// largest[r] = the largest score of a row; NaN never wins over a number.
  void (*largest)(const T* scores, std::int64_t n, std::int64_t rows,
                  T* largest) noexcept = nullptr;
  /// x[i] = x[i] log2(e), bounded so that a finite score stays finite.
  void (*to_base_2)(T* scores, std::int64_t n) noexcept = nullptr;
  /// x[j, r] = 2^(x[j, r] - reference[r]); sums[r] = their sum.
  void (*weigh)(T* scores, std::int64_t n, std::int64_t rows, const T* reference,
                T* sums) noexcept = nullptr;
  void (*values)(const DecodeValues<T>& block) noexcept = nullptr;

  std::int64_t together(std::int64_t rows) const noexcept {
    return rows == vector_rows ? together_of_few : together_of_more;
  }
  std::int64_t padded_rows(std::int64_t rows) const noexcept {
    std::int64_t padded = vector_rows;
    while (padded < rows) padded *= 2;
    return padded;
  }
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
