// SPDX-License-Identifier: Apache-2.0
// Packs blocks of columns by transposing vectors in registers, in jobs small enough to stand
// between two tiles, and fetches what later jobs will read.
#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "hwy/cache_control.h"
#include "hwy/highway.h"
#include "matmul-inl.h"
#include "matmul_stream.h"

// Per-target include guard.
#if defined(EINKERN_KERNEL_MATMUL_STREAM_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef EINKERN_KERNEL_MATMUL_STREAM_INL_H_
#undef EINKERN_KERNEL_MATMUL_STREAM_INL_H_
#else
#define EINKERN_KERNEL_MATMUL_STREAM_INL_H_
#endif

HWY_BEFORE_NAMESPACE();
namespace einkern::kernel::HWY_NAMESPACE {
namespace {

// to[i] = v[i] for first <= i < last; nothing else is touched.
template <class D, class T = hn::TFromD<D>>
HWY_INLINE void store_range(D d, hn::VFromD<D> v, std::size_t first, std::size_t last, T* to) {
  if constexpr (kMaskedStores) {
    hn::BlendedStore(v, hn::AndNot(hn::FirstN(d, first), hn::FirstN(d, last)), d, to);
  } else {
    HWY_ALIGN T buffer[2 * hn::MaxLanes(d)];  // twice: a load from `first` on stays inside
    hn::Store(v, d, buffer);
    const std::size_t n = last - first;
    store_lanes(d, load_lanes(d, buffer + first, n), n, to + first);
  }
}

// A square of as many rows as a vector has lanes: afterwards v[j] holds element j of every row.
template <class T>
struct Square {
  using D = hn::ScalableTag<T>;
  using V = hn::VFromD<D>;
  static constexpr std::size_t kSide = hn::MaxLanes(D());

  V v[kSide];

  HWY_INLINE void load(const T* base, const std::int64_t* rows) {
    const D d;
    HWY_UNROLL(16)
    for (std::size_t r = 0; r < kSide; ++r) v[r] = hn::LoadU(d, base + rows[r]);
  }

  HWY_INLINE void transpose() {
#if HWY_TARGET != HWY_SCALAR
    const D d;
    constexpr std::size_t kInBlock = 16 / sizeof(T);
    // Inside 128-bit blocks: v[g + j] holds, in block b, element kInBlock b + j of the rows of g.
    if constexpr (sizeof(T) == 4) {
      const hn::Repartition<double, D> wide;
      HWY_UNROLL(4)
      for (std::size_t g = 0; g < kSide; g += 4) {
        const auto low01 = hn::BitCast(wide, hn::InterleaveLower(d, v[g], v[g + 1]));
        const auto low23 = hn::BitCast(wide, hn::InterleaveLower(d, v[g + 2], v[g + 3]));
        const auto high01 = hn::BitCast(wide, hn::InterleaveUpper(d, v[g], v[g + 1]));
        const auto high23 = hn::BitCast(wide, hn::InterleaveUpper(d, v[g + 2], v[g + 3]));
        v[g] = hn::BitCast(d, hn::InterleaveLower(wide, low01, low23));
        v[g + 1] = hn::BitCast(d, hn::InterleaveUpper(wide, low01, low23));
        v[g + 2] = hn::BitCast(d, hn::InterleaveLower(wide, high01, high23));
        v[g + 3] = hn::BitCast(d, hn::InterleaveUpper(wide, high01, high23));
      }
    } else {
      HWY_UNROLL(4)
      for (std::size_t g = 0; g < kSide; g += 2) {
        const V low = hn::InterleaveLower(d, v[g], v[g + 1]);
        v[g + 1] = hn::InterleaveUpper(d, v[g], v[g + 1]);
        v[g] = low;
      }
    }
    HWY_UNROLL(4)
    for (std::size_t j = 0; j < kInBlock; ++j) transpose_blocks(d, v + j, kInBlock);
#endif
  }

