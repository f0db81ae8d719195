// SPDX-License-Identifier: Apache-2.0
// `einkern attention` against its definition in double, option by option.
#include <doctest/doctest.h>

#include <cmath>
#include <functional>
#include <limits>

#include "arrays_folder.h"

using namespace einkern;
using namespace einkern::test;

namespace {

constexpr std::int64_t kBatch = 2, kHeads = 4, kGroups = 2, kQueries = 5, kKeys = 7, kDim = 6,
                       kWidth = 3;
constexpr double kInfinity = std::numeric_limits<double>::infinity();

/// A score as (b, h, q, k, sum of products) -> the number that enters the softmax; -inf hides.
using Score = std::function<double(std::int64_t, std::int64_t, std::int64_t, std::int64_t, double)>;

struct Expected {
  std::vector<double> output, weights, lse;
};

/// Row-major element of a (.., n, h, rows, columns) tensor's values.
double at(const std::vector<double>& values, std::int64_t heads, std::int64_t rows,
          std::int64_t columns, std::int64_t b, std::int64_t h, std::int64_t r, std::int64_t c) {
  return values[static_cast<std::size_t>(((b * heads + h) * rows + r) * columns + c)];
}

Expected define(const Tensor& q, const Tensor& k, const Tensor& v, const Score& score) {
  const auto qs = q.to_vector<double>(), ks = k.to_vector<double>(), vs = v.to_vector<double>();
  Expected expected;
  for (std::int64_t b = 0; b < kBatch; ++b) {
    for (std::int64_t h = 0; h < kHeads; ++h) {
      const std::int64_t g = h * kGroups / kHeads;
      for (std::int64_t i = 0; i < kQueries; ++i) {
        std::vector<double> scores(kKeys);
        double largest = -kInfinity, sum = 0;
        for (std::int64_t j = 0; j < kKeys; ++j) {
          double dot = 0;
          for (std::int64_t d = 0; d < kDim; ++d) {
            dot += at(qs, kHeads, kQueries, kDim, b, h, i, d) *
                   at(ks, kGroups, kKeys, kDim, b, g, j, d);
          }
          scores[static_cast<std::size_t>(j)] = score(b, h, i, j, dot);
          largest = std::max(largest, scores[static_cast<std::size_t>(j)]);
        }
        for (double& s : scores) {
          s = largest == -kInfinity ? 0 : std::exp(s - largest);
          sum += s;
        }
        for (double& s : scores) s = sum == 0 ? 0 : s / sum;
        expected.weights.insert(expected.weights.end(), scores.begin(), scores.end());
        expected.lse.push_back(largest + std::log(sum));
        for (std::int64_t e = 0; e < kWidth; ++e) {
          double value = 0;
          for (std::int64_t j = 0; j < kKeys; ++j) {
            value +=
                scores[static_cast<std::size_t>(j)] * at(vs, kGroups, kKeys, kWidth, b, g, j, e);
          }
          expected.output.push_back(value);
        }
      }
    }
  }
  return expected;
}

void check_close(const Tensor& got, const std::vector<double>& want) {
  const auto values = got.to_vector<double>();
  REQUIRE(values.size() == want.size());
  for (std::size_t i = 0; i < values.size(); ++i) {
    CAPTURE(i);
    if (std::isinf(want[i])) {
      CHECK(values[i] == want[i]);
    } else {
      CHECK(std::fabs(values[i] - want[i]) <= 1e-12);
    }
  }
}

struct Inputs {
  ArraysFolder folder;
  Tensor q = random({kBatch, kHeads, kQueries, kDim}, 1, f64);
  Tensor k = random({kBatch, kGroups, kKeys, kDim}, 2, f64);
  Tensor v = random({kBatch, kGroups, kKeys, kWidth}, 3, f64);

  Inputs() {
    folder.save("Q", q);
    folder.save("K", k);
    folder.save("V", v);
  }

  /// Runs with all three outputs, as fused as it gets and plain, and compares with the definition.
  void check(const std::vector<std::string>& options, const Score& score) const {
    std::string shown;
    for (const std::string& option : options) shown += " " + option;
    CAPTURE(shown);
    const Expected expected = define(q, k, v, score);
    for (const bool plain : {false, true}) {
      CAPTURE(plain);
      std::vector<std::string> arguments = {"attention", "Q.npy",     "K.npy", "V.npy", "-o",
                                            "O.npy",     "--weights", "W.npy", "--lse", "L.npy"};
      arguments.insert(arguments.end(), options.begin(), options.end());
      if (plain) arguments.emplace_back("--no-fuse");
      const Finished done = folder.run(arguments);
      CHECK(done.code == 0);
      CHECK(done.out == "");
      CHECK(done.err == "");
      check_close(folder.load("O"), expected.output);
      check_close(folder.load("W"), expected.weights);
      check_close(folder.load("L"), expected.lse);
      // The output alone may take another route.
      arguments.erase(arguments.begin() + 6, arguments.begin() + 10);
      CHECK(folder.run(arguments).code == 0);
      check_close(folder.load("O"), expected.output);
    }
  }
};

const double kScale = 1 / std::sqrt(static_cast<double>(kDim));

}  // namespace

