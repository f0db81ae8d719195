// SPDX-License-Identifier: Apache-2.0
// Folds of runs and of columns: vectors for floats, 128-bit accumulators for integers.
#include "reduce.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "reduce.cpp"
#include <hwy/foreach_target.h>  // IWYU pragma: keep
#include <hwy/highway.h>

#include <algorithm>
#include <limits>

#include "pairwise-inl.h"

HWY_BEFORE_NAMESPACE();
namespace einkern::kernel::HWY_NAMESPACE {

struct ProdFold {
  template <class T>
  static constexpr T identity() {
    return T{1};
  }
  template <class D>
  static HWY_INLINE hn::Vec<D> join(D /*d*/, hn::Vec<D> a, hn::Vec<D> b) {
    return hn::Mul(a, b);
  }
  template <class T>
  static HWY_INLINE T join_one(T a, T b) {
    return a * b;
  }
};

// A NaN on either side wins: `a` where it is greater or NaN, else `b`, NaN or not.
struct MaxFold {
  template <class T>
  static constexpr T identity() {
    return -std::numeric_limits<T>::infinity();
  }
  template <class D>
  static HWY_INLINE hn::Vec<D> join(D /*d*/, hn::Vec<D> a, hn::Vec<D> b) {
    return hn::IfThenElse(hn::Or(hn::Gt(a, b), hn::IsNaN(a)), a, b);
  }
  template <class T>
  static HWY_INLINE T join_one(T a, T b) {
    return a > b || a != a ? a : b;
  }
};
struct MinFold {
  template <class T>
  static constexpr T identity() {
    return std::numeric_limits<T>::infinity();
  }
  template <class D>
  static HWY_INLINE hn::Vec<D> join(D /*d*/, hn::Vec<D> a, hn::Vec<D> b) {
    return hn::IfThenElse(hn::Or(hn::Lt(a, b), hn::IsNaN(a)), a, b);
  }
  template <class T>
  static HWY_INLINE T join_one(T a, T b) {
    return a < b || a != a ? a : b;
  }
};

/// Fold of at most one block of contiguous elements, lane by lane; four chains hide the latency.
template <class Fold, class D, class T>
HWY_INLINE hn::Vec<D> fold_block(D d, const T* x, std::int64_t n) {
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
  const auto identity = hn::Set(d, Fold::template identity<T>());
  auto a0 = identity, a1 = identity, a2 = identity, a3 = identity;
  std::int64_t i = 0;
  for (; i + 4 * lanes <= n; i += 4 * lanes) {
    a0 = Fold::join(d, a0, hn::LoadU(d, x + i));
    a1 = Fold::join(d, a1, hn::LoadU(d, x + i + lanes));
    a2 = Fold::join(d, a2, hn::LoadU(d, x + i + 2 * lanes));
    a3 = Fold::join(d, a3, hn::LoadU(d, x + i + 3 * lanes));
  }
  for (; i + lanes <= n; i += lanes) a0 = Fold::join(d, a0, hn::LoadU(d, x + i));
  if (i < n) a1 = Fold::join(d, a1, load_part(d, x + i, n - i, Fold::template identity<T>()));
  return Fold::join(d, Fold::join(d, a0, a1), Fold::join(d, a2, a3));
}

template <class Fold, class T>
void row(const void* in, std::int64_t n, std::int64_t stride, void* partial) noexcept {
  const hn::ScalableTag<T> d;
  const T* x = static_cast<const T*>(in);
  const std::int64_t block = kBlockVectors * static_cast<std::int64_t>(hn::Lanes(d));
  // A strided run is gathered block by block, so that its elements are joined in the same order.
  HWY_ALIGN T gathered[kBlockVectors * HWY_MAX_BYTES / sizeof(T)];
  const auto block_at = [&](std::int64_t first) {
    const std::int64_t count = std::min(block, n - first);
    if (stride == 1) return fold_block<Fold>(d, x + first, count);
    for (std::int64_t i = 0; i < count; ++i) gathered[i] = x[(first + i) * stride];
    return fold_block<Fold>(d, gathered, count);
  };
  auto total = block_at(0);
  if (n > block) {
    Pairwise<Fold, decltype(d)> tree;
    tree.push(d, total);
    for (std::int64_t i = block; i < n; i += block) tree.push(d, block_at(i));
    total = tree.finish(d);
  }
  *static_cast<T*>(partial) = fold_lanes<Fold>(d, total);
}

/// Every row of `V` vectors of columns, in order of address; the totals wait in registers.
template <class Fold, int V, class T>
HWY_INLINE void narrow_columns(const T* x, std::int64_t rows, std::int64_t row_stride, T* out) {
  const hn::ScalableTag<T> d;
  constexpr std::int64_t N = hn::MaxLanes(d);
  hn::Vec<decltype(d)> total[V];
  HWY_UNROLL(8)
  for (int v = 0; v < V; ++v) total[v] = hn::LoadU(d, x + v * N);
  for (std::int64_t r = 1; r < rows; ++r) {
    x += row_stride;
    HWY_UNROLL(8)
    for (int v = 0; v < V; ++v) total[v] = Fold::join(d, total[v], hn::LoadU(d, x + v * N));
  }
  HWY_UNROLL(8)
  for (int v = 0; v < V; ++v) hn::StoreU(total[v], d, out + v * N);
}

/// All rows of `columns` columns, whole vectors.
template <class Fold, class T>
void narrow_rows(const T* x, std::int64_t rows, std::int64_t row_stride, std::int64_t columns,
                 T* out) {
  constexpr std::int64_t N = hn::MaxLanes(hn::ScalableTag<T>());
  std::int64_t j = 0;
  for (; j + 8 * N <= columns; j += 8 * N) {
    narrow_columns<Fold, 8>(x + j, rows, row_stride, out + j);
  }
  for (; j + 4 * N <= columns; j += 4 * N) {
    narrow_columns<Fold, 4>(x + j, rows, row_stride, out + j);
  }
  for (; j < columns; j += N) narrow_columns<Fold, 1>(x + j, rows, row_stride, out + j);
}

/// Asks the lines of rows into L2, in order of address.
template <class T>
class RowsAhead {
 public:
  HWY_INLINE RowsAhead(const T* from, std::int64_t rows, std::int64_t row_stride,
                       std::int64_t columns)
      : row_(from), rows_(rows), row_stride_(row_stride), columns_(columns) {}

