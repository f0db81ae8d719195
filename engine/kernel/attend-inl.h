// SPDX-License-Identifier: Apache-2.0
// 2^x for scores: few instructions, 0 for -inf, infinity and NaN kept, denormal results flushed.

// Included once per target, as Highway's own -inl headers are.
#if defined(EINKERN_KERNEL_ATTEND_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef EINKERN_KERNEL_ATTEND_INL_H_
#undef EINKERN_KERNEL_ATTEND_INL_H_
#else
#define EINKERN_KERNEL_ATTEND_INL_H_
#endif

#include <hwy/highway.h>

#include "math-inl.h"

HWY_BEFORE_NAMESPACE();
namespace einkern::kernel::HWY_NAMESPACE {

/// 2^r for |r| <= 1/2: 1 + r q(r), within 2^-27.5 (f32) and 2^-56.7 (f64).
template <class D>
HWY_INLINE hn::Vec<D> exp2_reduced(D d, hn::Vec<D> r) {
  if constexpr (sizeof(hn::TFromD<D>) == 4) {
    return polynomial(d, r, 1.0f, 0x1.62e430p-1f, 0x1.ebfbe0p-3f, 0x1.c6af6cp-5f, 0x1.3b2a54p-7f,
                      0x1.5f0890p-10f, 0x1.44138ap-13f);
  } else {
    return polynomial(d, r, 1.0, 0x1.62e42fefa39efp-1, 0x1.ebfbdff82c598p-3, 0x1.c6b08d704a0c2p-5,
                      0x1.3b2ab6fba1ddap-7, 0x1.5d87fe78a5276p-10, 0x1.430913096fd9fp-13,
                      0x1.ffcbfc670dcd4p-17, 0x1.62bfd47773353p-20, 0x1.b524fae627834p-24,
                      0x1.e6063f7217bc6p-28, 0x1.e9d3fe3952179p-32);
  }
}

#if HWY_TARGET == HWY_AVX3

/// f32 takes seven instructions: x - floor(x), a polynomial of degree 5 over [0, 1), and a scaling
/// by 2^floor(x). At most 2.59 ulp over [-126, 8]; degree 6 would be 1.50 for one instruction more,
/// and the rounding of the scores hides the difference.
template <class D>
HWY_INLINE hn::Vec<D> exp2_score(D d, hn::Vec<D> x) {
  constexpr int kDown = 9, kNearest = 8;  // rounding of immediates, without exceptions
  if constexpr (sizeof(hn::TFromD<D>) == 4) {
    const hn::Vec<D> r{_mm512_reduce_ps(x.raw, kDown)};
    const auto p = polynomial(d, r, 0.9999999404f, 0.6931532621f, 0.2401534319f, 0.05582636222f,
                              0.008988365531f, 0.001878508367f);
    return hn::Vec<D>{_mm512_scalef_ps(p.raw, x.raw)};
  } else {
    const hn::Vec<D> r{_mm512_reduce_pd(x.raw, kNearest)};
    const auto p = exp2_reduced(d, r);
    return hn::Vec<D>{_mm512_scalef_pd(p.raw, _mm512_roundscale_pd(x.raw, kNearest))};
  }
}

#else

/// f32 takes twelve instructions, with a polynomial of degree 5 over [-1/2, 1/2]: at most 2.01 ulp.
template <class D>
HWY_INLINE hn::Vec<D> exp2_score(D d, hn::Vec<D> x) {
  using T = hn::TFromD<D>;
  using Facts = FloatFacts<T>;
  // 2^least is made as 0, 2^most as infinity.
  constexpr T kMost = static_cast<T>(Facts::kBias) + 1, kLeast = -static_cast<T>(Facts::kBias);
#if HWY_TARGET != HWY_SCALAR
  if constexpr (sizeof(T) == 4) {
    // x86 returns the second operand where one is NaN; the sum below holds the biased exponent.
    const auto bounded = hn::Min(hn::Set(d, kMost), hn::Max(hn::Set(d, kLeast), x));
    const auto round = hn::Set(d, Facts::kRound + static_cast<T>(Facts::kBias));
    const auto exponent = hn::Add(bounded, round);
    const auto r = hn::Sub(bounded, hn::Sub(exponent, round));
    const auto p = polynomial(d, r, 1.0f, 0x1.62e42ap-1f, 0x1.ebf9bcp-3f, 0x1.c6b752p-5f,
                              0x1.3cea88p-7f, 0x1.5bba14p-10f);
    const hn::RebindToUnsigned<D> bits;
    return hn::Mul(p, hn::BitCast(d, hn::ShiftLeft<Facts::kMantissa>(hn::BitCast(bits, exponent))));
  }
#endif
  const auto round = hn::Set(d, Facts::kRound);
  const auto bounded = hn::Min(hn::Max(x, hn::Set(d, kLeast)), hn::Set(d, kMost));
  const auto n_bits = hn::Add(bounded, round);
  const auto r = hn::Sub(bounded, hn::Sub(n_bits, round));
  return keep_nan(d, x, hn::Mul(exp2_reduced(d, r), power_of_2(d, n_bits)));
}

#endif

/// tanh(x) for scores: as tanh, with a reciprocal that is refined once where a division would take
/// longer than all the rest. At most 3.2 ulp.
template <class D>
HWY_INLINE hn::Vec<D> tanh_score(D d, hn::Vec<D> x) {
#if HWY_TARGET == HWY_AVX3
  using T = hn::TFromD<D>;
  if constexpr (sizeof(T) == 4) {
    const auto two = hn::Set(d, T{2});
    const auto expm1 = tanh_numerator(d, x);
    const auto denominator = hn::Add(expm1, two);
    auto reciprocal = hn::ApproximateReciprocal(denominator);
    reciprocal = hn::Mul(reciprocal, hn::NegMulAdd(denominator, reciprocal, two));
    return keep_nan(d, x, hn::CopySignToAbs(hn::Mul(expm1, reciprocal), x));
  }
#endif
  return tanh(d, x);
}

}  // namespace einkern::kernel::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // per target
