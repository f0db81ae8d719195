// SPDX-License-Identifier: Apache-2.0
// Exponential, logarithm and their relatives on Highway vectors of f32 and f64, for every target.
//
// All are total: NaN gives NaN, infinities their limits, and denormal arguments and results are
// kept. The polynomials are minimax fits (Remez) to the functions named beside them; a function is
// one straight line of arithmetic, so that an element's bits do not depend on its lane.
//
// Largest errors over all targets that the tests have seen, in units in the last place:
//
//             exp    log    tanh   sigmoid   erf
//     f32     1.00   0.76   2.54   2.17      2.51
//     f64     1.03   0.78   2.57   2.19      1.65

// Included once per target, as Highway's own -inl headers are.
#if defined(EINKERN_KERNEL_MATH_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef EINKERN_KERNEL_MATH_INL_H_
#undef EINKERN_KERNEL_MATH_INL_H_
#else
#define EINKERN_KERNEL_MATH_INL_H_
#endif

#include <hwy/highway.h>

#include <cstdint>
#include <limits>

HWY_BEFORE_NAMESPACE();
namespace einkern::kernel::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

/// What the functions need to know about the bits of a float type.
template <class T>
struct FloatFacts;
template <>
struct FloatFacts<float> {
  using Bits = std::uint32_t;
  static constexpr int kMantissa = 23;
  static constexpr Bits kBias = 127;
  static constexpr float kRound = 0x1.8p23f;  // adding it rounds to an integer in the low bits
  // ln 2 in two parts; multiples of the first by any exponent are exact.
  static constexpr float kLn2High = 0x1.62e4p-1f, kLn2Low = 0x1.7f7d1cp-20f;
  static constexpr float kExpLeast = -104.0f, kExpMost = 89.0f;  // beyond: 0 and infinity
  static constexpr float kTanhMost = 20.0f;                      // of 2x; beyond: 1
  static constexpr float kErfMost = 4.0f;                        // beyond: 1
};
template <>
struct FloatFacts<double> {
  using Bits = std::uint64_t;
  static constexpr int kMantissa = 52;
  static constexpr Bits kBias = 1023;
  static constexpr double kRound = 0x1.8p52;
  static constexpr double kLn2High = 0x1.62e42feep-1, kLn2Low = 0x1.a39ef35793c76p-33;
  static constexpr double kExpLeast = -746.0, kExpMost = 710.0;
  static constexpr double kTanhMost = 40.0;
  static constexpr double kErfMost = 6.0;
};

/// c0 + x (c1 + x (c2 + ...)).
template <class D, class T>
HWY_INLINE hn::Vec<D> polynomial(D d, hn::Vec<D> /*x*/, T c0) {
  return hn::Set(d, c0);
}
template <class D, class T, class... Rest>
HWY_INLINE hn::Vec<D> polynomial(D d, hn::Vec<D> x, T c0, Rest... rest) {
  return hn::MulAdd(x, polynomial(d, x, rest...), hn::Set(d, c0));
}

/// x = n ln 2 + r with |r| <= ln 2 / 2, n whole.
template <class D>
struct Reduced {
  hn::Vec<D> n;       // as a float
  hn::Vec<D> n_bits;  // n + kRound: n in the low bits of the mantissa
  hn::Vec<D> r;
};
template <class D>
HWY_INLINE Reduced<D> reduce_exponent(D d, hn::Vec<D> x) {
  using T = hn::TFromD<D>;
  using Facts = FloatFacts<T>;
  const auto round = hn::Set(d, Facts::kRound);
  const auto n_bits = hn::MulAdd(x, hn::Set(d, static_cast<T>(0x1.71547652b82fep+0)), round);
  const auto n = hn::Sub(n_bits, round);
  const auto r = hn::NegMulAdd(n, hn::Set(d, Facts::kLn2Low),
                               hn::NegMulAdd(n, hn::Set(d, Facts::kLn2High), x));
  return {n, n_bits, r};
}

