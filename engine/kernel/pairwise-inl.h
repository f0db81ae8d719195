// SPDX-License-Identifier: Apache-2.0
// Joins the results of equal blocks pairwise, in a tree that depends on their number only.

// Included once per target, as Highway's own -inl headers are.
#if defined(EINKERN_KERNEL_PAIRWISE_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef EINKERN_KERNEL_PAIRWISE_INL_H_
#undef EINKERN_KERNEL_PAIRWISE_INL_H_
#else
#define EINKERN_KERNEL_PAIRWISE_INL_H_
#endif

#include <hwy/highway.h>

#include <cstddef>
#include <cstdint>
#include <cstring>

HWY_BEFORE_NAMESPACE();
namespace einkern::kernel::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

/// Vectors added one after another before their sum joins the tree: rounding errors grow with this
/// number and with the logarithm of the number of blocks.
constexpr std::int64_t kBlockVectors = 128;

/// Sum of two vectors or numbers, as a fold.
struct SumFold {
  template <class T>
  static constexpr T identity() {
    return T{0};
  }
  template <class D>
  static HWY_INLINE hn::Vec<D> join(D /*d*/, hn::Vec<D> a, hn::Vec<D> b) {
    return hn::Add(a, b);
  }
  template <class T>
  static HWY_INLINE T join_one(T a, T b) {
    return a + b;
  }
};

/// A binary counter of partial results: level i holds the fold of 2^i blocks.
template <class Fold, class D>
class Pairwise {
 public:
  using T = hn::TFromD<D>;

  HWY_INLINE void push(D d, hn::Vec<D> block) {
    int level = 0;
    for (std::uint64_t rest = count_; (rest & 1) != 0; rest >>= 1) {
      block = Fold::join(d, hn::Load(d, levels_[level++]), block);
    }
    hn::Store(block, d, levels_[level]);
    ++count_;
  }

  /// Fold of everything pushed, from the smallest level up; the identity when there was nothing.
  HWY_INLINE hn::Vec<D> finish(D d) const {
    auto total = hn::Set(d, Fold::template identity<T>());
    bool first = true;
    int level = 0;
    for (std::uint64_t rest = count_; rest != 0; rest >>= 1, ++level) {
      if ((rest & 1) == 0) continue;
      const auto part = hn::Load(d, levels_[level]);
      total = first ? part : Fold::join(d, part, total);
      first = false;
    }
    return total;
  }

 private:
  static constexpr int kLevels = 56;  // 2^56 blocks of 128 vectors are more than memory can hold
  HWY_ALIGN T levels_[kLevels][HWY_MAX_BYTES / sizeof(T)];
  std::uint64_t count_ = 0;
};

/// The first `count` lanes from memory, `fill` in the others.
template <class D, class T>
HWY_INLINE hn::Vec<D> load_part(D d, const T* from, std::int64_t count, T fill) {
  HWY_ALIGN T part[HWY_MAX_BYTES / sizeof(T)];
  hn::Store(hn::Set(d, fill), d, part);
  std::memcpy(part, from, static_cast<std::size_t>(count) * sizeof(T));
  return hn::Load(d, part);
}

/// The first `count` lanes to memory.
template <class D, class T>
HWY_INLINE void store_part(D d, hn::Vec<D> value, T* to, std::int64_t count) {
  HWY_ALIGN T part[HWY_MAX_BYTES / sizeof(T)];
  hn::Store(value, d, part);
  std::memcpy(to, part, static_cast<std::size_t>(count) * sizeof(T));
}

/// Fold of the lanes of one vector: each with its neighbour, then pairs, then 128-bit blocks,
/// halves.
template <class Fold, class D>
HWY_INLINE hn::TFromD<D> fold_lanes([[maybe_unused]] D d, hn::Vec<D> value) {
#if HWY_TARGET != HWY_SCALAR
  constexpr std::size_t kBytes = hn::MaxLanes(D()) * sizeof(hn::TFromD<D>);
  if constexpr (sizeof(hn::TFromD<D>) == 4) {
    value = Fold::join(d, value, hn::Shuffle2301(value));
    value = Fold::join(d, value, hn::Shuffle1032(value));
  } else {
    value = Fold::join(d, value, hn::Shuffle01(value));
  }
  if constexpr (kBytes >= 32) value = Fold::join(d, value, hn::SwapAdjacentBlocks(value));
  if constexpr (kBytes >= 64) value = Fold::join(d, value, hn::ConcatLowerUpper(d, value, value));
  static_assert(kBytes <= 64);
#endif
  return hn::GetLane(value);
}

}  // namespace einkern::kernel::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // per target
