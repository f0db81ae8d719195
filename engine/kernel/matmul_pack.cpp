// SPDX-License-Identifier: Apache-2.0
// Packs a block of an operand of any strides into panels, transposing in registers where its unit
// stride lies across them.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "matmul_pack.cpp"
#include "hwy/foreach_target.h"
//
#include <algorithm>
#include <cstddef>

#include "half-inl.h"
#include "hwy/cache_control.h"
#include "hwy/highway.h"
#include "matmul-inl.h"
#include "matmul.h"
#include "matmul_pack.h"
#include "matmul_rows-inl.h"

HWY_BEFORE_NAMESPACE();
namespace einkern::kernel::HWY_NAMESPACE {
namespace {

// Where step 0 of a position goes.
template <class T>
struct Target {
  T* to = nullptr;
  std::int64_t width = 0;  // to the next step
  std::int64_t room = 0;   // lanes until the panel's end
};

template <class T>
Target<T> target_in(const PackBlock<T>& block, std::int64_t panel, std::int64_t position) {
  const std::int64_t first = block.panels.start(panel), end = block.panels.start(panel + 1);
  return {block.packed + first * block.steps.count + (position - first),
          block.panels.padded ? block.panels.width : end - first, end - position};
}

// Runs of lanes that are neighbours in memory are copied as rows; a lane alone is a run of one, so
// this packs any strides.
template <class T, class S>
class RunPacker {
 public:
  explicit RunPacker(const PackBlock<T>& block) : block_(block) {}

  void pack() const {
    const std::int64_t* const at = block_.lanes.at;
    const std::int64_t positions = block_.panels.positions;
    Pieces pieces;
    for (std::int64_t i = 0, p = 0; i < positions;) {
      const std::int64_t first = i;
      pieces.count = 0;
      pieces.whole = true;
      do {
        std::int64_t end = i + 1;
        const std::int64_t panel_end = block_.panels.start(p + 1);
        while (end < panel_end && at[end] == at[end - 1] + 1) ++end;
        pieces.add(target_in(block_, p, i), end - i);
        i = end;
        if (i == panel_end) ++p;
      } while (pieces.count < kPieces && i < positions && at[i] == at[i - 1] + 1);
      copy_run(source() + at[first], i - first, pieces);
    }
  }

 private:
  using D = hn::ScalableTag<T>;
  static constexpr std::int64_t kLanes = hn::MaxLanes(D());
  // Rows ahead of the copy that are fetched: the rows are far apart, which no hardware prefetcher
  // follows.
  static constexpr std::int64_t kAhead = 8;
  // Panels that are filled at once: runs of several lines cost fewer pages and fewer misses than
  // single ones, and as many streams are written.
  static constexpr std::int64_t kPieces = 8;

  /// Where part of a run goes: lanes of one panel.
  struct Piece {
    Target<T> target;
    std::int64_t lanes;
  };
  struct Pieces {
    Piece at[kPieces];
    std::int64_t count;
    bool whole;  // two vectors each

    void add(const Target<T>& target, std::int64_t lanes) {
      whole = whole && lanes == 2 * kLanes;
      at[count++] = {target, lanes};
    }
  };

  const S* source() const { return static_cast<const S*>(block_.source); }

  static HWY_INLINE void copy_part(const S* from, std::int64_t lanes, T* to) {
    const D d;
    const auto n = static_cast<std::size_t>(lanes);
    if constexpr (std::is_same_v<S, T>) {
      store_lanes(d, load_lanes(d, from, n), n, to);
    } else {
      store_lanes(d, load_part_as(d, from, n), n, to);
    }
  }

  void copy_run(const S* from, std::int64_t length, const Pieces& pieces) const {
    const std::int64_t steps = block_.steps.count;
    const std::int64_t* at = block_.steps.at;
    constexpr std::int64_t kLine = 64 / static_cast<std::int64_t>(sizeof(S));
    const D d;
    if (length == 1) {
      const Target<T>& target = pieces.at[0].target;
      for (std::int64_t s = 0; s < steps; ++s) target.to[s * target.width] = widen(from[at[s]]);
      return;
    }
    for (std::int64_t s = 0; s < steps; ++s) {
      const S* const ahead = from + at[std::min(s + kAhead, steps - 1)];
      for (std::int64_t i = 0; i < length; i += kLine) hwy::Prefetch(ahead + i);
      const S* in = from + at[s];
      for (std::int64_t p = 0; p < pieces.count; ++p) {
        const Piece& piece = pieces.at[p];
        T* const out = piece.target.to + s * piece.target.width;
        if (pieces.whole) {
          const auto low = load_as(d, in), high = load_as(d, in + kLanes);
          hn::StoreU(low, d, out);
          hn::StoreU(high, d, out + kLanes);
        } else {
          for (std::int64_t i = 0; i < piece.lanes; i += kLanes) {
            copy_part(in + i, std::min(kLanes, piece.lanes - i), out + i);
          }
        }
        in += piece.lanes;
      }
    }
  }