/// exp(r) - 1 for |r| <= ln 2 / 2, with full relative precision: r + r^2 q(r).
template <class D>
HWY_INLINE hn::Vec<D> exp_minus_1_reduced(D d, hn::Vec<D> r) {
  hn::Vec<D> q;
  if constexpr (sizeof(hn::TFromD<D>) == 4) {  // q within 2^-28.2
    q = polynomial(d, r, 0.5f, 0x1.55548ep-3f, 0x1.55545ep-5f, 0x1.123b92p-7f, 0x1.6db47ep-10f);
  } else {  // 2^-58.0
    q = polynomial(d, r, 0x1.000000000000cp-1, 0x1.5555555555561p-3, 0x1.555555554ffeap-5,
                   0x1.111111110d60cp-7, 0x1.6c16c185b711ap-10, 0x1.a01a01baf1f40p-13,
                   0x1.a0199667d5d45p-16, 0x1.71dddfa81ef62p-19, 0x1.28b072c4cf40cp-22,
                   0x1.af85c14452b60p-26);
  }
  return hn::MulAdd(hn::Mul(r, r), q, r);
}

/// 2^n from n + kRound, for n that is the exponent of a normal number.
template <class D>
HWY_INLINE hn::Vec<D> power_of_2(D d, hn::Vec<D> n_bits) {
  using Facts = FloatFacts<hn::TFromD<D>>;
  const hn::RebindToUnsigned<D> du;
  const auto biased = hn::Add(hn::BitCast(du, n_bits), hn::Set(du, Facts::kBias));
  return hn::BitCast(d, hn::ShiftLeft<Facts::kMantissa>(biased));
}

/// `result`, or x where x is NaN: Min and Max lose it on some targets.
template <class D>
HWY_INLINE hn::Vec<D> keep_nan(D /*d*/, hn::Vec<D> x, hn::Vec<D> result) {
  return hn::IfThenElse(hn::IsNaN(x), x, result);
}

/// exp(x) for every x but NaN.
template <class D>
HWY_INLINE hn::Vec<D> exp_of_number(D d, hn::Vec<D> x) {
  using Facts = FloatFacts<hn::TFromD<D>>;
  x = hn::Min(hn::Max(x, hn::Set(d, Facts::kExpLeast)), hn::Set(d, Facts::kExpMost));
  const Reduced<D> reduced = reduce_exponent(d, x);
  const auto p = hn::Add(exp_minus_1_reduced(d, reduced.r), hn::Set(d, hn::TFromD<D>{1}));
  // Two steps: 2^n alone may be out of range; only the last product rounds when p 2^n is denormal.
  const auto round = hn::Set(d, Facts::kRound);
  const auto half_bits = hn::MulAdd(reduced.n, hn::Set(d, hn::TFromD<D>{0.5}), round);
  const auto rest_bits = hn::Add(hn::Sub(reduced.n, hn::Sub(half_bits, round)), round);
  return hn::Mul(hn::Mul(p, power_of_2(d, half_bits)), power_of_2(d, rest_bits));
}

/// e^x.
template <class D>
HWY_INLINE hn::Vec<D> exp(D d, hn::Vec<D> x) {
  return keep_nan(d, x, exp_of_number(d, x));
}

