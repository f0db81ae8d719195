// SPDX-License-Identifier: Apache-2.0
// Softmax rows against long double arithmetic, and the rows that need care, on every SIMD target.
#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <random>
#include <vector>

#include "../../../engine/kernel/kernels.h"

using namespace einkern;

namespace {

template <class T>
const kernel::SoftmaxKernels::Rows<T>& rows_of(const kernel::Kernels& kernels) {
  if constexpr (sizeof(T) == 4) {
    return kernels.softmax.f32;
  } else {
    return kernels.softmax.f64;
  }
}

template <class T>
void check_row(const std::vector<T>& x, const T* sink) {
  using Wide = long double;
  const auto n = static_cast<std::int64_t>(x.size());
  Wide maximum =
      sink != nullptr ? static_cast<Wide>(*sink) : -std::numeric_limits<Wide>::infinity();
  for (const T value : x) maximum = std::max<Wide>(maximum, value);
  Wide sum = sink != nullptr ? std::exp(*sink - maximum) : 0;
  for (const T value : x) sum += std::exp(value - maximum);
  const double eps = std::numeric_limits<T>::epsilon();
  for (const kernel::Kernels* kernels : kernel::supported_kernels()) {
    const auto& rows = rows_of<T>(*kernels);
    std::vector<T> weights(x.size() + 1, T{-7}), logs(x.size() + 1, T{-7});
    T total = -7;
    rows.softmax(x.data(), sink, n, weights.data());
    rows.log_softmax(x.data(), sink, n, logs.data());
    rows.logsumexp(x.data(), sink, n, &total);
    bool right = weights.back() == T{-7} && logs.back() == T{-7};
    for (std::size_t i = 0; i < x.size(); ++i) {
      const Wide shifted = x[i] - maximum;
      // Subtracting the maximum rounds the argument; the rest is a few units in the last place.
      const Wide want = std::exp(shifted) / sum;
      const Wide slack = (6 + std::abs(shifted)) * eps;
      right &= std::abs(weights[i] - want) <= want * slack + std::numeric_limits<T>::denorm_min();
      const Wide log = shifted - std::log(sum);
      right &=
          std::abs(logs[i] - log) <= (std::abs(shifted) + std::abs(std::log(sum)) + 1) * 4 * eps;
    }
    const Wide whole = maximum + std::log(sum);
    right &= std::abs(total - whole) <= (std::abs(maximum) + std::abs(std::log(sum)) + 1) * 4 * eps;
    auto in_place = x;
    rows.softmax(in_place.data(), sink, n, in_place.data());
    right &= std::memcmp(in_place.data(), weights.data(), x.size() * sizeof(T)) == 0;
    if (!right) FAIL_CHECK("row of ", n, " on ", kernels->target.name);
  }
}

template <class T>
void check_lengths() {
  std::mt19937 random(2);
  std::vector<std::size_t> lengths{100, 1000, 2047, 2048, 2049, 5000};
  for (std::size_t n = 1; n <= 33; ++n) lengths.push_back(n);
  for (const std::size_t n : lengths) {
    for (const double scale : {1.0, 30.0, 200.0}) {
      std::uniform_real_distribution<double> uniform(-scale, scale);
      std::vector<T> x(n);
      for (T& value : x) value = static_cast<T>(uniform(random));
      check_row<T>(x, nullptr);
      const T sink = static_cast<T>(uniform(random));
      check_row<T>(x, &sink);
    }
  }
}

template <class T>
void check_special() {
  const T inf = std::numeric_limits<T>::infinity(), nan = std::numeric_limits<T>::quiet_NaN();
  const T lowest = std::numeric_limits<T>::lowest();
  for (const kernel::Kernels* kernels : kernel::supported_kernels()) {
    CAPTURE(kernels->target.name.data());
    const auto& rows = rows_of<T>(*kernels);
    for (const std::size_t n : {1, 3, 16, 17, 40}) {
      const auto size = static_cast<std::int64_t>(n);
      const auto all = [&](const std::vector<T>& values, auto&& holds) {
        return std::all_of(values.begin(), values.end(), holds);
      };
      const auto is_nan = [](T value) { return std::isnan(value); };
      std::vector<T> x(n, -inf), y(n);
      T total = 0;

      rows.softmax(x.data(), nullptr, size, y.data());
      CHECK(all(y, [](T value) { return value == 0; }));
      rows.log_softmax(x.data(), nullptr, size, y.data());
      CHECK(all(y, [&](T value) { return value == -inf; }));
      rows.logsumexp(x.data(), nullptr, size, &total);
      CHECK(total == -inf);

      const T sink = 1.5, hidden = -inf, bad = nan;
      rows.softmax(x.data(), &sink, size, y.data());
      CHECK(all(y, [](T value) { return value == 0; }));
      rows.logsumexp(x.data(), &sink, size, &total);
      CHECK(total == sink);
      rows.logsumexp(x.data(), &hidden, size, &total);
      CHECK(total == -inf);
      rows.softmax(x.data(), &bad, size, y.data());
      CHECK(all(y, is_nan));

      std::fill(x.begin(), x.end(), lowest);
      rows.softmax(x.data(), nullptr, size, y.data());
      CHECK(all(y, [&](T value) { return value == T{1} / static_cast<T>(n); }));

      for (std::size_t at = 0; at < n; ++at) {
        for (const T fill : {T{1}, -inf}) {
          std::fill(x.begin(), x.end(), fill);
          x[at] = nan;
          rows.softmax(x.data(), nullptr, size, y.data());
          CHECK(all(y, is_nan));
          rows.log_softmax(x.data(), nullptr, size, y.data());
          CHECK(all(y, is_nan));
          rows.logsumexp(x.data(), nullptr, size, &total);
          CHECK(std::isnan(total));
          x[at] = inf;
          rows.softmax(x.data(), nullptr, size, y.data());
          CHECK(std::isnan(y[at]));
          rows.logsumexp(x.data(), nullptr, size, &total);
          CHECK(std::isnan(total));
        }
        // One visible element takes everything.
        std::fill(x.begin(), x.end(), -inf);
        x[at] = -1000;
        rows.softmax(x.data(), nullptr, size, y.data());
        for (std::size_t i = 0; i < n; ++i) CHECK(y[i] == (i == at ? 1 : 0));
      }
    }
    T total = 3;
    rows.logsumexp(nullptr, nullptr, 0, &total);
    CHECK(total == -inf);
  }
}

}  // namespace

TEST_SUITE("kernel") {
  TEST_CASE("softmax rows of all lengths") {
    check_lengths<float>();
    check_lengths<double>();
  }
  TEST_CASE("softmax rows of infinities, NaN and lowest") {
    check_special<float>();
    check_special<double>();
  }
}