  const PackBlock<T>& block_;
};

#if HWY_TARGET != HWY_SCALAR

// The unit stride lies along the contracted labels: the rows of a panel side by side, a line of
// each at a time, so that lines of the panel are written in their order.
template <class T, class S>
class StepPacker {
 public:
  explicit StepPacker(const PackBlock<T>& block) : block_(block) {}

  void pack() const {
    const Panels& panels = block_.panels;
    const auto [unit, inner] = block_.steps.unit;
    for (std::int64_t p = 0; p < panels.count(); ++p) {
      const Panel panel(block_, panels.start(p), panels.start(p + 1));
      for (std::int64_t outer = 0; outer < block_.steps.count; outer += unit * inner) {
        for (std::int64_t line = 0; line < unit; line += kLine) {
          for (std::int64_t i = 0; i < inner; ++i) {
            // What these rows are asked for next.
            const std::int64_t* const at = block_.steps.at + outer + line * inner;
            const std::int64_t ahead =
                inner == 1 ? at[0] + kAheadLines * kLine : at[std::min(i + kAheadSteps, inner - 1)];
            pack_line(panel, outer + line * inner + i, std::min(kLine, unit - line), ahead);
          }
        }
      }
    }
  }

 private:
  using R = Rows<T, S>;
  static constexpr std::int64_t kLine = 64 / sizeof(S);
  static constexpr std::int64_t kAheadLines = 4, kAheadSteps = 4;
  static constexpr int kBlocks = 2;  // vectors of rows in the widest panel

  struct Panel {
    R rows[kBlocks];
    std::int64_t lanes, width;
    T* to;
    const std::int64_t* after;  // as many rows of the next panel
    std::int64_t after_count;

    Panel(const PackBlock<T>& block, std::int64_t first, std::int64_t end)
        : rows{rows_of(block, first, end),
               rows_of(block, std::min(first + R::kLanes, end - 1), end)},
          lanes(end - first),
          width(block.panels.padded ? block.panels.width : lanes),
          to(block.packed + first * block.steps.count),
          after(block.lanes.at + end),
          after_count(std::min(lanes, block.lanes.count - end)) {}

    static R rows_of(const PackBlock<T>& block, std::int64_t first, std::int64_t end) {
      return {static_cast<const S*>(block.source), block.lanes.at + first,
              std::min(R::kLanes, end - first)};
    }
  };

  // `count` steps from `step` on that are neighbours in memory.
  void pack_line(const Panel& panel, std::int64_t step, std::int64_t count,
                 std::int64_t ahead) const {
    const auto* const source = static_cast<const S*>(block_.source);
    const std::int64_t inner = block_.steps.unit.inner, from = block_.steps.at[step];
    const std::int64_t stride = inner * panel.width;
    for (std::int64_t i = 0; i < panel.after_count; ++i)
      fetch_to_l2(source + panel.after[i] + from);
    for (std::int64_t lane = 0; lane < panel.lanes; lane += R::kLanes) {
      const R& rows = panel.rows[lane / R::kLanes];
      const std::int64_t lanes = std::min(R::kLanes, panel.lanes - lane);
      T* const to = panel.to + step * panel.width + lane;
      for (std::int64_t i = 0; i < lanes; ++i) fetch_to_l2(rows.at[i] + ahead);
      const auto put_at = [&](std::int64_t u) HWY_ATTR {
        return [to = to + u * stride, stride, lanes](std::int64_t j, auto v) HWY_ATTR {
          store_lanes(typename R::D(), v, static_cast<std::size_t>(lanes), to + j * stride);
        };
      };
      std::int64_t u = 0;
      if constexpr (R::kSquares) {
        for (; u + R::kLanes <= count; u += R::kLanes) rows.square(from + u, put_at(u));
      }
      for (; u + R::kColumns <= count; u += R::kColumns) rows.columns(from + u, put_at(u));
      for (; u < count; ++u) {
        for (std::int64_t i = 0; i < lanes; ++i) to[u * stride + i] = widen(rows.at[i][from + u]);
      }
    }
  }

  const PackBlock<T>& block_;
};

// The unit stride lies across panels: lanes that are `inner` apart are neighbours. Lines of
// neighbours for a vector of lanes are transposed and stored into as many panels.
template <class T, class S>
class FarPacker {
 public:
  explicit FarPacker(const PackBlock<T>& block) : block_(block) {}

  void pack() const {
    const auto [unit, inner] = block_.lanes.unit;
    for (std::int64_t outer = 0; outer < block_.lanes.count; outer += unit * inner) {
      for (std::int64_t u = 0; u < unit; u += kUnits) {
        for (std::int64_t lane = 0; lane < inner; lane += R::kLanes) {
          pack_square(outer + u * inner + lane, std::min(kUnits, unit - u),
                      std::min(R::kLanes, inner - lane));
        }
      }
    }
  }

