// SPDX-License-Identifier: Apache-2.0
// Many small matrix products whose columns are neighbours in memory: whole matrices, or rows of
// several, share a register where they are narrower than it.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "matmul_small.cpp"
#include "hwy/foreach_target.h"
//
#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "hwy/highway.h"
#include "matmul-inl.h"
#include "matmul.h"
#include "matmul_direct.h"
#include "matmul_small-inl.h"

HWY_BEFORE_NAMESPACE();
namespace einkern::kernel::HWY_NAMESPACE {
namespace {

template <class D>
inline constexpr std::int64_t kLanesOf = hn::MaxLanes(D());

/// The first lanes of a vector, for loads and stores that touch nothing beyond them.
template <class D>
class Part {
 public:
  using T = hn::TFromD<D>;
  using V = hn::VFromD<D>;

  explicit HWY_INLINE Part(std::int64_t lanes)
      : lanes_(static_cast<std::size_t>(lanes)), mask_(hn::FirstN(D(), lanes_)) {}
  HWY_INLINE V load(const T* from) const {
    if constexpr (kMaskedLoads) {
      return hn::MaskedLoad(mask_, D(), from);
    } else {
      return load_lanes(D(), from, lanes_);
    }
  }
  HWY_INLINE void store(V v, T* to) const {
    if constexpr (kMaskedStores) {
      hn::BlendedStore(v, mask_, D(), to);
    } else {
      store_lanes(D(), v, lanes_, to);
    }
  }

