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

HWY_BEFORE_NAMESPACE();
namespace einkern::kernel::HWY_NAMESPACE {
namespace {

// Runs of lanes that are neighbours in memory are copied as rows; a lane alone is a run of one, so
// this packs any strides.
template <class T, class S>
class RunPacker {
 public:
  explicit RunPacker(const PackBlock<T>& block) : block_(block) {}

  void pack() const {
    const Panels& panels = block_.panels;
    for (std::int64_t p = 0; p < panels.count(); ++p) {
      const std::int64_t first = panels.start(p), end = panels.start(p + 1);
      const std::int64_t width = panels.padded ? panels.width : end - first;
      T* to = block_.packed + first * block_.steps.count;
      if (const std::int64_t whole = whole_panels(first); whole > 0) {
        copy_panels(source() + block_.lanes.at[first], whole, to);
        p += whole - 1;
        continue;
      }
      for (std::int64_t i = first; i < end;) {
        std::int64_t last = i + 1;
        while (last < end && block_.lanes.at[last] == block_.lanes.at[last - 1] + 1) ++last;
        copy_run(source() + block_.lanes.at[i], last - i, to + (i - first), width);
        i = last;
      }
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
  static constexpr std::int64_t kPanels = 4;

  const S* source() const { return static_cast<const S*>(block_.source); }

  // How many panels from position `first` on are one run of neighbours, all lanes used?
  std::int64_t whole_panels(std::int64_t first) const {
    const Panels& panels = block_.panels;
    if (!panels.padded || panels.width != 2 * kLanes) return 0;
    const std::int64_t* at = block_.lanes.at;
    const std::int64_t most = std::min(kPanels * panels.width, panels.positions - first);
    std::int64_t run = 1;
    while (run < most && at[first + run] == at[first] + run) ++run;
    return run / panels.width;
  }

  // Copies rows of `panels` panels that are neighbours in memory.
  void copy_panels(const S* from, std::int64_t panels, T* to) const {
    const std::int64_t steps = block_.steps.count, width = 2 * kLanes;
    const std::int64_t* at = block_.steps.at;
    constexpr std::int64_t kLine = 64 / static_cast<std::int64_t>(sizeof(S));
    const D d;
    for (std::int64_t s = 0; s < steps; ++s) {
      const S* const ahead = from + at[std::min(s + kAhead, steps - 1)];
      for (std::int64_t i = 0; i < panels * width; i += kLine) hwy::Prefetch(ahead + i);
      const S* const in = from + at[s];
      for (std::int64_t p = 0; p < panels; ++p) {
        const auto low = load_as(d, in + p * width);
        const auto high = load_as(d, in + p * width + kLanes);
        T* const out = to + (p * steps + s) * width;
        hn::StoreU(low, d, out);
        hn::StoreU(high, d, out + kLanes);
      }
    }
  }

  void copy_run(const S* from, std::int64_t length, T* to, std::int64_t width) const {
    const std::int64_t steps = block_.steps.count;
    const std::int64_t* at = block_.steps.at;
    const D d;
    if (length == 1) {
      for (std::int64_t s = 0; s < steps; ++s) to[s * width] = widen(from[at[s]]);
    } else {
      for (std::int64_t s = 0; s < steps; ++s) {
        hwy::Prefetch(from + at[std::min(s + kAhead, steps - 1)]);
        const S* in = from + at[s];
        T* out = to + s * width;
        for (std::int64_t i = 0; i < length; i += kLanes) {
          const std::size_t n = static_cast<std::size_t>(std::min(kLanes, length - i));
          if constexpr (std::is_same_v<S, T>) {
            store_lanes(d, load_lanes(d, in + i, n), n, out + i);
          } else {
            store_lanes(d, load_part_as(d, in + i, n), n, out + i);
          }
        }
      }
    }
  }

  const PackBlock<T>& block_;
};

#if HWY_TARGET != HWY_SCALAR

// Up to a vector of source rows, transposed four columns (two of doubles) at a time. Blocks of 16
// bytes are gathered while loading, so that only steps inside 128-bit blocks remain.
template <class T, class S>
struct Rows {
  using D = hn::ScalableTag<T>;
  static constexpr std::int64_t kLanes = hn::MaxLanes(D());
  static constexpr std::int64_t kColumns = 16 / sizeof(T);

  const S* at[kLanes];

  // Rows past `count` repeat the last one: reading it again is harmless.
  Rows(const S* source, const std::int64_t* offsets, std::int64_t count) {
    for (std::int64_t i = 0; i < kLanes; ++i) at[i] = source + offsets[std::min(i, count - 1)];
  }

  template <class DPart>
  static HWY_INLINE hn::VFromD<DPart> load(DPart d, const S* const* rows, std::int64_t offset) {
    if constexpr (hn::MaxLanes(DPart()) * sizeof(T) == 16) {
      return load_as(d, rows[0] + offset);
    } else {
      const hn::Half<DPart> half;
      return hn::Combine(d, load(half, rows + hn::MaxLanes(DPart()) / 2, offset),
                         load(half, rows, offset));
    }
  }

  // Calls put(j, vector of column offset + j) for every j < kColumns.
  template <class Put>
  HWY_INLINE void columns(std::int64_t offset, const Put& put) const {
    const hn::FixedTag<T, kLanes> d;
    if constexpr (sizeof(T) == 4) {
      const hn::Repartition<double, decltype(d)> wide;
      const auto v0 = load(d, at, offset), v1 = load(d, at + 1, offset);
      const auto v2 = load(d, at + 2, offset), v3 = load(d, at + 3, offset);
      const auto low01 = hn::BitCast(wide, hn::InterleaveLower(d, v0, v1));
      const auto low23 = hn::BitCast(wide, hn::InterleaveLower(d, v2, v3));
      const auto high01 = hn::BitCast(wide, hn::InterleaveUpper(d, v0, v1));
      const auto high23 = hn::BitCast(wide, hn::InterleaveUpper(d, v2, v3));
      put(0, hn::BitCast(d, hn::InterleaveLower(wide, low01, low23)));
      put(1, hn::BitCast(d, hn::InterleaveUpper(wide, low01, low23)));
      put(2, hn::BitCast(d, hn::InterleaveLower(wide, high01, high23)));
      put(3, hn::BitCast(d, hn::InterleaveUpper(wide, high01, high23)));
    } else {
      const auto v0 = load(d, at, offset), v1 = load(d, at + 1, offset);
      put(0, hn::InterleaveLower(d, v0, v1));
      put(1, hn::InterleaveUpper(d, v0, v1));
    }
  }
};

// The unit stride lies along the contracted labels: a vector of lanes at a time, whole lines of
// each.
template <class T, class S>
void pack_along_steps(const PackBlock<T>& block) {
  using R = Rows<T, S>;
  constexpr std::int64_t kLine = 64 / sizeof(S);
  constexpr std::int64_t kAheadLines = 2, kAheadSteps = 4;
  const typename R::D d;
  const auto* const source = static_cast<const S*>(block.source);
  const std::int64_t unit = block.steps.unit.size, inner = block.steps.unit.inner;
  const std::int64_t* at = block.steps.at;
  const Panels& panels = block.panels;
  for (std::int64_t p = 0; p < panels.count(); ++p) {
    const std::int64_t first = panels.start(p), end = panels.start(p + 1);
    const std::int64_t width = panels.padded ? panels.width : end - first;
    for (std::int64_t lane = first; lane < end; lane += R::kLanes) {
      const std::int64_t lanes = std::min(R::kLanes, end - lane);
      const R rows(source, block.lanes.at + lane, lanes);
      T* to = block.packed + first * block.steps.count + (lane - first);
      for (std::int64_t outer = 0; outer < block.steps.count; outer += unit * inner) {
        for (std::int64_t line = 0; line < unit; line += kLine) {
          const std::int64_t line_end = std::min(line + kLine, unit);
          for (std::int64_t step = outer; step < outer + inner; ++step) {
            // What these rows are asked for next, and this line of the next rows.
            const std::int64_t ahead =
                inner == 1 ? at[step + line] + kAheadLines * kLine
                           : at[std::min(step + kAheadSteps, outer + inner - 1) + line * inner];
            for (std::int64_t i = 0; i < lanes; ++i) hwy::Prefetch(rows.at[i] + ahead);
            for (std::int64_t i = end; i < std::min(end + lanes, block.lanes.count); ++i) {
              hwy::Prefetch(source + block.lanes.at[i] + at[step + line * inner]);
            }
            std::int64_t u = line;
            for (; u + R::kColumns <= line_end; u += R::kColumns) {
              T* column = to + (step + u * inner) * width;
              rows.columns(at[step + u * inner], [&](std::int64_t j, auto v) HWY_ATTR {
                store_lanes(d, v, static_cast<std::size_t>(lanes), column + j * inner * width);
              });
            }
            for (; u < line_end; ++u) {
              const std::int64_t s = step + u * inner;
              for (std::int64_t i = 0; i < lanes; ++i) to[s * width + i] = widen(rows.at[i][at[s]]);
            }
          }
        }
      }
    }
  }
}

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

  struct Target {
    T* to = nullptr;  // of step 0
    std::int64_t width = 0;
    std::int64_t room = 0;  // lanes until the panel's end
  };

  Target target_of(std::int64_t position) const {
    const Panels& panels = block_.panels;
    const std::int64_t p = panels.panel_of(position);
    const std::int64_t first = panels.start(p), end = panels.start(p + 1);
    return {block_.packed + first * block_.steps.count + (position - first),
            panels.padded ? panels.width : end - first, end - position};
  }

  // Lanes position + (0 .. lanes - 1) + inner * (0 .. units - 1), all steps.
  void pack_square(std::int64_t position, std::int64_t units, std::int64_t lanes) const {
    const std::int64_t inner = block_.lanes.unit.inner, steps = block_.steps.count;
    const R rows(static_cast<const S*>(block_.source), block_.lanes.at + position, lanes);
    Target targets[kUnits];
    for (std::int64_t u = 0; u < units; ++u) targets[u] = target_of(position + u * inner);
    for (std::int64_t s = 0; s < steps; ++s) {
      const std::int64_t offset = block_.steps.at[s];
      const std::int64_t ahead = block_.steps.at[std::min(s + kAhead, steps - 1)];
      for (std::int64_t i = 0; i < lanes; ++i) {
        for (std::int64_t u = 0; u < units; u += kLine) hwy::Prefetch(rows.at[i] + ahead + u);
      }
      std::int64_t u = 0;
      for (; u + R::kColumns <= units; u += R::kColumns) {
        rows.columns(offset + u, [&](std::int64_t j, auto v) HWY_ATTR {
          put(targets[u + j], position + (u + j) * inner, s, lanes, v);
        });
      }
      for (; u < units; ++u) {
        for (std::int64_t i = 0; i < lanes; ++i) {
          const Target t = i < targets[u].room ? targets[u] : target_of(position + u * inner + i);
          t.to[s * t.width + (i < targets[u].room ? i : 0)] = widen(rows.at[i][offset + u]);
        }
      }
    }
  }

  template <class V>
  HWY_INLINE void put(const Target& t, std::int64_t position, std::int64_t s, std::int64_t lanes,
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
      const Target next = target_of(position + i);
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
  if (!rows && block.steps.unit.size >= kShortest) return pack_along_steps<T, S>(block);
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