 private:
  using R = Rows<T, S>;
  static constexpr std::int64_t kLine = 64 / sizeof(S);
  // Whole runs are read at once: short reads from far pages cost twice.
  static constexpr std::int64_t kUnits = 256 / sizeof(T);
  // Steps ahead that are fetched; no hardware prefetcher follows a vector of far rows.
  static constexpr std::int64_t kAhead = 3;

  Target<T> target_of(std::int64_t position) const {
    return target_in(block_, block_.panels.panel_of(position), position);
  }

  // Lanes position + (0 .. lanes - 1) + inner * (0 .. units - 1), all steps.
  void pack_square(std::int64_t position, std::int64_t units, std::int64_t lanes) const {
    const std::int64_t inner = block_.lanes.unit.inner, steps = block_.steps.count;
    const R rows(static_cast<const S*>(block_.source), block_.lanes.at + position, lanes);
    Target<T> targets[kUnits];
    for (std::int64_t u = 0; u < units; ++u) targets[u] = target_of(position + u * inner);
    for (std::int64_t s = 0; s < steps; ++s) {
      const std::int64_t offset = block_.steps.at[s];
      const std::int64_t ahead = block_.steps.at[std::min(s + kAhead, steps - 1)];
      for (std::int64_t i = 0; i < lanes; ++i) {
        for (std::int64_t u = 0; u < units; u += kLine) hwy::Prefetch(rows.at[i] + ahead + u);
      }
      const auto put_at = [&](std::int64_t u) HWY_ATTR {
        return [&, u](std::int64_t j, auto v)
                   HWY_ATTR { put(targets[u + j], position + (u + j) * inner, s, lanes, v); };
      };
      std::int64_t u = 0;
      if constexpr (R::kSquares) {
        for (; u + R::kLanes <= units; u += R::kLanes) rows.square(offset + u, put_at(u));
      }
      for (; u + R::kColumns <= units; u += R::kColumns) rows.columns(offset + u, put_at(u));
      for (; u < units; ++u) {
        for (std::int64_t i = 0; i < lanes; ++i) {
          const Target<T> t =
              i < targets[u].room ? targets[u] : target_of(position + u * inner + i);
          t.to[s * t.width + (i < targets[u].room ? i : 0)] = widen(rows.at[i][offset + u]);
        }
      }
    }
  }

  template <class V>
  HWY_INLINE void put(const Target<T>& t, std::int64_t position, std::int64_t s, std::int64_t lanes,
                      V v) const {
    const typename R::D d;
    if (HWY_LIKELY(lanes <= t.room)) {
      store_lanes(d, v, static_cast<std::size_t>(lanes), t.to + s * t.width);
      return;
    }
    HWY_ALIGN T buffer[R::kLanes];
    hn::Store(v, d, buffer);
    std::copy(buffer, buffer + t.room, t.to + s * t.width);
    for (std::int64_t i = t.room; i < lanes;) {
      const Target<T> next = target_of(position + i);
      const std::int64_t n = std::min(next.room, lanes - i);
      std::copy(buffer + i, buffer + i + n, next.to + s * next.width);
      i += n;
    }
  }

  const PackBlock<T>& block_;
};

#endif  // HWY_TARGET != HWY_SCALAR

template <class T>
void zero_padding(const PackBlock<T>& block) {
  const Panels& panels = block.panels;
  const std::int64_t used = panels.positions % panels.width;
  if (!panels.padded || used == 0) return;
  T* last = block.packed + (panels.count() - 1) * panels.width * block.steps.count;
  for (std::int64_t s = 0; s < block.steps.count; ++s) {
    std::fill(last + s * panels.width + used, last + (s + 1) * panels.width, T{0});
  }
}

template <class T, class S>
void pack_from(const PackBlock<T>& block) {
#if HWY_TARGET != HWY_SCALAR
  // Shorter runs than this fill no transposition.
  constexpr std::int64_t kShortest = Rows<T, S>::kColumns;
  const bool rows = block.lanes.unit.inner == 1 && block.lanes.unit.size > 1;
  if (!rows && block.steps.unit.size >= kShortest) return StepPacker<T, S>(block).pack();
  if (!rows && block.lanes.unit.size >= kShortest) return FarPacker<T, S>(block).pack();
#endif
  RunPacker<T, S>(block).pack();
}

template <class T>
void pack(const PackBlock<T>& block) noexcept {
  zero_padding(block);
  if constexpr (std::is_same_v<T, float>) {
    if (block.dtype == DType::f16) return pack_from<T, Float16>(block);
    if (block.dtype == DType::bf16) return pack_from<T, BFloat16>(block);
  }
  pack_from<T, T>(block);
}

void FillMatmulPack(MatmulKernels& kernels) {
  kernels.f32.pack = pack<float>;
  kernels.f64.pack = pack<double>;
}

}  // namespace
}  // namespace einkern::kernel::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace einkern::kernel {

HWY_EXPORT(FillMatmulPack);

void fill_matmul_pack(MatmulKernels& kernels) { HWY_DYNAMIC_DISPATCH(FillMatmulPack)(kernels); }

}  // namespace einkern::kernel
#endif  // HWY_ONCE
