// SPDX-License-Identifier: Apache-2.0
// The inner loops of the fused pair of contractions: scores to weights, weights times values.
//
// A tile holds up to `lanes * most_vectors` rows (queries), one per lane, so that keys and values
// are broadcast as they lie and nothing is summed across lanes. All arrays over a tile are
// [position][lanes * most_vectors], aligned to a cache line; a kernel works on the first `vectors`
// vectors of every position, so that vectors of rows that see nothing can be left out.
#pragma once

#include <cstdint>

namespace einkern::kernel {

/// Rows that a kernel asks into L2 while it computes, evenly: keys and values of the block after
/// the one at hand.
template <class T>
struct Ahead {
  const T* data = nullptr;
  const std::int64_t* at = nullptr;  // offset of every row
  std::int64_t rows = 0, elements = 0;
};

/// Dot products of a tile of rows with some keys, and their exponentials to base 2.
template <class T>
struct ScoreBlock {
  const T* q = nullptr;  // [inner][rows]
  const T* k = nullptr;  // element i of key j: k[k_at[j] + i]
  const std::int64_t* k_at = nullptr;
  std::int64_t inner = 0, keys = 0;
  // Natural units, added after a factor of log2(e); or null. Key j begins at bias + j * bias_step:
  // the width of the tile, or -1 where biases depend on the difference of row and key.
  const T* bias = nullptr;
  std::int64_t bias_step = 0;
  const T* reference = nullptr;  // [rows], subtracted; or null for scores without exponentials
  T cap = 0;                     // unless 0: cap tanh(dot product) in place of the dot product
  T* out = nullptr;              // [keys][rows]
  T* sums = nullptr;             // [rows], exponentials are added; unused for plain scores
  Ahead<T> ahead = {};
};

/// out[c, r] = (or +=) sum_j weights[j, r] v[v_at[j] + c].
template <class T>
struct ValueBlock {
  const T* weights = nullptr;  // [keys][rows]
  const T* v = nullptr;
  const std::int64_t* v_at = nullptr;
  std::int64_t columns = 0, keys = 0;
  bool first = false;  // out holds nothing yet
  T* out = nullptr;    // [columns][rows]
  Ahead<T> ahead = {};
};

/// What the sums of exponentials of a block say about the references of its rows.
enum class Drift : std::uint8_t {
  none,     // all at most kMostSum
  small,    // some above: shift the reference after the block
  large,    // some above kHugeSum: the block must be done again
  invalid,  // some NaN
};
inline constexpr double kMostSum = 0x1p8, kHugeSum = 0x1p24;

/// Up to here dot products start from their bias. Beyond, the rounding of `dot + bias` decides the
/// answer (a row of dot + lowest is uniform), so that it must be one addition.
inline constexpr double kMostBias = 0x1p14;

/// The kernels of one element type. `vectors` is at most `most_vectors`. All of them flush denormal
/// results to zero while they run (products with denormal weights take 100 x longer) and put the
/// caller's floating-point mode back.
template <class T>
struct AttendFunctions {
  std::int64_t lanes = 1;         // of a vector
  std::int64_t most_vectors = 1;  // of a tile
  void (*scores)(const ScoreBlock<T>& block, std::int64_t vectors) noexcept = nullptr;
  /// scores[j, r] = 2^(scores[j, r] - reference[r]); their sums are added to `sums`.
  void (*weigh)(T* scores, std::int64_t keys, const T* reference, T* sums,
                std::int64_t vectors) noexcept = nullptr;
  /// largest[r] = max(largest[r], scores[j, r]) over keys j; NaN never wins over a number.
  void (*largest)(const T* scores, std::int64_t keys, std::int64_t vectors,
                  T* largest) noexcept = nullptr;
  /// Are all of n (whole vectors) biases -inf or of a size that may join a sum of products without
  /// drowning it?
  bool (*moderate)(const T* bias, std::int64_t n) noexcept = nullptr;
  Drift (*judge)(const T* sums, std::int64_t vectors) noexcept = nullptr;
  void (*values)(const ValueBlock<T>& block, std::int64_t vectors) noexcept = nullptr;
  /// x[c, r] *= factors[r]; are all products finite?
  bool (*scale)(T* x, std::int64_t columns, const T* factors,
                std::int64_t vectors) noexcept = nullptr;
  /// x[i] *= factor.
  void (*multiply)(T* x, std::int64_t n, T factor) noexcept = nullptr;
};

struct AttendKernels {
  AttendFunctions<float> f32;
  AttendFunctions<double> f64;

  template <class T>
  const AttendFunctions<T>& of() const noexcept {
    if constexpr (sizeof(T) == sizeof(float)) {
      return f32;
    } else {
      return f64;
    }
  }
};

/// Sets every pointer to the kernels of the target that Highway dispatches to now.
void fill_attend(AttendKernels& kernels);

}  // namespace einkern::kernel