 private:
#if HWY_TARGET != HWY_SCALAR
  // Transposes the 128-bit blocks of `w[0], w[step], w[2 step], ...`.
  static HWY_INLINE void transpose_blocks(D d, V* w, std::size_t step) {
    constexpr std::size_t kBlocks = hn::MaxLanes(D()) * sizeof(T) / 16;
    if constexpr (kBlocks == 2) {
      const V first = w[0], second = w[step];
      w[0] = hn::ConcatLowerLower(d, second, first);
      w[step] = hn::ConcatUpperUpper(d, second, first);
    } else if constexpr (kBlocks == 4) {
      const V low_even = hn::ConcatLowerLower(d, w[2 * step], w[0]);
      const V low_odd = hn::ConcatLowerLower(d, w[3 * step], w[step]);
      const V high_even = hn::ConcatUpperUpper(d, w[2 * step], w[0]);
      const V high_odd = hn::ConcatUpperUpper(d, w[3 * step], w[step]);
      w[0] = hn::OddEvenBlocks(hn::SwapAdjacentBlocks(low_odd), low_even);
      w[step] = hn::OddEvenBlocks(low_odd, hn::SwapAdjacentBlocks(low_even));
      w[2 * step] = hn::OddEvenBlocks(hn::SwapAdjacentBlocks(high_odd), high_even);
      w[3 * step] = hn::OddEvenBlocks(high_odd, hn::SwapAdjacentBlocks(high_even));
    }
  }
#endif
};

// Where a position lies in a packed block.
struct PackedAt {
  std::int64_t panel, lane;
};

template <class T>
class Packer {
 public:
  explicit Packer(const StreamPack<T>& block)
      : b_(block),
        vectors_((block.row_count + N - 1) / N),
        last_panel_((block.positions + W - 1) / W - 1),
        last_width_((block.positions - last_panel_ * W + N - 1) / N * N) {
    const auto gap = [](const std::int64_t* at) {
      return at[1] < at[0] ? at[0] - at[1] : at[1] - at[0];
    };
    outer_inside_ = block.outer_count > 1 && block.step_count > 1 &&
                    gap(block.outer) < gap(block.steps + block.step_count - 2);
  }

  std::int64_t jobs() const {
    switch (b_.read) {
      case StreamRead::across:
        return b_.outer_count * vectors_ * b_.step_count;
      case StreamRead::steps:
        return vectors_ * (b_.step_count / b_.run);
      case StreamRead::lanes:
        break;
    }
    return b_.step_count * b_.row_count;
  }

  // What a job reads: `run` elements at each of `count` rows.
  struct Reads {
    const T* base;
    const std::int64_t* rows;
    std::int64_t count;
  };
  Reads reads(std::int64_t job) const {
    switch (b_.read) {
      case StreamRead::across: {
        const auto [vector, s, o] = across(job);
        return {b_.source + b_.outer[o] + b_.steps[s], b_.rows + vector * N,
                std::min(N, b_.row_count - vector * N)};
      }
      case StreamRead::steps: {
        const std::int64_t groups = b_.step_count / b_.run;
        const std::int64_t group = job % groups, vector = job / groups;
        return {b_.source + b_.steps[group * b_.run], b_.rows + vector * N,
                std::min(N, b_.row_count - vector * N)};
      }
      case StreamRead::lanes:
        break;
    }
    return {b_.source + b_.steps[job / b_.row_count], b_.rows + job % b_.row_count, 1};
  }
  // Lists the lines of a job row by row, in the order of addresses: at most `room` of them. Returns
  // how many.
  std::int64_t list_lines(std::int64_t job, const char** to, std::int64_t room) const {
    constexpr std::uintptr_t kLine = 64;
    const Reads in = reads(job);
    std::int64_t count = 0;
    for (std::int64_t r = 0; r < in.count; ++r) {
      const T* const row = in.base + in.rows[r];
      const auto* const end = reinterpret_cast<const char*>(row + b_.run);
      const auto* at = reinterpret_cast<const char*>(row);
      at -= reinterpret_cast<std::uintptr_t>(at) % kLine;
      for (; at < end && count < room; at += kLine) to[count++] = at;
    }
    return count;
  }

  void run(std::int64_t job) const {
    switch (b_.read) {
      case StreamRead::across:
        return run_across(job);
      case StreamRead::steps:
        return run_steps(job);
      case StreamRead::lanes:
        return run_lanes(job);
    }
  }

 private:
  using D = hn::ScalableTag<T>;
  static constexpr std::int64_t N = hn::MaxLanes(D()), W = kStreamVectors * N;

  struct Across {
    std::int64_t vector, step, outer;
  };
  // Far steps stand outside near positions, so that reads go on where they were.
  HWY_INLINE Across across(std::int64_t job) const {
    if (outer_inside_) {
      const std::int64_t o = job % b_.outer_count;
      job /= b_.outer_count;
      return {job / b_.step_count, job % b_.step_count, o};
    }
    const std::int64_t s = job % b_.step_count;
    job /= b_.step_count;
    return {job % vectors_, s, job / vectors_};
  }

