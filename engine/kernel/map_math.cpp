// SPDX-License-Identifier: Apache-2.0
// Elementwise functions of floats: a vector loop per function, the tail padded to a whole vector.
#include "map_fill.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "map_math.cpp"
#include <hwy/foreach_target.h>  // IWYU pragma: keep
#include <hwy/highway.h>

#include <cmath>
#include <cstring>

#include "math-inl.h"

HWY_BEFORE_NAMESPACE();
namespace einkern::kernel::HWY_NAMESPACE {

struct Sqrt {
  template <class D>
  HWY_INLINE hn::Vec<D> operator()(D /*d*/, hn::Vec<D> x) const {
    return hn::Sqrt(x);
  }
};
struct Rsqrt {
  template <class D>
  HWY_INLINE hn::Vec<D> operator()(D d, hn::Vec<D> x) const {
    return hn::Div(hn::Set(d, hn::TFromD<D>{1}), hn::Sqrt(x));
  }
};
struct Exp {
  template <class D>
  HWY_INLINE hn::Vec<D> operator()(D d, hn::Vec<D> x) const {
    return exp(d, x);
  }
};
struct Log {
  template <class D>
  HWY_INLINE hn::Vec<D> operator()(D d, hn::Vec<D> x) const {
    return log(d, x);
  }
};
struct Tanh {
  template <class D>
  HWY_INLINE hn::Vec<D> operator()(D d, hn::Vec<D> x) const {
    return tanh(d, x);
  }
};
struct Sigmoid {
  template <class D>
  HWY_INLINE hn::Vec<D> operator()(D d, hn::Vec<D> x) const {
    return sigmoid(d, x);
  }
};
struct Erf {
  template <class D>
  HWY_INLINE hn::Vec<D> operator()(D d, hn::Vec<D> x) const {
    return erf(d, x);
  }
};

template <class T, class Function>
MapFault each(const void* a, const void* /*b*/, const void* /*c*/, void* out,
              std::int64_t n) noexcept {
  const hn::ScalableTag<T> d;
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
  const T* x = static_cast<const T*>(a);
  T* y = static_cast<T*>(out);
  const Function function;
  std::int64_t i = 0;
  for (; i + lanes <= n; i += lanes) hn::StoreU(function(d, hn::LoadU(d, x + i)), d, y + i);
  if (i < n) {
    HWY_ALIGN T part[HWY_MAX_BYTES / sizeof(T)] = {};
    std::memcpy(part, x + i, static_cast<std::size_t>(n - i) * sizeof(T));
    hn::Store(function(d, hn::Load(d, part)), d, part);
    std::memcpy(y + i, part, static_cast<std::size_t>(n - i) * sizeof(T));
  }
  return MapFault::none;
}

/// Element by element in double: sin and cos are asked of whole tables of angles, large ones too,
/// and the library reduces any.
template <class T, double (*kFunction)(double)>
MapFault each_alone(const void* a, const void* /*b*/, const void* /*c*/, void* out,
                    std::int64_t n) noexcept {
  const T* x = static_cast<const T*>(a);
  T* y = static_cast<T*>(out);
  for (std::int64_t i = 0; i < n; ++i) {
    y[i] = static_cast<T>(kFunction(static_cast<double>(x[i])));
  }
  return MapFault::none;
}

template <double (*kFunction)(double)>
void set_alone(MapKernels& kernels, map::Op op) {
  auto& row = kernels.apply[static_cast<std::size_t>(op)];
  row[static_cast<std::size_t>(DType::f32)] = each_alone<float, kFunction>;
  row[static_cast<std::size_t>(DType::f64)] = each_alone<double, kFunction>;
}

template <class Function>
void set(MapKernels& kernels, map::Op op) {
  auto& row = kernels.apply[static_cast<std::size_t>(op)];
  row[static_cast<std::size_t>(DType::f32)] = each<float, Function>;
  row[static_cast<std::size_t>(DType::f64)] = each<double, Function>;
}

void fill_math(MapKernels& kernels) {
  set<Sqrt>(kernels, map::Op::sqrt);
  set<Rsqrt>(kernels, map::Op::rsqrt);
  set_alone<std::sin>(kernels, map::Op::sin);
  set_alone<std::cos>(kernels, map::Op::cos);
  set<Exp>(kernels, map::Op::exp);
  set<Log>(kernels, map::Op::log);
  set<Tanh>(kernels, map::Op::tanh);
  set<Sigmoid>(kernels, map::Op::sigmoid);
  set<Erf>(kernels, map::Op::erf);
}

}  // namespace einkern::kernel::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace einkern::kernel {

HWY_EXPORT(fill_math);
void fill_map_math(MapKernels& kernels) { HWY_DYNAMIC_DISPATCH(fill_math)(kernels); }

}  // namespace einkern::kernel
#endif
