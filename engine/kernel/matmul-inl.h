// SPDX-License-Identifier: Apache-2.0
// Loads and stores of the first lanes of a vector that touch no memory beyond them, and what asks
// for lines ahead.
#include <algorithm>
#include <cstddef>

#include "hwy/highway.h"

// Per-target include guard.
#if defined(EINKERN_KERNEL_MATMUL_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef EINKERN_KERNEL_MATMUL_INL_H_
#undef EINKERN_KERNEL_MATMUL_INL_H_
#else
#define EINKERN_KERNEL_MATMUL_INL_H_
#endif

HWY_BEFORE_NAMESPACE();
namespace einkern::kernel::HWY_NAMESPACE {
namespace {

namespace hn = hwy::HWY_NAMESPACE;

// Does the target have masked loads and stores that neither fault nor go beyond the mask? The
// masked stores of AVX2 are left alone: AMD's cores take some forty instructions for one.
inline constexpr bool kMaskedLoads = HWY_TARGET == HWY_AVX2 || HWY_TARGET == HWY_AVX3;
inline constexpr bool kMaskedStores = HWY_TARGET == HWY_AVX3;

template <class D, class T = hn::TFromD<D>>
HWY_INLINE hn::VFromD<D> load_lanes(D d, const T* from, std::size_t n) {
  if (HWY_LIKELY(n == hn::Lanes(d))) return hn::LoadU(d, from);
  if constexpr (kMaskedLoads) {
    return hn::MaskedLoad(hn::FirstN(d, n), d, from);
  } else {
    HWY_ALIGN T buffer[hn::MaxLanes(d)] = {};
    std::copy(from, from + n, buffer);
    return hn::Load(d, buffer);
  }
}

// The first n < Lanes(d) lanes: the halves, quarters, ... that n is made of.
template <class D, class T = hn::TFromD<D>>
HWY_INLINE void store_halves(D /*d*/, [[maybe_unused]] hn::VFromD<D> v,
                             [[maybe_unused]] std::size_t n, [[maybe_unused]] T* to) {
#if HWY_TARGET != HWY_SCALAR
  if constexpr (hn::MaxLanes(D()) > 1) {
    const hn::Half<D> half;
    constexpr std::size_t kHalf = hn::MaxLanes(half);
    if (n & kHalf) {
      hn::StoreU(hn::LowerHalf(half, v), half, to);
      store_halves(half, hn::UpperHalf(half, v), n - kHalf, to + kHalf);
    } else {
      store_halves(half, hn::LowerHalf(half, v), n, to);
    }
  }
#endif
}

template <class D, class T = hn::TFromD<D>>
HWY_INLINE void store_lanes(D d, hn::VFromD<D> v, std::size_t n, T* to) {
  if (HWY_LIKELY(n == hn::Lanes(d))) return hn::StoreU(v, d, to);
  if constexpr (kMaskedStores) {
    hn::BlendedStore(v, hn::FirstN(d, n), d, to);
  } else {
    store_halves(d, v, n, to);
  }
}

HWY_INLINE void fetch_to_l2(const void* address) { __builtin_prefetch(address, 0, 2); }

}  // namespace
}  // namespace einkern::kernel::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // per-target include guard
