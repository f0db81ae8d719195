// SPDX-License-Identifier: Apache-2.0
// Loops that do nothing but reach a limit of the machine, for every SIMD target.
#include "probe.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "probe.cpp"
#include <hwy/cache_control.h>
#include <hwy/foreach_target.h>  // IWYU pragma: keep
#include <hwy/highway.h>

#include <cstddef>

HWY_BEFORE_NAMESPACE();
namespace einkern::kernel::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

// Two ports with a latency of 4 or 5 cycles need 8 to 10 independent chains; 12 and the two factors
// still fit the 16 registers of SSE4 and AVX2.
constexpr double kChains = 12;

template <class T>
double multiply_add(std::int64_t rounds) noexcept {
  const hn::ScalableTag<T> d;
  const auto start = [&](int value) HWY_ATTR { return hn::Set(d, static_cast<T>(value)); };
  const auto factor = hn::Set(d, T{0.5}), one = hn::Set(d, T{1});
  // Every chain tends to 2; they differ at first, so that no compiler makes one of them all.
  auto a = start(1), b = start(2), c = start(3), e = start(4), f = start(5), g = start(6);
  auto h = start(7), i = start(8), j = start(9), k = start(10), l = start(11), m = start(12);
  for (std::int64_t round = 0; round < rounds; ++round) {
    a = hn::MulAdd(a, factor, one);
    b = hn::MulAdd(b, factor, one);
    c = hn::MulAdd(c, factor, one);
    e = hn::MulAdd(e, factor, one);
    f = hn::MulAdd(f, factor, one);
    g = hn::MulAdd(g, factor, one);
    h = hn::MulAdd(h, factor, one);
    i = hn::MulAdd(i, factor, one);
    j = hn::MulAdd(j, factor, one);
    k = hn::MulAdd(k, factor, one);
    l = hn::MulAdd(l, factor, one);
    m = hn::MulAdd(m, factor, one);
  }
  const auto low = hn::Add(hn::Add(hn::Add(a, b), hn::Add(c, e)), hn::Add(f, g));
  const auto high = hn::Add(hn::Add(hn::Add(h, i), hn::Add(j, k)), hn::Add(l, m));
  return static_cast<double>(hn::GetLane(hn::Add(low, high)));
}

template <class T>
MultiplyAddProbe multiply_add_probe() {
  const auto lanes = static_cast<double>(hn::Lanes(hn::ScalableTag<T>()));
  return {multiply_add<T>, 2 * kChains * lanes};
}

constexpr std::size_t kLineWords = 64 / sizeof(std::uint64_t);

std::uint64_t read_lines(const void* from, std::int64_t lines) noexcept {
  const hn::CappedTag<std::uint64_t, kLineWords> d;
  const auto* words = static_cast<const std::uint64_t*>(from);
  auto sum = hn::Zero(d);
  for (std::int64_t line = 0; line < lines; ++line, words += kLineWords) {
    for (std::size_t word = 0; word < kLineWords; word += hn::Lanes(d)) {
      sum = hn::Xor(sum, hn::LoadU(d, words + word));
    }
  }
  HWY_ALIGN std::uint64_t lanes[hn::MaxLanes(d)];
  hn::Store(sum, d, lanes);
  std::uint64_t all = 0;
  for (std::size_t lane = 0; lane < hn::Lanes(d); ++lane) all ^= lanes[lane];
  return all;
}

void write_lines(void* to, std::int64_t lines) noexcept {
  const hn::CappedTag<std::uint64_t, kLineWords> d;
  auto* words = static_cast<std::uint64_t*>(to);
  // Not zeros: lines of zeros are not sent to memory by every processor (98 GB/s on two cores of an
  // EPYC 9004, which write other lines at 28).
  const auto value = hn::Set(d, std::uint64_t{0x3FF123456789ABCD});
  for (std::int64_t line = 0; line < lines; ++line, words += kLineWords) {
    for (std::size_t word = 0; word < kLineWords; word += hn::Lanes(d)) {
      hn::Stream(value, d, words + word);
    }
  }
  hwy::FlushStream();
}

void fill_probe_table(ProbeKernels& kernels) {
  kernels.f32 = multiply_add_probe<float>();
  kernels.f64 = multiply_add_probe<double>();
  kernels.read = read_lines;
  kernels.write = write_lines;
}

}  // namespace einkern::kernel::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace einkern::kernel {
HWY_EXPORT(fill_probe_table);

void fill_probe(ProbeKernels& kernels) { HWY_DYNAMIC_DISPATCH(fill_probe_table)(kernels); }
}  // namespace einkern::kernel
#endif
