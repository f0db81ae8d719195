// SPDX-License-Identifier: Apache-2.0
// Vectors of floats from 16-bit floats, for every target. Exact, denormals included, whatever the
// floating-point mode; what Highway has for it loses infinities and NaN on targets without F16C.
#if defined(EINKERN_KERNEL_HALF_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef EINKERN_KERNEL_HALF_INL_H_
#undef EINKERN_KERNEL_HALF_INL_H_
#else
#define EINKERN_KERNEL_HALF_INL_H_
#endif

#include <hwy/highway.h>

#include <algorithm>
#include <cstdint>
#include <type_traits>

#include "../base/half.h"

HWY_BEFORE_NAMESPACE();
namespace einkern::kernel::HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;

/// The bits of f16 or bf16 numbers.
template <class S>
HWY_INLINE const std::uint16_t* words_of(const S* from) {
  static_assert(is_half<S>);
  return reinterpret_cast<const std::uint16_t*>(from);
}

/// The numbers of type S, f16 or bf16, whose bits are `words`.
template <class S, class D>
HWY_INLINE hn::Vec<D> widened(D d, hn::Vec<hn::Rebind<std::uint16_t, D>> words) {
  static_assert(sizeof(hn::TFromD<D>) == sizeof(float) && is_half<S>);
  const hn::RebindToUnsigned<D> d32;
#if HWY_TARGET == HWY_AVX2 || HWY_TARGET == HWY_AVX3
  if constexpr (std::is_same_v<S, Float16>) {
    const hn::Rebind<hwy::float16_t, D> d_half;
    return hn::PromoteTo(d, hn::BitCast(d_half, words));
  }
#endif
  const auto bits = hn::PromoteTo(d32, words);
  if constexpr (std::is_same_v<S, BFloat16>) {
    return hn::BitCast(d, hn::ShiftLeft<16>(bits));
  } else {
    // As NarrowFloat does it, by selection.
    const auto kept = [d32](std::uint32_t x) HWY_ATTR { return hn::Set(d32, x); };
    const auto magnitude = hn::And(bits, kept(0x7fff));
    const auto sign = hn::ShiftLeft<16>(hn::Sub(bits, magnitude));
    const auto normal = hn::Add(hn::ShiftLeft<13>(magnitude), kept(112U << 23));
    const auto denormal = hn::BitCast(d32, hn::Sub(hn::BitCast(d, hn::Add(normal, kept(1U << 23))),
                                                   hn::BitCast(d, kept(113U << 23))));
    const auto least = hn::Lt(magnitude, kept(0x400));
    const auto beyond = hn::Gt(magnitude, kept(0x7bff));
    const auto finite = hn::IfThenElse(least, denormal, normal);
    const auto all = hn::IfThenElse(beyond, hn::Add(normal, kept(112U << 23)), finite);
    return hn::BitCast(d, hn::Or(all, sign));
  }
}

/// The numbers at `from`, as many as `d` has lanes: of its own type, f16 or bf16.
template <class D, class S>
HWY_INLINE hn::Vec<D> load_as(D d, const S* HWY_RESTRICT from) {
  if constexpr (std::is_same_v<S, hn::TFromD<D>>) {
    return hn::LoadU(d, from);
  } else {
    return widened<S>(d, hn::LoadU(hn::Rebind<std::uint16_t, D>(), words_of(from)));
  }
}

/// The first `count` of them, zeros behind.
template <class D, class S>
HWY_INLINE hn::Vec<D> load_part_as(D d, const S* HWY_RESTRICT from, std::int64_t count) {
  HWY_ALIGN S part[hn::MaxLanes(D())] = {};
  std::copy_n(from, count, part);
  return load_as(d, part);
}

/// to[i] = from[i] for i < n.
template <class S>
HWY_INLINE void widen_row(const S* HWY_RESTRICT from, float* HWY_RESTRICT to, std::int64_t n) {
  const hn::ScalableTag<float> d;
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
  std::int64_t i = 0;
  for (; i + lanes <= n; i += lanes) hn::StoreU(load_as(d, from + i), d, to + i);
  for (; i < n; ++i) to[i] = widen(from[i]);
}

}  // namespace einkern::kernel::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // per-target include guard
