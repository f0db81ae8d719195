// SPDX-License-Identifier: Apache-2.0
// The sentence encoder in float64, loop by loop from its formula.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace einkern::test {

/// A matrix or vector (one row), row by row.
struct Matrix {
  std::size_t rows = 0, columns = 0;
  std::vector<double> values;

  double& operator()(std::size_t i, std::size_t j) { return values[i * columns + j]; }
  double operator()(std::size_t i, std::size_t j) const { return values[i * columns + j]; }
};

/// The vector of one sentence; `weights` under the names of the published files.
std::vector<double> encode_sentence(const std::map<std::string, Matrix>& weights,
                                    const std::vector<std::int64_t>& words, std::size_t heads,
                                    double eps);

}  // namespace einkern::test
