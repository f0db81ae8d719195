// SPDX-License-Identifier: Apache-2.0
// Selecting contractions: hidden keys contribute nothing, whatever their values hold.
#include <doctest/doctest.h>

#include <cmath>
#include <limits>
#include <memory>
#include <random>
#include <vector>

#include "../../../engine/exec/frame.h"

using namespace einkern;
using plan::Loop;

namespace {

constexpr std::int64_t kBatch = 3, kRows = 5, kKeys = 9, kColumns = 7;

/// out[b, q, e] = sum over visible k of weights[b, q, k] values[b, k, e]; visible[q, k].
template <class T>
struct Selection {
  std::vector<T> weights = std::vector<T>(kBatch * kRows * kKeys);
  std::vector<T> values = std::vector<T>(kBatch * kKeys * kColumns);
  std::vector<T> out = std::vector<T>(kBatch * kRows * kColumns, T{-77});
  std::unique_ptr<bool[]> visible = std::make_unique<bool[]>(kRows * kKeys);

  Selection() {
    std::mt19937 random(9);
    std::uniform_real_distribution<T> uniform(-1, 1);
    for (std::int64_t i = 0; i < kRows * kKeys; ++i) visible[i] = random() % 3 != 0;
    for (T& x : values) x = uniform(random);
    for (std::int64_t b = 0; b < kBatch; ++b) {
      for (std::int64_t i = 0; i < kRows * kKeys; ++i) {
        weights[static_cast<std::size_t>(b * kRows * kKeys + i)] = visible[i] ? uniform(random) : 0;
      }
    }
  }

  void run(const kernel::Kernels& kernels) {
    plan::SelectContract step;
    plan::Contract& contract = step.contract;
    const auto operand = [](plan::ValueId value, const Dims& shape) {
      return plan::Operand{value, dtype_of<T>, contiguous(shape)};
    };
    contract.a = operand(0, {kBatch, kRows, kKeys});
    contract.b = operand(1, {kBatch, kKeys, kColumns});
    contract.c = operand(2, {kBatch, kRows, kColumns});
    step.visible = {3, boolean, contiguous({kRows, kKeys})};
    contract.batch = {{kBatch, kRows * kKeys, kKeys * kColumns, kRows * kColumns}};
    contract.m = {{kRows, kKeys, 0, kColumns}};
    contract.n = {{kColumns, 0, 1, 1}};
    contract.k = {{kKeys, 1, kColumns, 0}};
    step.visible_batch = {0};
    step.visible_m = {kKeys};
    step.visible_k = {1};
    const exec::Frame frame{.values = {reinterpret_cast<std::byte*>(weights.data()),
                                       reinterpret_cast<std::byte*>(values.data()),
                                       reinterpret_cast<std::byte*>(out.data()),
                                       reinterpret_cast<std::byte*>(visible.get())},
                            .scalars = {},
                            .kernels = kernels};
    exec::run(step, frame);
  }

  /// Does every element agree with the sum over its visible keys, NaN and infinities included?
  void check() const {
    for (std::int64_t b = 0; b < kBatch; ++b) {
      for (std::int64_t q = 0; q < kRows; ++q) {
        for (std::int64_t e = 0; e < kColumns; ++e) {
          double want = 0;
          for (std::int64_t k = 0; k < kKeys; ++k) {
            if (!visible[q * kKeys + k]) continue;
            want += static_cast<double>(
                        weights[static_cast<std::size_t>((b * kRows + q) * kKeys + k)]) *
                    static_cast<double>(
                        values[static_cast<std::size_t>((b * kKeys + k) * kColumns + e)]);
          }
          const auto got =
              static_cast<double>(out[static_cast<std::size_t>((b * kRows + q) * kColumns + e)]);
          if (std::isfinite(want)) {
            CHECK(std::abs(got - want) <= kKeys * kKeys * std::numeric_limits<T>::epsilon());
          } else {
            CHECK((got == want || (std::isnan(got) && std::isnan(want))));
          }
        }
      }
    }
  }
};

template <class T>
void check_selections() {
  for (const kernel::Kernels* kernels : kernel::supported_kernels()) {
    CAPTURE(kernels->target.name.data());
    Selection<T> plain;
    plain.run(*kernels);
    plain.check();
    for (const T poison : {std::numeric_limits<T>::quiet_NaN(), std::numeric_limits<T>::infinity(),
                           -std::numeric_limits<T>::infinity()}) {
      for (const std::size_t at : {std::size_t{0}, std::size_t{40}, std::size_t{188}}) {
        Selection<T> selection;
        selection.values[at] = poison;
        selection.run(*kernels);
        selection.check();
      }
    }
  }
}

}  // namespace

TEST_SUITE("exec") {
  TEST_CASE("hidden keys contribute nothing, whatever their values hold") {
    check_selections<float>();
    check_selections<double>();
  }
}