 private:
  std::size_t lanes_;
  decltype(hn::FirstN(D(), 0)) mask_;
};

/// Which lane of a vector goes to every lane.
template <class D>
using Index = hwy::MakeSigned<hn::TFromD<D>>;
template <class D>
using Table = decltype(hn::SetTableIndices(D(), static_cast<const Index<D>*>(nullptr)));

/// `outer` x `middle` x `inner` lanes with these steps, from `first` on; the rest takes lane 0.
template <class D>
HWY_INLINE Table<D> table_of(std::int64_t first, std::int64_t outer, std::int64_t outer_step,
                             std::int64_t middle, std::int64_t middle_step, std::int64_t inner,
                             std::int64_t inner_step) {
  HWY_ALIGN Index<D> at[kLanesOf<D>] = {};
  Index<D>* to = at;
  for (std::int64_t o = 0; o < outer; ++o) {
    for (std::int64_t m = 0; m < middle; ++m) {
      for (std::int64_t i = 0; i < inner; ++i) {
        *to++ = static_cast<Index<D>>(first + o * outer_step + m * middle_step + i * inner_step);
      }
    }
  }
  return hn::SetTableIndices(D(), static_cast<const Index<D>*>(at));
}

/// Whole matrices in one register: lane (e, i, j) of c is a sum over p of lanes (e, i, p) of a and
/// (e, p, j) of b.
template <class D, class T>
void whole_matrices(const SmallBlock<T>& s, std::int64_t at_once) {
  const std::int64_t a_size = s.rows * s.steps, b_size = s.steps * s.columns;
  const std::int64_t c_size = s.rows * s.columns;
  Table<D> of_a[kLanesOf<D>], of_b[kLanesOf<D>];
  for (std::int64_t p = 0; p < s.steps; ++p) {
    of_a[p] = table_of<D>(p, at_once, a_size, s.rows, s.steps, s.columns, 0);
    of_b[p] = table_of<D>(p * s.columns, at_once, b_size, s.rows, 0, s.columns, 1);
  }
  const auto run = [&](std::int64_t e, const Part<D>& part_a, const Part<D>& part_b,
                       const Part<D>& part_c) HWY_ATTR {
    const auto a = part_a.load(s.a + e * a_size), b = part_b.load(s.b + e * b_size);
    auto sum = hn::Zero(D());
    for (std::int64_t p = 0; p < s.steps; ++p) {
      sum = hn::MulAdd(hn::TableLookupLanes(a, of_a[p]), hn::TableLookupLanes(b, of_b[p]), sum);
    }
    part_c.store(sum, s.c + e * c_size);
  };
  std::int64_t e = 0;
  constexpr std::int64_t kAhead = 1024;  // bytes: the hardware's own prefetches stop at pages
  const Part<D> all_a(at_once * a_size), all_b(at_once * b_size), all_c(at_once * c_size);
  for (; e + at_once <= s.count; e += at_once) {
    prefetch(s.a + e * a_size, kAhead);
    prefetch(s.b + e * b_size, kAhead);
    run(e, all_a, all_b, all_c);
  }
  if (e == s.count) return;
  const std::int64_t rest = s.count - e;
  run(e, Part<D>(rest * a_size), Part<D>(rest * b_size), Part<D>(rest * c_size));
}

/// G registers of c: lane (u, j) of each is a sum over p of lane (u, p) of its register of a, and
/// of lane j (repeated) or (u, j) of b. The last of them may be shorter.
template <class D>
struct Rows {
  std::int64_t a_next, b_step, c_next, steps;
  Part<D> a, a_last, b, c, c_last;
  const Table<D>* of_a;
  Table<D> repeated;
};

template <int G, bool kRepeat, class D, class T>
HWY_INLINE void rows_side_by_side(const Rows<D>& rows, const T* a, const T* b, T* c) {
  using V = hn::VFromD<D>;
  V factors[G], sum[G];
  HWY_UNROLL(8)
  for (int g = 0; g < G; ++g) {
    factors[g] = (g + 1 < G ? rows.a : rows.a_last).load(a + g * rows.a_next);
    sum[g] = hn::Zero(D());
  }
  for (std::int64_t p = 0; p < rows.steps; ++p, b += rows.b_step) {
    const V loaded = rows.b.load(b);
    const V columns = kRepeat ? hn::TableLookupLanes(loaded, rows.repeated) : loaded;
    const Table<D> table = rows.of_a[p];
    HWY_UNROLL(8)
    for (int g = 0; g < G; ++g) {
      sum[g] = hn::MulAdd(hn::TableLookupLanes(factors[g], table), columns, sum[g]);
    }
  }
  HWY_UNROLL(8)
  for (int g = 0; g < G; ++g) {
    (g + 1 < G ? rows.c : rows.c_last).store(sum[g], c + g * rows.c_next);
  }
}

template <bool kRepeat, class D, class T>
HWY_INLINE void some_rows(std::int64_t groups, const Rows<D>& rows, const T* a, const T* b, T* c) {
  switch (groups) {
    case 1:
      return rows_side_by_side<1, kRepeat>(rows, a, b, c);
    case 2:
      return rows_side_by_side<2, kRepeat>(rows, a, b, c);
    case 3:
      return rows_side_by_side<3, kRepeat>(rows, a, b, c);
    case 4:
      return rows_side_by_side<4, kRepeat>(rows, a, b, c);
    case 5:
      return rows_side_by_side<5, kRepeat>(rows, a, b, c);
    default:
      return rows_side_by_side<6, kRepeat>(rows, a, b, c);
  }
}
constexpr std::int64_t kMostGroups = 6;  // six sums and six factors fit 16 registers

template <class D, class T>
void fill_tables(const SmallBlock<T>& s, std::int64_t at_once, Table<D>* tables) {
  for (std::int64_t p = 0; p < s.steps; ++p) {
    tables[p] = table_of<D>(p, 1, 0, at_once, s.steps, s.columns, 0);
  }
}

/// Several rows of one product in a register.
template <class D, class T>
void rows_of_a_matrix(const SmallBlock<T>& s, std::int64_t at_once) {
  Table<D> of_a[kLanesOf<D>];
  fill_tables<D>(s, at_once, of_a);
  const Table<D> repeated = table_of<D>(0, 1, 0, at_once, 0, s.columns, 1);
  const std::int64_t groups = (s.rows + at_once - 1) / at_once;
  const std::int64_t last = s.rows - (groups - 1) * at_once;
  const Part<D> a(at_once * s.steps), b(s.columns), c(at_once * s.columns);
  const std::int64_t ahead = entries_ahead(s);
  const auto some = [&](std::int64_t rest) {
    return Rows<D>{at_once * s.a_row,
                   s.b_step,
                   at_once * s.c_row,
                   s.steps,
                   a,
                   Part<D>(rest * s.steps),
                   b,
                   c,
                   Part<D>(rest * s.columns),
                   of_a,
                   repeated};
  };
  const Rows<D> whole = some(at_once), ragged = some(last);
  for (std::int64_t e = 0; e < s.count; ++e) {
    const T *from_a = s.a + e * s.a_entry, *from_b = s.b + e * s.b_entry;
    T* const to = s.c + e * s.c_entry;
    prefetch_next(s, from_a, from_b, ahead);
    for (std::int64_t g = 0; g < groups; g += kMostGroups) {
      const std::int64_t now = std::min(kMostGroups, groups - g);
      some_rows<true>(now, g + now == groups ? ragged : whole, from_a + g * whole.a_next, from_b,
                      to + g * whole.c_next);
    }
  }
}

/// The same row of several products in a register: they are neighbours in all three tensors.
template <class D, class T>
void rows_of_matrices(const SmallBlock<T>& s, std::int64_t at_once) {
  Table<D> of_a[kLanesOf<D>];
  fill_tables<D>(s, at_once, of_a);
  const auto run = [&](std::int64_t first, std::int64_t count) HWY_ATTR {
    const Part<D> a(count * s.steps), b(count * s.columns), c(count * s.columns);
    const Rows<D> rows{s.a_row, s.b_step, s.c_row, s.steps, a, a, b, c, c, of_a, of_a[0]};
    for (std::int64_t e = first; e + count <= s.count; e += count) {
      const T *from_a = s.a + e * s.steps, *from_b = s.b + e * s.columns;
      prefetch_next(s, from_a, from_b, 8 * at_once);
      for (std::int64_t i = 0; i < s.rows; i += kMostGroups) {
        some_rows<false>(std::min(kMostGroups, s.rows - i), rows, from_a + i * s.a_row, from_b,
                         s.c + e * s.columns + i * s.c_row);
      }
    }
  };
  run(0, at_once);
  const std::int64_t rest = s.count % at_once;
  if (rest != 0) run(s.count - rest, rest);
}

/// A tile of R rows and C vectors of columns, the last of them `last` lanes.
template <int R, int C, class D, class T>
void small_tile(const SmallBlock<T>& s, const T* a, const T* b, T* c, const Part<D>& last,
                MatricesAhead<T>& ahead) {
  using V = hn::VFromD<D>;
  const D d;
  constexpr std::int64_t N = kLanesOf<D>;
  V sum[R][C];
  HWY_UNROLL(8)
  for (int r = 0; r < R; ++r) {
    HWY_UNROLL(2)
    for (int v = 0; v < C; ++v) sum[r][v] = hn::Zero(d);
  }
  for (std::int64_t p = 0; p < s.steps; ++p, a += s.a_step, b += s.b_step) {
    ahead.fetch();
    V columns[C];
    HWY_UNROLL(2)
    for (int v = 0; v < C; ++v) {
      columns[v] = v + 1 < C ? hn::LoadU(d, b + v * N) : last.load(b + v * N);
    }
    HWY_UNROLL(8)
    for (int r = 0; r < R; ++r) {
      const V factor = hn::Set(d, a[r * s.a_row]);
      HWY_UNROLL(2)
      for (int v = 0; v < C; ++v) sum[r][v] = hn::MulAdd(factor, columns[v], sum[r][v]);
    }
  }
  HWY_UNROLL(8)
  for (int r = 0; r < R; ++r) {
    T* const to = c + r * s.c_row;
    HWY_UNROLL(2)
    for (int v = 0; v < C; ++v) {
      if (v + 1 < C) {
        hn::StoreU(sum[r][v], d, to + v * N);
      } else {
        last.store(sum[r][v], to + v * N);
      }
    }
  }
}

template <int C, class D, class T>
HWY_INLINE void small_rows(std::int64_t rows, const SmallBlock<T>& s, const T* a, const T* b, T* c,
                           const Part<D>& last, MatricesAhead<T>& ahead) {
  switch (rows) {
    case 1:
      return small_tile<1, C>(s, a, b, c, last, ahead);
    case 2:
      return small_tile<2, C>(s, a, b, c, last, ahead);
    case 3:
      return small_tile<3, C>(s, a, b, c, last, ahead);
    case 4:
      return small_tile<4, C>(s, a, b, c, last, ahead);
    case 5:
      return small_tile<5, C>(s, a, b, c, last, ahead);
    case 6:
      return small_tile<6, C>(s, a, b, c, last, ahead);
    case 7:
      return small_tile<7, C>(s, a, b, c, last, ahead);
    default:
      return small_tile<8, C>(s, a, b, c, last, ahead);
  }
}

/// One product after another, a factor broadcast to a register at a time.
template <class D, class T>
void one_by_one(const SmallBlock<T>& s) {
  constexpr std::int64_t N = kLanesOf<D>;
  // Two vectors of columns: sums, columns and a factor in 16 registers, or in 32.
  constexpr std::int64_t kRows = HWY_TARGET == HWY_AVX3 ? 8 : 6;
  const std::int64_t tiles = (s.rows + kRows - 1) / kRows;
  const std::int64_t entries = entries_ahead(s);
  MatricesAhead<T> ahead(s, s.count * ((s.columns + 2 * N - 1) / (2 * N)) * tiles * s.steps);
  const bool known = ahead.known();
  for (std::int64_t e = 0; e < s.count; ++e) {
    const T *a = s.a + e * s.a_entry, *b = s.b + e * s.b_entry;
    T* const c = s.c + e * s.c_entry;
    if (!known) prefetch_next(s, a, b, entries);
    for (std::int64_t j = 0; j < s.columns; j += 2 * N) {
      const std::int64_t columns = std::min(2 * N, s.columns - j);
      const Part<D> last(columns > N ? columns - N : columns);
      for (std::int64_t t = 0; t < tiles; ++t) {
        const std::int64_t i = t * s.rows / tiles, rows = (t + 1) * s.rows / tiles - i;
        if (columns > N) {
          small_rows<2>(rows, s, a + i * s.a_row, b + j, c + i * s.c_row + j, last, ahead);
        } else {
          small_rows<1>(rows, s, a + i * s.a_row, b + j, c + i * s.c_row + j, last, ahead);
        }
      }
    }
  }
}

/// Products whose rows are C whole vectors, by tiles of R rows, one product after another. Never
/// inlined, so that the innermost loop has all of its addresses in registers.
template <int R, int C, class D, class T>
HWY_NOINLINE void whole_rows(const SmallBlock<T>& s) {
  using V = hn::VFromD<D>;
  const D d;
  constexpr std::int64_t N = kLanesOf<D>;
  const std::int64_t a_row = s.a_row, a_step = s.a_step, b_step = s.b_step, c_row = s.c_row;
  const std::int64_t ahead = entries_ahead(s);
  const bool stream = s.stream;
  for (std::int64_t e = 0; e < s.count; ++e) {
    const T *const from_a = s.a + e * s.a_entry, *const from_b = s.b + e * s.b_entry;
    prefetch_next(s, from_a, from_b, ahead);
    for (std::int64_t i = 0; i < s.rows; i += R) {
      const std::int64_t row = std::min(i, s.rows - R);  // the last tile may meet the one before
      const T *a = from_a + row * a_row, *b = from_b;
      V sum[R][C];
      HWY_UNROLL(8)
      for (int r = 0; r < R; ++r) {
        HWY_UNROLL(2)
        for (int v = 0; v < C; ++v) sum[r][v] = hn::Zero(d);
      }
      for (std::int64_t p = s.steps; p != 0; --p, a += a_step, b += b_step) {
        V columns[C];
        HWY_UNROLL(2)
        for (int v = 0; v < C; ++v) columns[v] = hn::LoadU(d, b + v * N);
        HWY_UNROLL(8)
        for (int r = 0; r < R; ++r) {
          const V factor = hn::Set(d, a[r * a_row]);
          HWY_UNROLL(2)
          for (int v = 0; v < C; ++v) sum[r][v] = hn::MulAdd(factor, columns[v], sum[r][v]);
        }
      }
      T* const c = s.c + e * s.c_entry + row * c_row;
      HWY_UNROLL(8)
      for (int r = 0; r < R; ++r) {
        HWY_UNROLL(2)
        for (int v = 0; v < C; ++v) {
          T* const to = c + r * c_row + v * N;
          if (stream) {
            hn::Stream(sum[r][v], d, to);
          } else {
            hn::StoreU(sum[r][v], d, to);
          }
        }
      }
    }
  }
}

template <int C, class D, class T>
void by_whole_rows(const SmallBlock<T>& s) {
  // Two vectors of columns: sums, columns and a factor in 16 registers, or in 32.
  constexpr std::int64_t kRows = HWY_TARGET == HWY_AVX3 ? 8 : 6;
  const std::int64_t tiles = (s.rows + kRows - 1) / kRows;
  switch ((s.rows + tiles - 1) / tiles) {
    case 1:
      return whole_rows<1, C, D>(s);
    case 2:
      return whole_rows<2, C, D>(s);
    case 3:
      return whole_rows<3, C, D>(s);
    case 4:
      return whole_rows<4, C, D>(s);
    case 5:
      return whole_rows<5, C, D>(s);
    case 6:
      return whole_rows<6, C, D>(s);
    case 7:
      return whole_rows<7, C, D>(s);
    default:
      return whole_rows<8, C, D>(s);
  }
}

template <class T>
void multiply_small(const SmallBlock<T>& s) noexcept {
  using D = hn::ScalableTag<T>;
  constexpr std::int64_t N = kLanesOf<D>;
  const std::int64_t a_size = s.rows * s.steps, b_size = s.steps * s.columns;
  const std::int64_t c_size = s.rows * s.columns;
  const bool rows_of_a = s.a_step == 1 && (s.a_row == s.steps || s.rows == 1);
  const bool rows_of_c = s.c_row == s.columns || s.rows == 1;
  const bool dense = rows_of_a && rows_of_c && (s.b_step == s.columns || s.steps == 1) &&
                     s.a_entry == a_size && s.b_entry == b_size && s.c_entry == c_size;
  const std::int64_t largest = std::max({a_size, b_size, c_size});
  const std::int64_t at_once = N / std::max(s.columns, s.steps);
  if (dense && largest <= N && s.count > 1) return whole_matrices<D>(s, N / largest);
  if (s.ahead == 0) {
    if (s.columns == N) return by_whole_rows<1, D>(s);
    if (s.columns == 2 * N) return by_whole_rows<2, D>(s);
#if HWY_TARGET == HWY_AVX3
    // Two rows of a product in a register would cost as many permutations as multiplications.
    if (s.columns == N / 2) return by_whole_rows<1, hn::Half<D>>(s);
#endif
  }
  if (at_once >= 2 && s.count > 1 && s.a_step == 1 && s.a_entry == s.steps &&
      s.b_entry == s.columns && s.c_entry == s.columns) {
    return rows_of_matrices<D>(s, at_once);
  }
  if (at_once >= 2 && s.rows > 1 && rows_of_a && rows_of_c) {
    return rows_of_a_matrix<D>(s, std::min(at_once, s.rows));
  }
#if HWY_TARGET == HWY_AVX2 || HWY_TARGET == HWY_AVX3
  // No wider registers than the columns fill.
  using Narrow = hn::Half<D>;
  if (s.columns <= kLanesOf<Narrow>) return one_by_one<Narrow>(s);
#endif
  one_by_one<D>(s);
}

template <class T>
void fill(MatmulFunctions<T>& functions) {
  functions.multiply_small = multiply_small<T>;
}

void FillMatmulSmall(MatmulKernels& kernels) {
  fill(kernels.f32);
  fill(kernels.f64);
}

}  // namespace
}  // namespace einkern::kernel::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace einkern::kernel {

HWY_EXPORT(FillMatmulSmall);

void fill_matmul_small(MatmulKernels& kernels) { HWY_DYNAMIC_DISPATCH(FillMatmulSmall)(kernels); }

}  // namespace einkern::kernel
#endif  // HWY_ONCE
