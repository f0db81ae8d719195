// SPDX-License-Identifier: Apache-2.0
// Matrix products over packed panels, and the products that need no packing.
#pragma once

#include <cstdint>

#include "../base/dtype.h"

namespace einkern::kernel {

/// A fused group of labels flattened as (outer, unit, inner): positions `inner` apart are
/// neighbours in memory as long as their index along `unit` is below `size`. `size` 1: no such
/// label.
struct UnitRun {
  std::int64_t size = 1;
  std::int64_t inner = 1;
};

/// How the positions of a block (rows of the left matrix, columns of the right one) are cut into
/// panels. Padded panels are all `width` wide; others have balanced widths of at most `width`, so
/// that no product is wasted on an edge.
struct Panels {
  std::int64_t positions = 0;
  std::int64_t width = 1;
  bool padded = false;

  constexpr std::int64_t count() const noexcept { return (positions + width - 1) / width; }
  /// First position of panel `p`; start(count()) is `positions`.
  constexpr std::int64_t start(std::int64_t p) const noexcept {
    if (p == count()) return positions;
    return padded ? p * width : p * positions / count();
  }
  /// Panel that holds `position`.
  constexpr std::int64_t panel_of(std::int64_t position) const noexcept {
    return padded ? position / width : ((position + 1) * count() - 1) / positions;
  }
  /// Elements that `steps` of all panels take.
  constexpr std::int64_t packed_size(std::int64_t steps) const noexcept {
    return (padded ? count() * width : positions) * steps;
  }
};

/// Element offsets of a block of labels, and where its unit stride lies.
struct Offsets {
  const std::int64_t* at = nullptr;
  std::int64_t count = 0;
  UnitRun unit;  // of the operand that is read
};

/// A block of an operand to be packed: panel `p` becomes [step][width of p], panel after panel.
template <class T>
struct PackBlock {
  const void* source = nullptr;
  Offsets lanes;  // rows or columns: positions within panels
  Offsets steps;  // contracted labels
  Panels panels;
  T* packed = nullptr;
  DType dtype = dtype_of<T>;  // of source; for f32 also f16 or bf16, widened on the way
};

/// What becomes of a tile of products.
enum class Update : std::uint8_t { store, add, stream };

/// c[rows[i] + columns[j]] = (or +=) sum_p a[p, i] b[p, j] over packed blocks.
template <class T>
struct MultiplyBlock {
  const T* a = nullptr;  // packed with balanced panels of at most the target's mr rows
  const T* b = nullptr;  // packed with padded panels of the target's nr columns
  // Not 0: a is not packed; its steps are neighbours and its rows so many elements apart.
  std::int64_t a_stride = 0;
  // Not 0: b is not packed; its columns are neighbours, whole vectors of half the target's nr, and
  // its steps are so many elements apart.
  std::int64_t b_stride = 0;
  // Not null: as many rows without gaps that another product reads next. A hint.
  const T* next_a = nullptr;
  T* c = nullptr;
  const std::int64_t* rows = nullptr;
  const std::int64_t* columns = nullptr;
  std::int64_t row_count = 0, column_count = 0, steps = 0;
  Update update =
      Update::store;  // stream: as store, around the caches where whole lines are written
};

/// Elements of a cache line: what the lanes of many small products come in.
template <class T>
inline constexpr std::int64_t kLineOf = 64 / sizeof(T);

/// c[i c_row + j c_column + l] = sum_p a[i a_row + p a_step + at_a(l)] b[j b_column + p b_step +
/// at_b(l)] for l < lanes, where the lanes of an operand come in lines: at_a(l) = l / line * a_line
/// + l % line. As many small products side by side.
template <class T>
struct LaneBlock {
  const T* a = nullptr;
  const T* b = nullptr;
  T* c = nullptr;
  std::int64_t a_row = 0, a_step = 0, a_line = kLineOf<T>;
  std::int64_t b_column = 0, b_step = 0, b_line = kLineOf<T>;
  std::int64_t c_row = 0, c_column = 0;
  std::int64_t rows = 0, columns = 0, steps = 0, lanes = 0;
  bool stream = false;  // around the caches; every line of c is aligned
};

/// packed[(l / line * runs + r) line + l % line] = source[at[r] + l] for l < lanes, or
/// source[at[r]] for all of them: the lines of all runs side by side, the last one padded with
/// zeros.
template <class T>
struct LanePack {
  const T* source = nullptr;
  const std::int64_t* at = nullptr;
  std::int64_t runs = 0, lanes = 0;
  bool same = false;  // one element for all lanes
  T* packed = nullptr;
  std::int64_t line = 0;
};

/// c[e c_entry + i c_row + j] = sum_p a[e a_entry + i a_row + p a_step] b[e b_entry + p b_step + j]
/// for e < count: many small products whose columns are neighbours in memory. Meanwhile memory may
/// be asked for the `ahead` matrices that follow these.
template <class T>
struct SmallBlock {
  const T* a = nullptr;
  const T* b = nullptr;
  T* c = nullptr;
  std::int64_t a_entry = 0, a_row = 0, a_step = 0;
  std::int64_t b_entry = 0, b_step = 0;
  std::int64_t c_entry = 0, c_row = 0;
  std::int64_t rows = 0, columns = 0, steps = 0, count = 0, ahead = 0;
  // Around the caches: nothing is asked for ahead, c is larger than a vector, its rows are half a
  // line or one or two vectors, and aligned to that or to a line.
  bool stream = false;
};

/// c[r c_row + i] = a[r a_row + i a_step] b[r b_row + i b_step] for r < rows, i < columns.
template <class T>
struct ProductBlock {
  const T* a = nullptr;
  const T* b = nullptr;
  T* c = nullptr;
  std::int64_t a_row = 0, a_step = 0, b_row = 0, b_step = 0, c_row = 0;
  std::int64_t rows = 0, columns = 0;
};

/// y[i] = (or +=) sum_p weights[p] x[rows[p] + i] for i < size, in order of p.
template <class T>
struct WeightedRows {
  const T* x = nullptr;
  const std::int64_t* rows = nullptr;
  const T* weights = nullptr;
  std::int64_t row_count = 0, size = 0;
  T* y = nullptr;
  bool add = false;
};

/// The kernels of one element type.
template <class T>
struct MatmulFunctions {
  void (*pack)(const PackBlock<T>& block) noexcept = nullptr;
  void (*multiply)(const MultiplyBlock<T>& block) noexcept = nullptr;
  void (*pack_lanes)(const LanePack<T>& block) noexcept = nullptr;
  void (*multiply_lanes)(const LaneBlock<T>& block) noexcept = nullptr;
  void (*multiply_small)(const SmallBlock<T>& block) noexcept = nullptr;
  void (*weighted_rows)(const WeightedRows<T>& block) noexcept = nullptr;
  /// Sum of a[i] b[i], i < n; the order depends on n alone.
  T (*dot)(const T* a, const T* b, std::int64_t n) noexcept = nullptr;
  void (*products)(const ProductBlock<T>& block) noexcept = nullptr;
};

struct MatmulKernels {
  MatmulFunctions<float> f32;
  MatmulFunctions<double> f64;

  template <class T>
  const MatmulFunctions<T>& of() const noexcept {
    if constexpr (sizeof(T) == sizeof(float)) {
      return f32;
    } else {
      return f64;
    }
  }
};

/// Sets every pointer to the kernels of the target that Highway dispatches to now.
void fill_matmul(MatmulKernels& kernels);

}  // namespace einkern::kernel