  HWY_INLINE void fetch(std::int64_t lines) {
    constexpr int kRead = 0, kSecondLevel = 2;
    for (; lines > 0 && rows_ > 0; --lines) {
      __builtin_prefetch(row_ + at_, kRead, kSecondLevel);
      at_ += 64 / static_cast<std::int64_t>(sizeof(T));
      if (at_ < columns_) continue;
      at_ = 0;
      if (--rows_ > 0) row_ += row_stride_;
    }
  }

 private:
  const T* row_;
  std::int64_t rows_, at_ = 0;
  const std::int64_t row_stride_, columns_;
};

/// Narrow rows are read in order of address, the only order that all prefetchers follow: abcd->bd
/// of 64 x 64 x 64 x 64 took 3.7 ms eight rows at a time, 2.4 ms in order, on two cores of an EPYC
/// 9004. Of wider ones eight at a time share one load and one store of the partial, in L1, and the
/// next eight are asked for ahead: 2.4 ms, not 3.3, for rows of 1 KiB.
template <class Fold, class T>
void columns(const void* in, std::int64_t rows, std::int64_t row_stride, std::int64_t columns,
             void* partials) noexcept {
  constexpr std::int64_t kRows = 8, kNarrow = 8;
  const hn::ScalableTag<T> d;
  constexpr std::int64_t N = hn::MaxLanes(d);
  constexpr auto kSize = static_cast<std::int64_t>(sizeof(T));
  constexpr std::int64_t kLines = std::max(kRows * N * kSize / 64, std::int64_t{1});
  const T* x = static_cast<const T*>(in);
  T* out = static_cast<T*>(partials);
  std::int64_t begin = columns / N * N;
  if (begin > kNarrow * N) begin = 0;
  narrow_rows<Fold>(x, rows, row_stride, begin, out);
  if (begin == columns) return;
  for (std::int64_t r = 0; r < rows;) {
    const std::int64_t count = std::min(kRows, rows - r);
    const T* first = x + r * row_stride;
    const std::int64_t next = r + count, next_count = std::min(kRows, rows - next);
    RowsAhead<T> ahead(next_count > 0 ? x + next * row_stride : x, next_count, row_stride, columns);
    std::int64_t j = begin;
    for (; j + N <= columns; j += N) {
      auto total = hn::LoadU(d, first + j);
      if (r > 0) total = Fold::join(d, hn::LoadU(d, out + j), total);
      if (count == kRows) {
        ahead.fetch(kLines);
        for (std::int64_t k = 1; k < kRows; ++k) {
          total = Fold::join(d, total, hn::LoadU(d, first + k * row_stride + j));
        }
      } else {
        for (std::int64_t k = 1; k < count; ++k) {
          total = Fold::join(d, total, hn::LoadU(d, first + k * row_stride + j));
        }
      }
      hn::StoreU(total, d, out + j);
    }
    for (; j < columns; ++j) {
      T total = r > 0 ? Fold::join_one(out[j], first[j]) : first[j];
      for (std::int64_t k = 1; k < count; ++k) {
        total = Fold::join_one(total, first[k * row_stride + j]);
      }
      out[j] = total;
    }
    r += count;
  }
}

template <class Fold, class T>
void join(void* partials, const void* others, std::int64_t n) noexcept {
  const hn::ScalableTag<T> d;
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
  T* a = static_cast<T*>(partials);
  const T* b = static_cast<const T*>(others);
  std::int64_t i = 0;
  for (; i + lanes <= n; i += lanes) {
    hn::StoreU(Fold::join(d, hn::LoadU(d, a + i), hn::LoadU(d, b + i)), d, a + i);
  }
  for (; i < n; ++i) a[i] = Fold::join_one(a[i], b[i]);
}

// Integers. A 128-bit sum of 2^60 elements cannot wrap. A product leaves i64 for good, unless a
// zero comes: it is held at 2^63 + 1 (of either sign), whose square still fits.
struct IntSum {
  static HWY_INLINE Int128 join(Int128 a, Int128 b) { return a + b; }
};
struct IntProd {
  static HWY_INLINE Int128 join(Int128 a, Int128 b) {
    constexpr Int128 kBeyond = (Int128{1} << 63) + 1;
    const Int128 product = a * b;
    return product > kBeyond ? kBeyond : product < -kBeyond ? -kBeyond : product;
  }
};
struct IntMax {
  static HWY_INLINE Int128 join(Int128 a, Int128 b) { return a > b ? a : b; }
};
struct IntMin {
  static HWY_INLINE Int128 join(Int128 a, Int128 b) { return a < b ? a : b; }
};

template <class Fold>
void int_row(const void* in, std::int64_t n, std::int64_t stride, void* partial) noexcept {
  const std::int64_t* x = static_cast<const std::int64_t*>(in);
  Int128 total = x[0];
  for (std::int64_t i = 1; i < n; ++i) total = Fold::join(total, x[i * stride]);
  *static_cast<Int128*>(partial) = total;
}

template <class Fold>
void int_columns(const void* in, std::int64_t rows, std::int64_t row_stride, std::int64_t columns,
                 void* partials) noexcept {
  const std::int64_t* x = static_cast<const std::int64_t*>(in);
  Int128* out = static_cast<Int128*>(partials);
  for (std::int64_t j = 0; j < columns; ++j) out[j] = x[j];
  for (std::int64_t r = 1; r < rows; ++r) {
    for (std::int64_t j = 0; j < columns; ++j) out[j] = Fold::join(out[j], x[r * row_stride + j]);
  }
}

template <class Fold>
void int_join(void* partials, const void* others, std::int64_t n) noexcept {
  Int128* a = static_cast<Int128*>(partials);
  const Int128* b = static_cast<const Int128*>(others);
  for (std::int64_t i = 0; i < n; ++i) a[i] = Fold::join(a[i], b[i]);
}

template <class FloatFold, class IntFold>
void set(ReduceKernels& kernels, Fold fold) {
  const auto at = static_cast<std::size_t>(fold);
  kernels.f32[at] = {row<FloatFold, float>, columns<FloatFold, float>, join<FloatFold, float>};
  kernels.f64[at] = {row<FloatFold, double>, columns<FloatFold, double>, join<FloatFold, double>};
  kernels.i64[at] = {int_row<IntFold>, int_columns<IntFold>, int_join<IntFold>};
}

void fill_folds(ReduceKernels& kernels) {
  set<SumFold, IntSum>(kernels, Fold::sum);
  set<ProdFold, IntProd>(kernels, Fold::prod);
  set<MaxFold, IntMax>(kernels, Fold::max);
  set<MinFold, IntMin>(kernels, Fold::min);
}

}  // namespace einkern::kernel::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace einkern::kernel {

HWY_EXPORT(fill_folds);
void fill_reduce(ReduceKernels& kernels) { HWY_DYNAMIC_DISPATCH(fill_folds)(kernels); }

}  // namespace einkern::kernel
#endif