/// Natural logarithm: -inf at 0, NaN below.
template <class D>
HWY_INLINE hn::Vec<D> log(D d, hn::Vec<D> x) {
  using T = hn::TFromD<D>;
  using Facts = FloatFacts<T>;
  using Bits = typename Facts::Bits;
  const hn::RebindToUnsigned<D> du;
  constexpr int kMantissa = Facts::kMantissa;
  constexpr bool kSingle = sizeof(T) == 4;
  constexpr T kInfinity = std::numeric_limits<T>::infinity();

  // x = 2^e m with m in [sqrt(1/2), sqrt(2)); denormals are scaled up first.
  const auto denormal = hn::Lt(x, hn::Set(d, std::numeric_limits<T>::min()));
  const T kScale = static_cast<T>(kSingle ? 0x1p25 : 0x1p54);
  const auto scaled = hn::IfThenElse(denormal, hn::Mul(x, hn::Set(d, kScale)), x);
  const auto extra = hn::IfThenElseZero(denormal, hn::Set(d, static_cast<T>(kSingle ? 25 : 54)));
  constexpr Bits kOne = Facts::kBias << kMantissa;
  constexpr Bits kRootHalf = static_cast<Bits>(kSingle ? 0x3f3504f3u : 0x3fe6a09e667f3bcdu);
  const auto bits = hn::Add(hn::BitCast(du, scaled), hn::Set(du, kOne - kRootHalf));
  // The biased exponent becomes a float by putting it into the mantissa of 2^kMantissa.
  constexpr T kWhole = kSingle ? static_cast<T>(0x1p23) : static_cast<T>(0x1p52);
  const auto exponent_bits =
      hn::Or(hn::ShiftRight<kMantissa>(bits), hn::BitCast(du, hn::Set(d, kWhole)));
  const auto e = hn::Sub(
      hn::Sub(hn::BitCast(d, exponent_bits), hn::Set(d, kWhole + static_cast<T>(Facts::kBias))),
      extra);
  constexpr Bits kMantissaMask = (Bits{1} << kMantissa) - 1;
  const auto m =
      hn::BitCast(d, hn::Add(hn::And(bits, hn::Set(du, kMantissaMask)), hn::Set(du, kRootHalf)));

  const auto f = hn::Sub(m, hn::Set(d, T{1}));
  const auto half_square = hn::Mul(hn::Mul(f, f), hn::Set(d, T{0.5}));
  const auto low = hn::Set(d, Facts::kLn2Low), high = hn::Set(d, Facts::kLn2High);
  hn::Vec<D> result;
  if constexpr (kSingle) {
    // log(1 + f) = f - f^2 / 2 + f^3 P(f), P within 2^-30.4.
    const auto p = polynomial(d, f, 0x1.555546p-2f, -0x1.ffffeep-3f, 0x1.99a546p-3f,
                              -0x1.5562e4p-3f, 0x1.2332c0p-3f, -0x1.fb432ap-4f, 0x1.e650a8p-4f,
                              -0x1.e2e9b4p-4f, 0x1.1b42b2p-4f);
    const auto cubic = hn::Mul(hn::Mul(hn::Mul(f, f), f), p);
    const auto tail = hn::Sub(hn::MulAdd(e, low, cubic), half_square);
    result = hn::MulAdd(e, high, hn::Add(f, tail));
  } else {
    // With s = f / (2 + f): log(1 + f) = 2 atanh(s) = f - (f^2 / 2 - s (f^2 / 2 + z R(z))), z =
    // s^2, R within 2^-58.5.
    const auto s = hn::Div(f, hn::Add(f, hn::Set(d, T{2})));
    const auto z = hn::Mul(s, s);
    const auto r =
        hn::Mul(z, polynomial(d, z, 0x1.5555555555592p-1, 0x1.999999997fdb5p-2,
                              0x1.24924941f1475p-2, 0x1.c71c520944924p-3, 0x1.74663eecb9048p-3,
                              0x1.39a1ba5a0fd37p-3, 0x1.2f0566962d4a2p-3));
    const auto correction = hn::MulAdd(e, low, hn::Mul(s, hn::Add(half_square, r)));
    result = hn::MulAdd(e, high, hn::Sub(f, hn::Sub(half_square, correction)));
  }
  result = hn::IfThenElse(hn::Eq(x, hn::Zero(d)), hn::Set(d, -kInfinity), result);
  result = hn::IfThenElse(hn::Lt(x, hn::Zero(d)), hn::Set(d, std::numeric_limits<T>::quiet_NaN()),
                          result);
  result = hn::IfThenElse(hn::Eq(x, hn::Set(d, kInfinity)), x, result);
  return keep_nan(d, x, result);
}

/// exp(2|x|) - 1 for the hyperbolic tangent, bounded where that is 1.
template <class D>
HWY_INLINE hn::Vec<D> tanh_numerator(D d, hn::Vec<D> x) {
  using T = hn::TFromD<D>;
  const auto magnitude = hn::Abs(x);
  const auto y = hn::Min(hn::Add(magnitude, magnitude), hn::Set(d, FloatFacts<T>::kTanhMost));
  const Reduced<D> reduced = reduce_exponent(d, y);
  const auto scale = power_of_2(d, reduced.n_bits);
  return hn::MulAdd(exp_minus_1_reduced(d, reduced.r), scale, hn::Sub(scale, hn::Set(d, T{1})));
}

