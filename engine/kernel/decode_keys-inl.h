// SPDX-License-Identifier: Apache-2.0
// Keys of few rows as vectors of blocks, and their products' sums over blocks.
#if defined(EINKERN_KERNEL_DECODE_KEYS_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef EINKERN_KERNEL_DECODE_KEYS_INL_H_
#undef EINKERN_KERNEL_DECODE_KEYS_INL_H_
#else
#define EINKERN_KERNEL_DECODE_KEYS_INL_H_
#endif

#include <hwy/highway.h>

#include <array>
#include <cstdint>
#include <cstring>

#include "half-inl.h"

HWY_BEFORE_NAMESPACE();
namespace einkern::kernel::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

template <class T>
using Tag = hn::ScalableTag<T>;
template <class T>
using Vector = hn::Vec<Tag<T>>;
template <class T>
inline constexpr std::int64_t kLanes = hn::MaxLanes(Tag<T>());

/// Elements of a row that lie side by side in a vector of several rows: one block of 128 bits,
/// which keys are broadcast in as they lie.
#if HWY_TARGET == HWY_SCALAR
template <class T>
constexpr std::int64_t kElements = 1;
#else
template <class T>
constexpr std::int64_t kElements = 16 / sizeof(T);
#endif
template <class T>
constexpr std::int64_t kRowsOfVector = kLanes<T> / kElements<T>;

/// Lane `e` of block `g`: the sum of block `g` of x[e].
template <class T>
HWY_INLINE Vector<T> sums_of_blocks(const Vector<T>* x) {
  const Tag<T> d;
#if HWY_TARGET == HWY_SCALAR
  static_cast<void>(d);
  return x[0];
#else
  const auto pair = [d](Vector<T> a, Vector<T> b) HWY_ATTR {
    return hn::Add(hn::InterleaveLower(d, a, b), hn::InterleaveUpper(d, a, b));
  };
  if constexpr (sizeof(T) == 8) {
    return pair(x[0], x[1]);
  } else {
    const hn::Repartition<double, Tag<T>> wide;
    const auto ab = hn::BitCast(wide, pair(x[0], x[1])), cd = hn::BitCast(wide, pair(x[2], x[3]));
    const auto low = hn::BitCast(d, hn::InterleaveLower(wide, ab, cd));
    const auto high = hn::BitCast(d, hn::InterleaveUpper(wide, ab, cd));
    return hn::Add(low, high);
  }
#endif
}

/// A block of keys in all blocks of a vector; twice as wide a one where rows are split.
template <class T, bool kSplit>
HWY_INLINE Vector<T> load_broadcast(const T* from) {
  const Tag<T> d;
#if HWY_TARGET == HWY_AVX3
  if constexpr (kSplit) {
    if constexpr (sizeof(T) == 4) {
      return Vector<T>{_mm512_broadcast_f32x8(_mm256_loadu_ps(from))};
    } else {
      return Vector<T>{_mm512_broadcast_f64x4(_mm256_loadu_pd(from))};
    }
  }
#endif
  return hn::LoadDup128(d, from);
}

/// The sums of pairs of blocks: of a in the lower half, of b in the upper one.
template <class T>
HWY_INLINE Vector<T> sums_of_pairs(Vector<T> a, Vector<T> b) {
#if HWY_TARGET == HWY_AVX3
  constexpr int kEven = 0x88, kOdd = 0xdd;
  if constexpr (sizeof(T) == 4) {
    return hn::Add(Vector<T>{_mm512_shuffle_f32x4(a.raw, b.raw, kEven)},
                   Vector<T>{_mm512_shuffle_f32x4(a.raw, b.raw, kOdd)});
  } else {
    return hn::Add(Vector<T>{_mm512_shuffle_f64x2(a.raw, b.raw, kEven)},
                   Vector<T>{_mm512_shuffle_f64x2(a.raw, b.raw, kOdd)});
  }
#else
  return hn::Add(a, b);
#endif
}

/// out[e][g] = lane `e` of block `g`, with rows `stride` apart.
template <class T>
HWY_INLINE void store_transposed(Vector<T> x, T* out, std::int64_t stride) {
  const Tag<T> d;
  constexpr std::int64_t kG = kRowsOfVector<T>, kE = kElements<T>;
  HWY_ALIGN T lanes[kG * kE];
#if HWY_TARGET != HWY_SCALAR
  using Index = hn::TFromD<hn::RebindToSigned<Tag<T>>>;
  HWY_ALIGN static constexpr auto kFrom = [] {
    std::array<Index, kG * kE> from{};
    for (std::int64_t i = 0; i < kG * kE; ++i) {
      from[static_cast<std::size_t>(i)] = static_cast<Index>(i % kG * kE + i / kG);
    }
    return from;
  }();
  if constexpr (kG > 1) x = hn::TableLookupLanes(x, hn::SetTableIndices(d, kFrom.data()));
#endif
  hn::Store(x, d, lanes);
  HWY_UNROLL(4)
  for (std::int64_t e = 0; e < kE; ++e) {
    std::memcpy(out + e * stride, lanes + e * kG, sizeof(T) * static_cast<std::size_t>(kG));
  }
}

// A byte shuffle within blocks of 128 bits widens bf16 and puts elements where those of f32 lie.
// With AVX-512 on Zen 4 it waits for the multiply-adds' ports: 54 cycles a key of 128 for four
// rows, where a conversion and a shift take 43.
constexpr bool kShufflesBytes = HWY_TARGET != HWY_AVX3 && HWY_TARGET != HWY_SCALAR;

/// Parts of E elements each that one load has.
template <class S, std::int64_t E>
constexpr int kParts = std::is_same_v<S, BFloat16>&& kShufflesBytes ? 8 / E : 1;

/// Elements of part `kPart` of the keys at `from`, as load_broadcast has them: bits are those of
/// f32 copies.
template <class T, bool kSplit, int kPart, class S>
HWY_INLINE Vector<T> load_keys(const S* from) {
  const Tag<T> d;
  if constexpr (std::is_same_v<S, T>) {
    return load_broadcast<T, kSplit>(from);
#if HWY_TARGET != HWY_SCALAR
  } else if constexpr (std::is_same_v<S, BFloat16> && kShufflesBytes) {
    const hn::Repartition<std::uint8_t, Tag<T>> bytes;
    HWY_ALIGN static constexpr auto kFrom = [] {
      std::array<std::uint8_t, sizeof(T) * kLanes<T>> places{};
      for (std::size_t i = 0; i < places.size(); ++i) {
        const std::size_t element = i / sizeof(T) % 4 + 4 * kPart, byte = i % sizeof(T);
        places[i] = static_cast<std::uint8_t>(byte < 2 ? 0x80 : 2 * element + byte - 2);
      }
      return places;
    }();
    const auto all = hn::LoadDup128(bytes, reinterpret_cast<const std::uint8_t*>(from));
    return hn::BitCast(d, hn::TableLookupBytesOr0(all, hn::Load(bytes, kFrom.data())));
  } else {
    const hn::Rebind<std::uint16_t, Tag<T>> words;
    if constexpr (kSplit) return widened<S>(d, hn::LoadDup128(words, words_of(from)));
    const hn::Repartition<std::uint64_t, decltype(words)> blocks;
    std::uint64_t block = 0;
    std::memcpy(&block, from, sizeof(block));
    return widened<S>(d, hn::BitCast(words, hn::Set(blocks, block)));
#else
  } else {
    return load_as(d, from);
#endif
  }
}

}  // namespace einkern::kernel::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // EINKERN_KERNEL_DECODE_KEYS_INL_H_