  T* address(PackedAt at, std::int64_t step) const {
    const std::int64_t width = at.panel == last_panel_ ? last_width_ : W;
    return b_.packed + at.panel * W * b_.step_count + step * width + at.lane;
  }

  HWY_INLINE void put(hn::VFromD<D> v, std::int64_t n, PackedAt at, std::int64_t step) const {
    const D d;
    T* const to = address(at, step);
    const std::int64_t room = W - at.lane;
    if (HWY_LIKELY(n == N && room >= N)) return hn::StoreU(v, d, to);
    store_range(d, v, 0, static_cast<std::size_t>(std::min(n, room)), to);
    if (n > room) {
      store_range(d, v, static_cast<std::size_t>(room), static_cast<std::size_t>(n),
                  address({at.panel + 1, 0}, step) - room);
    }
  }

  void run_across(std::int64_t job) const {
    const Reads in = reads(job);
    const auto [vector, s, o] = across(job);
    const std::int64_t first = o * b_.run * b_.row_count + vector * N;
    const std::int64_t panels = b_.row_count / W, lanes = b_.row_count % W;
    Square<T> square;
    for (std::int64_t u = 0; u < b_.run;) {
      if (b_.run < N) {
        for (std::int64_t i = 0; i < in.count; ++i) {
          const std::int64_t p = first + u * b_.row_count + i;
          *address({p / W, p % W}, s) = in.base[in.rows[i] + u];
        }
        ++u;
        continue;
      }
      u = std::min(u, b_.run - N);  // the last square may overlap the one before
      square.load(in.base + u, in.rows);
      square.transpose();
      const std::int64_t p = first + u * b_.row_count;
      PackedAt at{p / W, p % W};
      if (lanes == 0 && in.count == N && last_width_ == W && at.lane + N <= W) {
        const D d;
        T* const to = address(at, s);
        const std::int64_t stride = panels * W * b_.step_count;
        HWY_UNROLL(16)
        for (std::int64_t j = 0; j < N; ++j) hn::StoreU(square.v[j], d, to + j * stride);
        u += N;
        continue;
      }
      HWY_UNROLL(16)
      for (std::int64_t j = 0; j < N; ++j) {
        put(square.v[j], in.count, at, s);
        at.panel += panels;
        at.lane += lanes;
        if (at.lane >= W) at.lane -= W, ++at.panel;
      }
      u += N;
    }
  }

  void run_steps(std::int64_t job) const {
    const Reads in = reads(job);
    const std::int64_t groups = b_.step_count / b_.run, vector = job / groups;
    const std::int64_t s = job % groups * b_.run;
    const PackedAt at{vector / kStreamVectors, vector % kStreamVectors * N};
    const D d;
    T* to = address(at, s);
    const std::int64_t width = at.panel == last_panel_ ? last_width_ : W;
    if (b_.run < N) {
      for (std::int64_t u = 0; u < b_.run; ++u) {
        for (std::int64_t i = 0; i < N; ++i) to[u * width + i] = in.base[in.rows[i] + u];
      }
      return;
    }
    Square<T> square;
    for (std::int64_t u = 0; u < b_.run; u += N) {
      u = std::min(u, b_.run - N);
      square.load(in.base + u, in.rows);
      square.transpose();
      HWY_UNROLL(16)
      for (std::int64_t j = 0; j < N; ++j) hn::StoreU(square.v[j], d, to + (u + j) * width);
    }
  }

  void run_lanes(std::int64_t job) const {
    const Reads in = reads(job);
    const std::int64_t s = job / b_.row_count, p = job % b_.row_count * b_.run;
    const T* from = in.base + in.rows[0];
    const D d;
    PackedAt at{p / W, p % W};
    for (std::int64_t left = b_.run; left > 0;) {
      const std::int64_t n = std::min({N, left, W - at.lane});
      const auto lanes = static_cast<std::size_t>(n);
      store_lanes(d, load_lanes(d, from, lanes), lanes, address(at, s));
      from += n;
      left -= n;
      at.lane += n;
      if (at.lane == W) at = {at.panel + 1, 0};
    }
  }

  const StreamPack<T> b_;
  std::int64_t vectors_, last_panel_, last_width_;
  bool outer_inside_ = false;
};

}  // namespace
}  // namespace einkern::kernel::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // per-target include guard