/// Hyperbolic tangent, (e^2x - 1) / (e^2x + 1), from exp(2|x|) - 1 so that nothing cancels.
template <class D>
HWY_INLINE hn::Vec<D> tanh(D d, hn::Vec<D> x) {
  const auto expm1 = tanh_numerator(d, x);
  const auto result = hn::Div(expm1, hn::Add(expm1, hn::Set(d, hn::TFromD<D>{2})));
  return keep_nan(d, x, hn::CopySignToAbs(result, x));
}

/// 1 / (1 + e^-x), from exp(-|x|) so that nothing overflows.
template <class D>
HWY_INLINE hn::Vec<D> sigmoid(D d, hn::Vec<D> x) {
  const auto one = hn::Set(d, hn::TFromD<D>{1});
  const auto e = exp_of_number(d, hn::Neg(hn::Abs(x)));
  const auto numerator = hn::IfThenElse(hn::Lt(x, hn::Zero(d)), e, one);
  return keep_nan(d, x, hn::Div(numerator, hn::Add(one, e)));
}

/// The error function: x A(x^2) below 1, 1 - exp(-x^2) B(1 / (x + 2)) from there on.
template <class D>
HWY_INLINE hn::Vec<D> erf(D d, hn::Vec<D> x) {
  using T = hn::TFromD<D>;
  const auto magnitude = hn::Min(hn::Abs(x), hn::Set(d, FloatFacts<T>::kErfMost));
  const auto square = hn::Mul(magnitude, magnitude);
  const auto one = hn::Set(d, T{1});
  const auto t = hn::Div(one, hn::Add(magnitude, hn::Set(d, T{2})));
  hn::Vec<D> a, b;
  if constexpr (sizeof(T) == 4) {  // A within 2^-29.6, B 2^-34.6
    a = polynomial(d, square, 0x1.20dd74p+0f, -0x1.81273ep-2f, 0x1.ce2cf8p-4f, -0x1.b7f90ep-6f,
                   0x1.5405b2p-8f, -0x1.a3f706p-11f, 0x1.496a42p-14f);
    b = polynomial(d, t, 0x1.dc93a2p-10f, 0x1.09f920p-1f, 0x1.96303ep+0f, -0x1.071730p-1f,
                   0x1.45e12ep+3f, -0x1.d88b66p+2f);
  } else {  // A 2^-56.9, B 2^-60.6
    a = polynomial(d, square, 0x1.20dd750429b6dp+0, -0x1.812746b0379bdp-2, 0x1.ce2f21a040d16p-4,
                   -0x1.b82ce311fa950p-6, 0x1.565bccf92b4cep-8, -0x1.c02db03dda8f4p-11,
                   0x1.f9a2baa941ec3p-14, -0x1.f4ca4d72a1be7p-17, 0x1.b97fd3f6938fcp-20,
                   -0x1.5c07278e0b470p-23, 0x1.d71b12f513174p-27, -0x1.abae539fa4ec4p-31);
    b = polynomial(d, t, -0x1.9d23b59acaf89p-19, 0x1.20f5c38dd2453p-1, 0x1.1f918c2840860p+0,
                   0x1.0768776801535p+1, 0x1.e71731d45591cp+0, 0x1.3b699fc78b534p+3,
                   -0x1.47db523e4504dp+5, 0x1.41966dccd53f8p+7, -0x1.fdd2f1ece15e6p+8,
                   0x1.f092df491830fp+9, -0x1.1fcde706e9c48p+10, 0x1.75672bde2d682p+9,
                   -0x1.a78723f1a06dap+7);
  }
  const auto near = hn::Mul(magnitude, a);
  const auto far = hn::NegMulAdd(exp_of_number(d, hn::Neg(square)), b, one);
  const auto result = hn::IfThenElse(hn::Lt(magnitude, one), near, far);
  return keep_nan(d, x, hn::CopySignToAbs(result, x));
}

}  // namespace einkern::kernel::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // per target
