// SPDX-License-Identifier: Apache-2.0
// Loads and stores of the first lanes of a vector that touch no memory beyond them.
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

// Does the target have masked loads and stores that neither fault nor write beyond the mask?
#if HWY_TARGET == HWY_AVX2 || HWY_TARGET == HWY_AVX3
inline constexpr bool kMasked = true;
#else
inline constexpr bool kMasked = false;
#endif

template <class D, class T = hn::TFromD<D>>
HWY_INLINE hn::VFromD<D> load_lanes(D d, const T* from, std::size_t n) {
  if (HWY_LIKELY(n == hn::Lanes(d))) return hn::LoadU(d, from);
  if constexpr (kMasked) {
    return hn::MaskedLoad(hn::FirstN(d, n), d, from);
  } else {
    HWY_ALIGN T buffer[hn::MaxLanes(d)] = {};
    std::copy(from, from + n, buffer);
    return hn::Load(d, buffer);
  }
}

template <class D, class T = hn::TFromD<D>>
HWY_INLINE void store_lanes(D d, hn::VFromD<D> v, std::size_t n, T* to) {
  if (HWY_LIKELY(n == hn::Lanes(d))) return hn::StoreU(v, d, to);
  if constexpr (kMasked) {
    hn::BlendedStore(v, hn::FirstN(d, n), d, to);
  } else {
    HWY_ALIGN T buffer[hn::MaxLanes(d)];
    hn::Store(v, d, buffer);
    std::copy(buffer, buffer + n, to);
  }
}

}  // namespace
}  // namespace einkern::kernel::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // per-target include guard