TEST_SUITE("tools") {
  TEST_CASE("attention follows its definition under every option") {
    const Inputs inputs;
    const auto hide_unless = [](bool visible, double score) {
      return visible ? score : -kInfinity;
    };
    inputs.check({}, [](auto, auto, auto, auto, double s) { return s * kScale; });
    inputs.check({"--scale", "-0.75"}, [](auto, auto, auto, auto, double s) { return s * -0.75; });
    inputs.check({"--softcap", "0.5"}, [](auto, auto, auto, auto, double s) {
      return 0.5 * std::tanh(s * kScale / 0.5);
    });
    inputs.check({"--causal"}, [&](auto, auto, std::int64_t q, std::int64_t k, double s) {
      return hide_unless(k <= q, s * kScale);
    });
    inputs.check({"--causal=bottom_right"},
                 [&](auto, auto, std::int64_t q, std::int64_t k, double s) {
                   return hide_unless(k <= q + kKeys - kQueries, s * kScale);
                 });
    inputs.check({"--causal=-2"}, [&](auto, auto, std::int64_t q, std::int64_t k, double s) {
      return hide_unless(k <= q - 2, s * kScale);
    });
    inputs.check({"--window", "2,1"}, [&](auto, auto, std::int64_t q, std::int64_t k, double s) {
      return hide_unless(q - 2 <= k && k <= q + 1, s * kScale);
    });
    inputs.check({"--window=-1,0"}, [&](auto, auto, std::int64_t q, std::int64_t k, double s) {
      return hide_unless(k <= q, s * kScale);
    });

    const std::int64_t lengths[] = {3, 0};
    inputs.folder.save("lengths", tensor<std::int64_t>({3, 0}));
    inputs.check({"--lengths", "lengths.npy"},
                 [&](std::int64_t b, auto, auto, std::int64_t k, double s) {
                   return hide_unless(k < lengths[b], s * kScale);
                 });
  }

  TEST_CASE("attention takes masks and biases that broadcast, and all options at once") {
    const Inputs inputs;
    const Tensor bias = random({kHeads, 1, kKeys}, 4, f64);
    bias(1, 0, 2).fill(-kInfinity);
    inputs.folder.save("bias", bias);
    const Tensor mask = empty({kQueries, kKeys}, boolean);
    for (std::int64_t q = 0; q < kQueries; ++q) {
      for (std::int64_t k = 0; k < kKeys; ++k) mask(q, k).fill((q + 2 * k) % 3 != 0);
    }
    inputs.folder.save("mask", mask);
    const auto biased = [&](std::int64_t h, std::int64_t k) {
      return bias(h, 0, k).item<double>();
    };
    inputs.check({"--bias", "bias.npy"}, [&](auto, std::int64_t h, auto, std::int64_t k, double s) {
      return s * kScale + biased(h, k);
    });
    inputs.check({"--mask", "mask.npy"}, [&](auto, auto, std::int64_t q, std::int64_t k, double s) {
      return mask(q, k).item<bool>() ? s * kScale : -kInfinity;
    });
    inputs.check({"--mask", "mask.npy", "--bias=bias.npy", "--causal=1", "--window=3,-1",
                  "--scale=0.5", "--softcap=2", "--threads", "2"},
                 [&](auto, std::int64_t h, std::int64_t q, std::int64_t k, double s) {
                   const bool visible = mask(q, k).item<bool>() && k <= q + 1 && k >= q - 3;
                   return visible ? 2 * std::tanh(s * 0.5 / 2) + biased(h, k) : -kInfinity;
                 });
  }

  TEST_CASE("attention without --out prints the output") {
    const ArraysFolder folder;
    folder.save("Q", zeros({1, 2, 3}));
    folder.save("V", tensor<float>({1, 2, 3, 4}, {1, 2, 2}));
    folder.save("K", zeros({1, 2, 3}));
    const Finished done = folder.run({"attention", "Q.npy", "K.npy", "V.npy", "--causal"});
    CHECK(done.code == 0);
    CHECK(done.out == "[[[1. 2.]\n  [2. 3.]]]\n");
  }
}
